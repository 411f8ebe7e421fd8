"""What the verdict of an experiment came from, kept until it is written down for good."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.domain.traffic.cut_traces import cut
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.digest import digest


@dataclass(slots=True)
class VerdictInputs:
    """``looks``: what somebody else has counted, look by look. Of each request in which a fault
    fired, or would have: when it began, how it went, as one letter
    (:mod:`ldfi.checker.statistics`), and the hash of its trace. The traces themselves go as they
    always did."""

    looks: list[Counts] = field(default_factory=list)
    _requests: dict[str, tuple[int, str, str]] = field(default_factory=dict)

    def add(self, observation: Observation) -> None:
        """Keep the evidence of a request."""
        lineage = observation.lineage
        told = lineage.start, _letter(observation), digest(lineage.trace)
        self._requests[lineage.trace_id] = told

    def __contains__(self, trace_id: str) -> bool:
        """Return whether a request is kept."""
        return trace_id in self._requests

    def look(self, more: Counts) -> None:
        """Keep a look; one in which nothing had come says nothing."""
        if more.control or more.treated:
            self.looks.append(more)

    def traces(
        self, order: list[str] | None, later: Collection[str] = ()
    ) -> list[tuple[str, str, str]]:
        """List trace id, letter and hash of the requests in this order; by default as they
        began. ``later``: those of devices that failed later."""
        if order is None:
            began = ((start, trace_id) for trace_id, (start, _, _) in self._requests.items())
            order = [trace_id for _, trace_id in sorted(began)]
        requests = self._requests
        return [
            (each, _LATER.get(letter, letter) if each in later else letter, hashed)
            for each, (_, letter, hashed) in ((each, requests[each]) for each in order)
        ]


_LATER: Final = {"c": "x", "t": "y", "d": "y", "u": "v"}


def _letter(observation: Observation) -> str:
    outcome, treated = observation.outcome, observation.lineage.arm == "treatment"
    if not outcome.success:
        return "T" if treated else "C"
    if treated and cut(observation.lineage):
        return "u"
    if treated and outcome.degraded:
        return "d"
    return "t" if treated else "c"
