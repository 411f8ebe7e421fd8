"""Whom requests blame that failed by themselves: a class's suspects, before anything is tried.

What nature has shown to hurt hurts nobody else to be told of, and is worth an experiment of its own
before anything else is. A suspicion proves nothing: it says what to try first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ldfi.experiments.domain.traffic.interned_names import Interned, names_at
from ldfi.lineage.blame import FailureRecord, blame
from ldfi.lineage.lineage import Lineage

Points = frozenset[str]

KEPT: Final = 20
"""Different sets of suspects that are kept: each is worth an experiment before exploring begins."""
LARGEST: Final = 4
"""Points of one: as many as a finding can have at most."""
REMEMBERED: Final = 2_000
"""Shapes of trace that need not be looked at again; when there are more, all are forgotten."""


@dataclass(slots=True)
class Suspected:
    """Sets of points, and how many failed requests blame each."""

    counts: Counter[Points] = field(default_factory=Counter)
    _learned: dict[int, tuple[Mapping[str, str], Points]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """By the identity of their ``callees``, which traces of one shape share: whom they blame. So
    an hour in which everything fails costs no more than any other."""

    def learn(
        self,
        lineage: Lineage,
        usual_support: Callable[[], Points],
        record: Callable[[], FailureRecord],
    ) -> None:
        """Learn from a failed request that was not injected into. Context of its class is
        fetched only for new shapes."""
        if not lineage.root_error:
            return  # no chain of errors that could be followed
        known = self._learned.get(id(lineage.callees))
        if known is None:
            if len(self._learned) >= REMEMBERED:
                self._learned.clear()
            known = lineage.callees, frozenset(blame(lineage.tree, usual_support(), record()))
            self._learned[id(lineage.callees)] = known
        points = known[1]
        if 0 < len(points) <= LARGEST and (points in self.counts or len(self.counts) < KEPT):
            self.counts[points] += 1

    def look_again(self) -> None:
        """Judge every shape again when it comes next: more is known of the class."""
        self._learned.clear()

    def copy(self) -> Suspected:
        """Return an independent copy."""
        return Suspected(self.counts.copy())

    def named(self) -> list[Points]:
        """List them, those that most requests blame first."""
        return sorted(self.counts, key=lambda each: (-self.counts[each], sorted(each)))

    def to_json(self, points: Interned) -> list[Any]:
        """In numbers; their names go to ``points``, which the caller writes as well."""
        return [[points.places(each), count] for each, count in self.counts.items()]

    @classmethod
    def from_json(cls, data: Iterable[Any], points: list[str]) -> Suspected:
        """Read what :meth:`to_json` wrote. Raises TypeError or IndexError otherwise."""
        return cls(Counter({names_at(points, places): count for places, count in data}))
