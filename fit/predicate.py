"""Predicates over request features: what a request class is to the edge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ldfi.fit.features import Features


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """``feature`` has ``value`` (or, where that is None, is present at all); or ``not`` so."""

    feature: str
    value: str | None = None
    negated: bool = False

    def holds(self, features: Features) -> bool:
        """Tell whether the condition holds for a request with these features."""
        present = features.get(self.feature)
        matches = present is not None if self.value is None else present == self.value
        return matches is not self.negated

    def __str__(self) -> str:
        if self.value is None:
            return f"{'without' if self.negated else 'with'} {self.feature}"
        return f"{self.feature} {'is not' if self.negated else 'is'} {self.value}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunction of conditions. The empty one holds for every request."""

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, conditions: Iterable[Condition]) -> Predicate:
        """Put conditions in a canonical order, so that equal predicates compare equal."""
        return cls(tuple(sorted(set(conditions), key=_order)))

    def holds(self, features: Features) -> bool:
        """Tell whether every condition holds."""
        for condition in self.conditions:  # noqa: SIM110 - a generator costs twice as much here
            if not condition.holds(features):
                return False
        return True

    def to_json(self) -> list[dict[str, Any]]:
        """List the conditions as the edge receives them."""
        return [
            {"feature": c.feature, "value": c.value, "negated": c.negated} for c in self.conditions
        ]

    @classmethod
    def from_json(cls, data: Iterable[dict[str, Any]]) -> Predicate:
        """Read what :meth:`to_json` wrote. Raises KeyError or TypeError for anything else."""
        return cls.of(map(_read_condition, data))

    def __str__(self) -> str:
        """Say it in words: ``GET /titles/* with query.page``."""
        exact = {c.feature: c.value for c in self.conditions if c.value and not c.negated}
        head = " ".join(filter(None, (exact.get("method"), exact.get("path"))))
        shown = ("method", "path") if head else ()
        rest = [str(c) for c in self.conditions if c.feature not in shown or c.negated]
        return " ".join([head or "any request", ", ".join(rest)]).rstrip()


def _read_condition(item: dict[str, Any]) -> Condition:
    feature, value, negated = item["feature"], item["value"], item["negated"]
    if (
        not isinstance(feature, str)
        or not isinstance(value, str | None)
        or not isinstance(negated, bool)
    ):
        raise TypeError(f"{str(item)[:80]} is no condition")
    return Condition(feature, value, negated)


def _order(condition: Condition) -> tuple[str, str, bool]:
    return (condition.feature, condition.value or "", condition.negated)
