"""How long is waited for what belongs to one request: one set of times, derived from each other.

Services export what they have every so often (OpenTelemetry's ``OTEL_BSP_SCHEDULE_DELAY``, five
seconds by default), each at its own pace. So the spans of a request that has ended arrive within
that time, and a trace that has been quiet for longer has all there is, unless something was lost or
goes on. All else follows: patience for what is known to be missing, how long a request may last,
how long a device's report is kept for a trace that a Collector holds back until it has judged it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

EXPORT: Final = 5.0
"""OpenTelemetry's default."""

ON_THE_WAY: Final = 0.4
"""What an export itself may take, as a share of the interval; and :data:`AT_LEAST` so long."""

AT_LEAST: Final = 0.3
PATIENCE: Final = 10.0
REQUEST: Final = 60.0
REPORT: Final = 30.0
COLLECTOR: Final = 30.0
"""``decision_wait`` of the Collector's tail sampling, by default."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Seconds. ``quiet``: without a span, until a trace that misses nothing is whole.
    ``patience``: without a span, until what could only be on its way is given up. ``request``:
    from its first span, until a trace is given up whatever is still going on in it. ``report``:
    how long a trace waits for its device. ``outcome``: how long a device's report waits for its
    trace, which is longer than any trace may take. ``settle``: how long after it was disarmed the
    last requests of an experiment may come in."""

    quiet: float
    patience: float
    request: float
    report: float
    outcome: float
    settle: float

    @classmethod
    def of(cls, quiet: float | None = None, patience: float | None = None) -> Self:
        """Return the times, with missing ones derived. Raises ValueError if they contradict each
        other."""
        quiet = quiet_for(EXPORT) if quiet is None else quiet
        patience = max(PATIENCE, 2 * quiet) if patience is None else patience
        if not 0 <= quiet <= patience:
            raise ValueError(
                f"patience of {patience:g} s is shorter than quiet, {quiet:g} s: a trace would be"
                " given up before anybody has looked whether it is whole"
            )
        request = max(REQUEST, 2 * patience)
        outcome = COLLECTOR + quiet + request
        return cls(quiet, patience, request, REPORT, outcome, 2 * quiet)


def quiet_for(export_interval: float) -> float:
    """Return how long a trace must be quiet to be whole, where services export at this interval."""
    return export_interval + max(AT_LEAST, ON_THE_WAY * export_interval)
