"""What experience says about a fault before it is tried: its record so far, in all classes.

The rule of succession with a sceptical start: most calls turn out to be optional or to have a
fallback, so before anything is known one fault in ten is expected to hurt. Rough on purpose: it
orders what to try first (strategy ``likeliest``) and says how many members an experiment may hurt;
it never decides anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult, Hypothesis
from ldfi.experiments.domain.traffic.patterns import matching

PRIOR_HARMFUL = 0.5
PRIOR_TRIED = 5.0


@dataclass(slots=True)
class Experience:
    """How often each fault was tried by itself or survived with others, and how often it hurt."""

    _tried: Counter[str] = field(default_factory=Counter)
    _harmful: Counter[str] = field(default_factory=Counter)

    def add(self, result: ExperimentResult) -> None:
        """Count a result. A harmful union says nothing about any one of its faults."""
        if result.succeeded:
            self._tried.update(result.fired)
        elif result.succeeded is False and len(result.fired) == 1:
            self._tried.update(result.fired)
            self._harmful.update(result.fired)

    def join(self, other: Experience) -> None:
        """Add the counts of another experience."""
        self._tried.update(other._tried)
        self._harmful.update(other._harmful)

    def to_json(self) -> dict[str, dict[str, int]]:
        """For the store."""
        return {"tried": dict(self._tried), "harmful": dict(self._harmful)}

    @classmethod
    def from_json(cls, data: Mapping[str, Mapping[str, int]]) -> Experience:
        """Read what :meth:`to_json` wrote."""
        return cls(Counter(data["tried"]), Counter(data["harmful"]))

    def likelihood(self, fault: str) -> float:
        """Return how likely it is that this fault by itself hurts, between 0 and 1."""
        return (self._harmful[fault] + PRIOR_HARMFUL) / (self._tried[fault] + PRIOR_TRIED)

    def risk(self, faults: Iterable[str], members: int) -> float:
        """Return how many of ``members`` these faults together may hurt, if faults hurt
        independently."""
        return members * (1 - prod(1 - self.likelihood(fault) for fault in faults))


# What nature says to try first: the faults that requests blame which failed by themselves.
#
# Alone, each once, before unions are tried: what nature has shown to hurt needs no union that
# hurts somebody to be found. It changes the order of experiments, never what is concluded from
# them.
def suspicions(known: Knowledge) -> Iterator[Hypothesis]:
    """Return the faults that traffic blames and that are worth an experiment (admissible, open,
    not tried yet), the most blamed first."""
    kinds, bound = known.settings.kinds, known.settings.max_size
    kind = "error" if "error" in kinds else kinds[0]
    tried = {result.injected for result in known.results}
    for points in known.traffic.suspected.named():
        if any(matching(known.protected, [point]) is not None for point in points):
            continue
        each = known.by_system(frozenset(f"{kind}@{point}" for point in points))
        worth = len(each) <= bound and each not in tried and known.tries(each)
        if worth and known.solver_input.explorer.admissible(each):
            yield each
