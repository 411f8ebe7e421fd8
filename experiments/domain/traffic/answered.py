"""Whether what was injected came too late to matter: when the device had its answer already.

A server may work on when it has answered, within the span of the request. What fails there no
device can see in that answer, so that it was good proves nothing.
"""

from __future__ import annotations

from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.waiting import SKEW, TICK


def answered_before(observation: Observation) -> bool:
    """Return whether every fault fired in a call that began when the device had its answer, by how
    long it says that it waited. False where it does not say that."""
    lineage, waited = observation.lineage, observation.outcome.duration
    fired = [span for span in lineage.trace.spans if span.operation.fired]
    answered = lineage.start + int(waited * 1e9)
    return waited > 0 and all(
        span.start > answered + (TICK if span.operation.service == lineage.service else SKEW)
        for span in fired
    )
