"""Predicates over request features: what a request class is to the edge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ldfi.fit.protocol.features import FAMILIES, FIRST_FAMILIES, HIDDEN, Features

GUARD: Final[dict[str, Any]] = {"feature": "features", "value": "2", "negated": False}
"""Put beside conditions that an older edge would wrongly hold for met: it knows no such feature, so
it lets the rule be. Whoever knows it leaves it out."""


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """``feature`` has ``value`` (or, where that is None, is present at all); or ``not`` so.

    ``route`` is no feature of its own: its value is a template that the path fits. A condition on
    a feature that this version does not know never holds, negated or not.
    """

    feature: str
    value: str | None = None
    negated: bool = False

    def holds(self, features: Features) -> bool:
        """Return whether the condition holds for a request with these features."""
        if self.feature == "route":
            matches = fits(self.value or "", features.get("path", ""))
        else:
            present = features.get(self.feature)
            matches = present is not None if self.value is None else present == self.value
        return not matches and _may_be_denied(self.feature, features) if self.negated else matches

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
        """Return whether every condition holds."""
        for condition in self.conditions:  # noqa: SIM110 - a generator costs twice as much here
            if not condition.holds(features):
                return False
        return True

    def to_json(self) -> list[dict[str, Any]]:
        """List the conditions."""
        return [
            {"feature": c.feature, "value": c.value, "negated": c.negated} for c in self.conditions
        ]

    def to_edge(self) -> list[dict[str, Any]]:
        """List the conditions as edges of any version may receive them."""
        denied = (c for c in self.conditions if c.negated and _family(c.feature))
        new = any(_family(c.feature) not in FIRST_FAMILIES for c in denied)
        return [*self.to_json(), *([GUARD] if new else [])]

    @classmethod
    def from_json(cls, data: Iterable[dict[str, Any]]) -> Predicate:
        """Read what :meth:`to_json` or :meth:`to_edge` wrote. Raises KeyError or TypeError for
        anything else."""
        return cls.of(_read_condition(each) for each in data if each != GUARD)

    def __str__(self) -> str:
        """Say it in words: ``GET /titles/* with query.page``."""
        exact = {c.feature: c.value for c in self.conditions if c.value and not c.negated}
        path = exact.get("path") or exact.get("route")
        head = " ".join(filter(None, (exact.get("method"), path)))
        shown = ("method", "path", "route", "protocol") if head else ()
        rest = [str(c) for c in self.conditions if c.feature not in shown or c.negated]
        return " ".join([head or "any request", ", ".join(rest)]).rstrip()


@lru_cache(maxsize=8192)
def fits(template: str, path: str) -> bool:
    """Return whether a path fits a template: ``*`` there stands for any one segment.

    >>> fits("/users/*/orders", "/users/kim/orders")
    True
    """
    wanted, given = template.split("/"), path.split("/")
    return len(wanted) == len(given) and all(
        w == g or (w == "*" and g != "") for w, g in zip(wanted, given, strict=True)
    )


def _may_be_denied(feature: str, features: Features) -> bool:
    """Return whether it is known that a request does not have a feature."""
    family = _family(feature)
    return family in FAMILIES and not (family in HIDDEN and "unread" in features)


def _family(feature: str) -> str:
    return feature.partition(".")[0]


def _read_condition(item: dict[str, Any]) -> Condition:
    feature, value, negated = item["feature"], item["value"], item["negated"]
    if (
        not isinstance(feature, str)
        or not isinstance(value, str | None)
        or not isinstance(negated, bool)
    ):
        raise TypeError(f"{str(item)[:80]} is not a condition")
    return Condition(feature, value, negated)


def _order(condition: Condition) -> tuple[str, str, bool]:
    return (condition.feature, condition.value or "", condition.negated)
