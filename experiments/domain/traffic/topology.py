"""Where the points of a request class stand: what each one reaches, and inside which others it is.

A point that was only ever called inside another one cannot be reached once that other one fails.
So a fault on both is the same as a fault on the outer one, and never worth an experiment. That
holds until a trace shows the inner point elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ldfi.experiments.domain.traffic.interned_names import Interned, names_at
from ldfi.fit.protocol.points import Point
from ldfi.lineage.lineage import Lineage

REMEMBERED = 2_000
"""Shapes of trace that are recognised as learned already; when there are more, all are forgotten
and learned once more, which changes nothing but takes time."""


@dataclass(slots=True)
class Topology:
    """Learned from every trace of the class, experiments included."""

    callees: dict[str, str] = field(default_factory=dict)
    """Point → the service or system that it reaches: who answered, else whom the caller asked."""
    paths: defaultdict[str, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    """Point → for each way in which it was reached, the points above it."""
    changes: int = field(default=0, compare=False)
    """Rises whenever anything here becomes different."""
    _learned: dict[int, Mapping[str, str]] = field(default_factory=dict, compare=False, repr=False)
    """By identity, the ``callees`` of the lineages learned: ``lineage.learn`` gives
    all traces whose call trees are of one shape the same object. Kept, so that no other object
    can get its identity."""

    def learn(self, lineage: Lineage) -> None:
        """Take in one trace. Costs next to nothing for a shape of trace learned before."""
        if id(lineage.callees) in self._learned:
            return
        if len(self._learned) >= REMEMBERED:
            self._learned.clear()
        self._learned[id(lineage.callees)] = lineage.callees
        for point in lineage.called:
            # Whom the caller asked counts until somebody has answered: a call that was refused
            # reaches nobody, and says nothing else of who is there.
            asked = "" if point in self.callees else Point.parse(point).peer
            system = lineage.callees.get(point) or asked
            if system and self.callees.get(point) != system:
                self.callees[point] = system
                self.changes += 1
        pending = [(call, frozenset[str]()) for call in lineage.tree.calls]
        while pending:
            call, above = pending.pop()
            path, paths = above - {call.point}, self.paths[call.point]
            if path not in paths:
                paths.add(path)
                self.changes += 1
            pending.extend((inner, above | {call.point}) for inner in call.calls)

    def merge(self, other: Topology) -> None:
        """Take in everything that another one has learned."""
        self.callees |= other.callees
        for point, paths in other.paths.items():
            self.paths[point] |= paths
        self.changes += 1

    def copy(self) -> Topology:
        """Return an independent copy."""
        paths = defaultdict(set, {point: set(ways) for point, ways in self.paths.items()})
        return Topology(dict(self.callees), paths, self.changes)

    def knows(self, name: str) -> bool:
        """Return whether a point or a system of this name was ever reached."""
        return name in self.paths or name in self.callees.values()

    def reaches(self, systems: frozenset[str]) -> bool:
        """Return whether a point is one of these, or reaches one."""
        return not systems.isdisjoint(self.callees.values()) or not systems.isdisjoint(self.paths)

    def above(self, points: Iterable[str]) -> frozenset[str]:
        """Return the services called on the way to these points, whose answers may turn bad when
        a call further in fails."""
        way = frozenset[str]().union(*(path for p in points for path in self.paths.get(p, ())))
        return frozenset(self.callees.get(point, point) for point in way)

    def behind(self, points: frozenset[str]) -> set[str]:
        """Every point that cannot be reached but through one of these."""
        return {
            point for point, paths in self.paths.items() if all(path & points for path in paths)
        }

    def shared(self) -> dict[str, frozenset[str]]:
        """Systems that more than one point reaches: name → those points."""
        reached = defaultdict(set)
        for point, callee in self.callees.items():
            reached[callee].add(point)
        return {name: frozenset(points) for name, points in reached.items() if len(points) > 1}

    def to_json(self, points: Interned) -> dict[str, Any]:
        """In numbers; their names go to ``points``, which the caller writes as well."""
        return {
            "callees": [[points.place(p), callee] for p, callee in sorted(self.callees.items())],
            "paths": [
                [points.place(point), sorted(map(points.places, paths))]
                for point, paths in sorted(self.paths.items())
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], points: list[str]) -> Topology:
        """Read what :meth:`to_json` wrote. Raises KeyError, TypeError or IndexError otherwise."""
        topology = cls({points[place]: str(callee) for place, callee in data["callees"]})
        for place, paths in data["paths"]:
            topology.paths[points[place]] = {names_at(points, path) for path in paths}
        return topology
