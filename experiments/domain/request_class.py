"""Request classes: requests that behave the same, told apart by what is known on arrival."""

from __future__ import annotations

from dataclasses import dataclass

from fit.features import Features
from fit.predicate import Condition, Predicate


@dataclass(frozen=True, slots=True)
class RequestClass:
    """A predicate that an edge can evaluate. ``name`` is the predicate in words."""

    predicate: Predicate

    @property
    def name(self) -> str:
        """For people, and as a key: equal predicates have equal names."""
        return str(self.predicate)


def class_of(features: Features) -> RequestClass:
    """The class of a request by method and templated path.

    Approximate: requests of one route may still behave differently (a query parameter, a device
    type). The union of their supports is a sound clause for such a class, only a costlier one.
    """
    return RequestClass(
        Predicate.of(Condition(name, features.get(name, "")) for name in ("method", "path"))
    )
