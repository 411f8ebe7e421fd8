"""Where requests enter (service, method, template): the sample begun there, the classes known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.classes import CONSISTENT, RequestClass, describe, refined, teaching
from ldfi.lineage.drift import JUDGED, SETTLED
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.shapes import Shape, Shapes


@dataclass(slots=True, eq=False)
class Entrance:
    """Where requests enter: the current sample, and the classes known.

    The topology is that of the whole entry, and its classes share it: what one of them shows of
    where points stand makes the others' conclusions from it only more careful.
    """

    opened: float
    due: int
    """Requests in the sample at which it is looked at."""
    shapes: Shapes
    size: int
    """Requests that make a sample of this entry."""
    requests: int = 0
    topology: Topology = field(default_factory=Topology)
    classes: list[KnownClass] = field(default_factory=list)
    asleep: list[tuple[Predicate, int]] = field(default_factory=list)
    """Classes that have expired while others of this entry live: predicate and version."""
    first: bool = True
    """No sample of this entry was ever completed."""
    last_seen: float = 0.0
    began: dict[int, int] = field(default_factory=dict)
    """While it has no class: partitions of a stream → the offset of its first request there."""

    @classmethod
    def opened_at(cls, now: float, due: int, size: int) -> Entrance:
        """Begin with nothing."""
        return cls(now, due, Shapes(size, spans=False), size, last_seen=now)

    def begin(self, now: float, due: int) -> None:
        """Begin another sample."""
        self.opened, self.due = now, due
        self.shapes, self.requests = Shapes(self.size, spans=False), 0

    def class_of(self, features: Features) -> KnownClass | None:
        """Find the class of a request that entered here; None where it is in none."""
        for known in self.classes:
            if known.predicate.holds(features):
                return known
        return None

    def wake(self, lineage: Lineage) -> tuple[RequestClass, int] | None:
        """Remove the expired class that a request belongs to; return it with its new version:
        its evidence begins again."""
        for predicate, version in self.asleep:
            if predicate.holds(lineage.features):
                self.asleep.remove((predicate, version))
                nothing = RequestClass(lineage.service, predicate, (), frozenset(), 0.0, 0, 1.0)
                return nothing, version + 1
        return None

    def merge(self, other: Entrance, placed: Callable[[Lineage], Lineage]) -> None:
        """Take over the evidence of another entry point that is the same. ``placed`` gives a
        lineage the template it has here."""
        self.shapes.merge(other.shapes.renamed(placed))
        self.requests += other.requests
        self.opened = min(self.opened, other.opened)
        self.topology.merge(other.topology)
        self.last_seen = max(self.last_seen, other.last_seen)
        for partition, offset in other.began.items():
            self.began[partition] = min(offset, self.began.get(partition, offset))


# How the requests of one entry are divided into classes, held against a complete sample of them.
#
# :mod:`ldfi.lineage.classes` finds classes in a sample. Here is what speaks for taking them in
# place of those that are known, or for dividing one of these further.

MUCH = 0.2
"""By how much more of a class's requests its parts must explain for it to be divided further."""

CLEARLY = 0.05
"""By how much more of its requests a new division of an entry must explain to be taken."""


def further(
    classes: Sequence[KnownClass], shapes: Sequence[Shape]
) -> tuple[bool, list[tuple[KnownClass, list[RequestClass]]]]:
    """Return classes to divide further, with their parts; and whether some had too few requests
    to tell."""
    few, divided = False, []
    for known in classes:
        for whole in described([known], shapes):
            if whole.consistency >= CONSISTENT or not whole.sample:
                continue
            few = few or (len(classes) > 1 and whole.sample < SETTLED)
            parts = refined(whole) if whole.sample >= JUDGED else []
            if parts and explained(parts, whole.shapes) > whole.consistency + MUCH:
                divided.append((known, parts))
    return few, divided


def too_narrow(classes: Iterable[KnownClass], shapes: Iterable[Shape]) -> bool:
    """Return whether requests fit the template of a class whose predicate an edge takes word by
    word."""
    wide = any("route" in shape.features for shape in shapes)
    return wide and any(c.feature == "path" for each in classes for c in each.predicate.conditions)


def described(classes: Iterable[KnownClass], shapes: Sequence[Shape]) -> list[RequestClass]:
    """Return what a sample says of the known classes that have a request in it."""
    return [
        describe(known.predicate, matching)
        for known in classes
        if (matching := [shape for shape in shapes if known.predicate.holds(shape.features)])
    ]


def explained(found: Iterable[RequestClass], shapes: Iterable[Shape]) -> float:
    """Return the share of good, unperturbed requests that rely on exactly what their class is
    expected to."""
    total = sum(shape.count for shape in teaching(shapes))
    return sum(each.consistency * each.sample for each in found) / total if total else 1.0
