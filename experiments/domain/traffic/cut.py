"""A request under experiment whose trace has a hole: no evidence, but not nothing."""

from __future__ import annotations

from typing import NamedTuple

from ldfi.lineage.killed import Death, deaths, marks
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.span import Trace


class CutRequest(NamedTuple):
    """``died``: processes, as far as what is there of the trace tells."""

    experiment: str
    arm: str
    trace_id: str
    died: tuple[Death, ...] = ()


def cut_of(trace: Trace, lineage: Lineage | None) -> CutRequest | None:
    """Return what is left of a request under experiment; None where it was under none. Where not
    even the edge has told of it, the marks say so."""
    experiment, arm = (lineage.experiment, lineage.arm) if lineage is not None else ("", "")
    for _, mark in marks(trace.spans) if not experiment else ():
        experiment, arm = mark.experiment, mark.arm
    if not experiment:
        return None
    return CutRequest(experiment, arm, trace.trace_id, tuple(deaths(trace.spans)))
