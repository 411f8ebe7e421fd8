"""How often a caller may call, and devices how much they may send: token buckets in memory.

A bucket holds up to ``burst`` requests and fills at ``per_second``. Each process counts for itself:
behind two API processes a caller has twice as much. Addresses are those of the connection; behind
a proxy, name it (``FORWARDED_ALLOW_IPS``), or all share one bucket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import ceil
from typing import Final

from ldfi.experiments.api.problems import Problem


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests ``per_second`` in the long run, ``burst`` at once."""

    per_second: float
    burst: int


PEOPLE: Final = Rate(50, 200)
EDGES: Final = Rate(5_000, 20_000)
"""For one token, which all edges of a fleet may share."""
EDGE: Final = Rate(20, 100)
"""For one of them, by its name: it asks for rules about once a second."""
INGEST: Final = Rate(5_000, 10_000)
DEVICES: Final = Rate(100, 1_000)
"""For one address: all devices share a token, and one must not speak for all. A request counts once
for each ``PART`` of its body, so 100 a second are some two thousand metrics."""
PART: Final = 4_096
"""Bytes."""
UNSAID: Final = 64
"""Parts that a body counts for which does not say its length."""
STRANGERS: Final = Rate(0.5, 20)
"""For one address: failed attempts to authenticate."""

MAX_BUCKETS: Final = 100_000


class RateLimiter:
    """Buckets by key. ``clock`` gives seconds that only go forward."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at: dict[Hashable, float] = {}

    def take(self, key: Hashable, rate: Rate, parts: int = 1) -> None:
        """Count a request, as ``parts`` of them if it is large, but never as more than ``burst``.
        Raises Problem 429 when the bucket is empty.

        Of a bucket only one number is kept: the instant at which it will be full again.
        """
        now = self._clock()
        parts = min(parts, rate.burst)
        full_at = max(self._full_at.get(key, now), now) + parts / rate.per_second
        wait = full_at - now - rate.burst / rate.per_second
        if wait > _ROUNDING:
            seconds = max(1, ceil(wait))
            raise Problem(
                429,
                "rate-limited",
                f"more than {rate.burst} requests at once, or {rate.per_second:g} a second; "
                f"try again in {seconds} s",
                {"Retry-After": str(seconds)},
            )
        if len(self._full_at) >= MAX_BUCKETS and key not in self._full_at:
            self._make_room(now)
        self._full_at[key] = full_at

    def _make_room(self, now: float) -> None:
        """Forget the buckets that are full; when none is, those that are nearest to it."""
        kept = sorted(
            ((key, at) for key, at in self._full_at.items() if at > now), key=lambda item: item[1]
        )
        self._full_at = dict(kept[-MAX_BUCKETS // 2 :])


_ROUNDING = 1e-9
