"""On what share of a class's requests devices report, of those whose trace is whole."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

REMEMBERED: Final = 1_000
"""Requests of which it is known when they came."""
HEARD_OF: Final = 50
"""Requests from which on it is said what share of them devices report on."""
SECONDS: Final = 600.0
"""What is older says nothing of how it is now."""


@dataclass(slots=True)
class Reporting:
    """Counts both where traces and reports meet. Times are Unix seconds."""

    _arrived: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _reported: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def arrive(self, now: float) -> None:
        """Note that the trace of a request is whole, whether or not a device will report on it."""
        self._arrived.append(now)

    def report(self, now: float) -> None:
        """Note that a device has reported on a request whose trace is whole."""
        self._reported.append(now)

    def share(self, now: float) -> float | None:
        """Return the share of requests on which devices reported of late, the largest that chance
        leaves plausible (two standard deviations); None where too few came to tell."""
        if not (self._arrived and self._reported):
            return None
        since = max(self._arrived[0], self._reported[0], now - SECONDS)
        of = sum(at >= since for at in self._arrived)
        if of < HEARD_OF:
            return None
        share = min(1.0, sum(at >= since for at in self._reported) / of)
        return min(1.0, share + 2 * math.sqrt(share * (1 - share) / of))

    def copy(self) -> Reporting:
        """Make another that knows the same."""
        return Reporting(self._arrived.copy(), self._reported.copy())
