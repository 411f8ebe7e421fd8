"""A request under experiment whose trace has a hole: no evidence, but not nothing.

Where a fault has fired in it all the same, or would have, its outcome counts, good or bad and in
both arms alike: to leave out what is cut would leave out just those that a fault has hurt, where
what it hurts is never exported. What it relied on is not known, so it never counts as survived.
"""

from __future__ import annotations

from typing import NamedTuple

from ldfi.lineage.killed_process import Death, deaths, marks
from ldfi.lineage.lineage import Lineage, unusable
from ldfi.lineage.span import Trace


class CutRequest(NamedTuple):
    """``died``: processes, as far as what is there of the trace tells."""

    experiment: str
    arm: str
    trace_id: str
    died: tuple[Death, ...] = ()


def cut(lineage: Lineage) -> bool:
    """Return whether the trace of a request has a hole."""
    return bool(unusable(lineage.trace, lineage))


def proves(lineage: Lineage) -> bool:
    """Return whether a trace with a hole tells all the same that a fault has fired in this request,
    or, of control, that one would have. It takes the request's own span: when it began."""
    rooted = lineage.trace.missing != "root" and not lineage.loose
    return rooted and bool(lineage.experiment and lineage.fired | lineage.would_fire)


def cut_of(trace: Trace, lineage: Lineage | None) -> CutRequest | None:
    """Return the rest of a request under experiment whose trace is cut; None if it was under
    none. Without spans of the edge, the marks of faults tell."""
    experiment, arm = (lineage.experiment, lineage.arm) if lineage is not None else ("", "")
    for _, mark in marks(trace.spans) if not experiment else ():
        experiment, arm = mark.experiment, mark.arm
    if not experiment:
        return None
    return CutRequest(experiment, arm, trace.trace_id, tuple(deaths(trace.spans)))
