"""A campaign's calendar over a stretch of time: when it is closed, and when so much open time is
over. Pure.

Looked at in steps, so an edge is told to the step: enough for a picture and for *about*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ldfi.experiments.domain.campaign.calendar import Calendar

Span = tuple[float, float]
"""From, until: Unix seconds."""

STEP: Final = 900.0
STEPS: Final = 600
"""At most so many are taken over a stretch, however long it is."""

HORIZON: Final = 90 * 86_400.0
"""Nobody plans further ahead: seconds."""


def closed(calendar: Calendar | None, since: float, until: float) -> list[Span]:
    """List the stretches in which no experiment may run."""
    if calendar is None or until <= since:
        return []
    step = max(STEP, (until - since) / STEPS)
    found: list[Span] = []
    at = since
    while at < until:
        end = min(at + step, until)
        if calendar.closed(at) is not None:
            follows = bool(found) and found[-1][1] == at
            found[-1:] = [(found[-1][0], end)] if follows else [*found[-1:], (at, end)]
        at = end
    return found


def open_seconds(calendar: Calendar | None, since: float, until: float) -> float:
    """Count the seconds of a stretch in which experiments may run."""
    return until - since - sum(end - begin for begin, end in closed(calendar, since, until))


def over(calendar: Calendar | None, since: float, seconds: float) -> float | None:
    """Find when so many open seconds are over; None where that is beyond :data:`HORIZON`."""
    at, left = since, seconds
    if calendar is None:
        return since + seconds if seconds <= HORIZON else None
    while at - since <= HORIZON:
        opens = calendar.opens(at)
        if opens is None:
            return None
        at = opens
        while calendar.closed(at) is None:
            step = min(STEP, left)
            at, left = at + step, left - step
            if left <= 0:
                return at
            if at - since > HORIZON:
                return None
    return None


def within(spans: Sequence[Span], since: float, until: float) -> list[Span]:
    """Cut stretches down to what lies between."""
    cut = [(max(begin, since), min(end, until)) for begin, end in spans]
    return [(begin, end) for begin, end in cut if begin < end]
