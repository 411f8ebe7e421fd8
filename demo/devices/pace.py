"""How much of what was wanted the devices ask for: all of it, or what this machine can answer.

Where an answer takes a good part of a device's patience, faults that the application survives look
as if they hurt. So devices look every few seconds at how long they waited, and ask less, or more
again. The median decides: it does not move for the few whose requests are made to fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ldfi.demo.limits import PATIENCE

LOOK_SECONDS: Final = 3.0
LATE: Final = 1 / 4
"""Of patience: where the median is above, less is asked for; for many others it comes to all of
it."""

QUICK: Final = 1 / 10
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
    """``share``: of the requests that were wanted are made. ``patience``: seconds that a device
    waits."""

    share: float = 1.0
    patience: float = PATIENCE
    _waited: list[float] = field(default_factory=list)

    def saw(self, seconds: float) -> None:
        """Note how long a device waited, for an answer or until it had enough."""
        self._waited.append(seconds)

    def look(self) -> None:
        """Draw the conclusion from what was seen since the last look, if that is enough."""
        if len(self._waited) < ENOUGH:
            return
        took = median(self._waited)
        self._waited.clear()
        if took > LATE * self.patience:
            self.share = max(LEAST, self.share * FEWER)
        elif took < QUICK * self.patience:
            self.share = min(1.0, self.share * MORE)
