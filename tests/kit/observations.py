"""Requests as the service sees them: what one did, beside what its device says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.lineage.lineage import Lineage


def observation(
    run: Lineage, success: bool = True, number: int = 1, device: str = "d", **told: Any
) -> Observation:
    """Return the request of this number, in which a run came to pass. ``told``: what else its
    outcome says."""
    trace_id = f"{number:032x}"
    return Observation(
        replace(run, trace_id=trace_id), Outcome(trace_id, device, "", success, **told)
    )
