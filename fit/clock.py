"""The clock that leases run on: it only ever goes forward, at one second a second.

Wall clocks are set, stepped and wrong; a lease that ended by one would be prolonged by a jump.
"""

from __future__ import annotations

import time

if hasattr(time, "CLOCK_BOOTTIME"):

    def steady() -> float:
        """Count seconds from an arbitrary start, those spent in suspend included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    steady = time.monotonic
