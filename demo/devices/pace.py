"""How much of what was wanted the devices ask for: all of it, or what this machine can answer.

Where an answer takes a good part of a device's patience, faults that the application survives look
as if they hurt. So devices look every few seconds at how long they waited, and ask less, or more
again. The median decides: it does not move for the few whose requests are made to fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ldfi.demo.devices.judge import PATIENCE

LOOK_SECONDS: Final = 3.0
LATE: Final = PATIENCE / 4
"""Seconds: where the median is above, less is asked for; it comes to patience for many others."""

QUICK: Final = PATIENCE / 10
LEAST: Final = 0.02
"""Less would help nobody: what is late then is so for others' sake, and nothing could be
decided on so few."""
ENOUGH: Final = 5
"""Answers from which on a median says anything."""

FEWER: Final = 0.6
MORE: Final = 1.15
"""Slowly up and fast down, as whoever shares a line does it."""


@dataclass(slots=True)
class Pace:
    """``share``: of the requests that were wanted are made. ``took``: seconds, for the median."""

    share: float = 1.0
    took: float = 0.0
    _waited: list[float] = field(default_factory=list)

    def saw(self, seconds: float) -> None:
        """Note how long a device waited, for an answer or until it had enough."""
        self._waited.append(seconds)

    def look(self) -> bool:
        """Draw the conclusion from what was seen since the last look; whether that was enough."""
        if len(self._waited) < ENOUGH:
            return False
        self.took = median(self._waited)
        self._waited.clear()
        if self.took > LATE:
            self.share = max(LEAST, self.share * FEWER)
        elif self.took < QUICK:
            self.share = min(1.0, self.share * MORE)
        return True
