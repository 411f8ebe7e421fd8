"""Where the points of a request class stand: what each one reaches, and inside which others it is.

A point that was only ever called inside another one cannot be reached once that other one fails.
So a fault on both is the same as a fault on the outer one, and never worth an experiment. That
holds until a trace shows the inner point elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from fit.points import Point
from lineage.lineage import Lineage


@dataclass(slots=True)
class Topology:
    """Learned from every trace of the class, experiments included."""

    callees: dict[str, str] = field(default_factory=dict)
    """Point → the service or system that it reaches: who answered, else whom the caller asked."""
    paths: defaultdict[str, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    """Point → for each way in which it was reached, the points above it."""

    def learn(self, lineage: Lineage) -> None:
        """Take in one trace."""
        for point in lineage.called:
            system = lineage.callees.get(point) or Point.parse(point).peer
            if system:
                self.callees[point] = system
        pending = [(call, frozenset[str]()) for call in lineage.tree.calls]
        while pending:
            call, above = pending.pop()
            self.paths[call.point].add(above - {call.point})
            pending.extend((inner, above | {call.point}) for inner in call.calls)

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
