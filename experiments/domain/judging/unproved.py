"""Treated requests that went well and prove nothing for *tolerated*: the fault was not there while
it could matter.

It may still prove harm. So *tolerated* is refused where it would not be said had all of these
failed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypedDict

from ldfi.experiments.domain.judging.stays import Stays
from ldfi.experiments.domain.traffic.answered import answered_before
from ldfi.experiments.domain.traffic.observation import Observation


class Words(TypedDict):
    """Why *tolerated* is not said; None where it may be."""

    outlasted: str | None
    answered: str | None


@dataclass(slots=True)
class Unproved:
    """``outlasted``: trace of a request → how long it took, in seconds, where its failure context
    may have run out before its caller gave up. ``answered``: traces of those in which what fired
    did so when the device had its answer, where nobody looks at what comes later."""

    outlasted: dict[str, float] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    total: int = 0
    """Treated requests in which a fault fired."""

    def look(self, observation: Observation, holds: float, *, followed: bool) -> None:
        """Take in a treated request. ``holds``: seconds that failure contexts are sure to;
        ``followed``: later requests of the device are looked at."""
        lineage = observation.lineage
        self.total += 1
        if not observation.outcome.success:
            return
        if lineage.expired or lineage.duration >= holds:
            self.outlasted[lineage.trace_id] = lineage.duration
        if not followed and answered_before(observation):
            self.answered.add(lineage.trace_id)

    def forget(self, trace_id: str) -> None:
        """Have a treated request count no more, since a worse outcome of it comes now."""
        self.total -= 1
        self.outlasted.pop(trace_id, None)
        self.answered.discard(trace_id)

    def words(self, stays: Stays, holds: float, *, counted: bool) -> Words:
        """Return why there are too many of either. ``counted``: outcomes were counted elsewhere
        and are not known one by one."""
        hasty, late = self.outlasted, self.answered
        longest = max(hasty.values(), default=0.0)
        return {
            "outlasted": None
            if _holds_without(hasty, stays, counted=counted)
            else f"{len(hasty)} of {self.total} treated requests went on after their failure "
            f"context may have run out ({holds:.0f} s, up to {longest:.0f} s)",
            "answered": None
            if _holds_without(late, stays, counted=counted)
            else f"in {len(late)} of {self.total} treated requests faults fired only when the "
            f"device had its answer, and later requests are not looked at",
        }


def _holds_without(traces: Collection[str], stays: Stays, *, counted: bool) -> bool:
    return not traces or (not counted and stays.final(traces) == "tolerated")
