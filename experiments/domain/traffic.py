"""What a class's unperturbed traffic has shown: its evidence for free, and its steady state.

Two unperturbed requests of one class may differ because one of them hit a cache. That is variety,
not redundancy: the second request had no alternative. So good requests are grouped by the set of
points that failed in them, by nature, and a group's frequent supports count as one (design,
section 4, rules 3 and 4).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from experiments.domain.observation import Observation
from experiments.domain.topology import Topology

Faults = frozenset[str]

FREQUENT = 0.01
"""Share of a group's requests above which a support counts as frequent."""

NATURAL_EVIDENCE = 20
"""Requests with the same natural failure that it takes to speak for all requests of the class: with
fewer, a path taken by some (a cache miss, say) may by chance not be among them."""

STEADY_OUTCOMES = 200
"""Newest outcomes that make up the steady state."""


@dataclass(slots=True)
class _Group:
    """Good requests in which the same points failed: relied-on faults → count and exemplar."""

    counts: Counter[Faults] = field(default_factory=Counter)
    exemplars: dict[Faults, str] = field(default_factory=dict)


@dataclass(slots=True)
class Traffic:
    """Evidence from requests of one class that nobody injected anything into."""

    good: int = 0
    topology: Topology = field(default_factory=Topology)
    _groups: defaultdict[Faults, _Group] = field(default_factory=lambda: defaultdict(_Group))
    _undisturbed: Counter[tuple[Faults, Faults]] = field(default_factory=Counter)
    _recent: deque[bool] = field(default_factory=lambda: deque(maxlen=STEADY_OUTCOMES))

    def observe(self, observation: Observation) -> None:
        """Take in one request of the class."""
        lineage = observation.lineage
        self._recent.append(observation.outcome.success)
        self.topology.learn(lineage)
        if not observation.outcome.success:
            return
        self.good += 1
        group = self._groups[frozenset(f"error@{point}" for point in lineage.failed)]
        group.counts[lineage.relied_on] += 1
        group.exemplars.setdefault(lineage.relied_on, lineage.trace_id)
        if not lineage.failed:
            self._undisturbed[lineage.support, lineage.called] += 1

    def frequent(self) -> Iterator[tuple[Faults, Faults, str]]:
        """The frequent supports: (faults relied on, natural failures, exemplar trace) of each."""
        for failed, group in self._groups.items():
            total = group.counts.total()
            if failed and total < NATURAL_EVIDENCE:
                continue
            for relied_on, count in group.counts.items():
                if failed or count >= FREQUENT * total:
                    yield relied_on, failed, group.exemplars[relied_on]

    def usual_support(self) -> frozenset[str]:
        """Every point that a request in which nothing failed may rely on."""
        return frozenset().union(*(support for support, _ in self._usual()))

    def usually_called(self) -> frozenset[str]:
        """Every point that such a request may call at all."""
        return frozenset().union(*(called for _, called in self._usual()))

    def _usual(self) -> list[tuple[Faults, Faults]]:
        total = self._undisturbed.total()
        return [shape for shape, count in self._undisturbed.items() if count >= FREQUENT * total]

    def success_rate(self) -> float:
        """Share of good outcomes among the newest; 1 before there are any."""
        return sum(self._recent) / len(self._recent) if self._recent else 1.0
