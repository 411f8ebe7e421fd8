"""What nature says to try first: the faults that requests blame which failed by themselves.

Alone, each once, before unions are tried: what nature has shown to hurt needs no union that hurts
somebody to be found. It changes the order of experiments, never what is concluded from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import Hypothesis
from ldfi.experiments.domain.traffic.patterns import matching


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
