"""Calls in traces of their own, of services that serve requests: perhaps calls of theirs.

A thread or a timer that loses the context leaves a CLIENT span without a parent. It is no request
that an edge sees arrive. Where such calls always run while a request of their service runs, they
are proposed as its calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from ldfi.experiments.analyze.words import counted

Times = Sequence[tuple[int, int]]
"""When some things began and ended: nanoseconds since the epoch."""


def loose_calls(times: Mapping[tuple[str, str], Times]) -> Iterator[str]:
    """Say which calls these are. ``times``: by service and point; of the requests themselves under
    the empty one."""
    for (service, point), calls in sorted(times.items()):
        requests = times.get((service, ""), ())
        if not point or not requests:
            continue
        inside = _within(calls, requests)
        where = (
            "each while a request of it runs: perhaps its requests make them. Pass the context on"
            " to whatever makes them"
            if inside == len(calls)
            else f"{inside:,} of them while a request of it runs"
        )
        yield (
            f"{counted(len(calls), 'call')} of {service} at {point} ran in traces of their own,"
            f" {where}. They are no requests and in no class."
        )


def _within(calls: Times, requests: Times) -> int:
    """Count the calls that lie within some request."""
    begun = sorted(requests)
    latest = list(accumulate((end for _, end in begun), max))
    places = ((bisect_right(begun, (start, 1 << 64)) - 1, end) for start, end in calls)
    return sum(place >= 0 and end <= latest[place] for place, end in places)
