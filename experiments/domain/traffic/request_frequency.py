"""How often the devices of a class ask, and which of them ask seldom.

Whoever is drawn as they come draws those that ask often: of devices of which half ask every second
and half every hour nearly all are of the first half, and a cache that these have hides what the
others suffer. A device asks *seldom* where a typical request is of one that asks :data:`RARE` times
as often or more. Counted are the requests that were heard of lately, so where devices ask alike
none does, however few of them are heard of.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

RARE: Final = 5.0
"""So many times as often others have to ask for a device to ask seldom."""
REMEMBERED: Final = 5_000
"""Devices after which the older half is forgotten."""
HORIZON: Final = 600.0
"""Seconds after which it is, too."""


@dataclass(slots=True)
class Frequency:
    """Counts the requests of devices, in two halves of which the older one is forgotten."""

    _newer: Counter[str] = field(default_factory=Counter)
    _older: Counter[str] = field(default_factory=Counter)
    _since: float = 0.0

    def add(self, device: str, now: float) -> int:
        """Count a request; return how many of the device were counted before. ``now``: Unix
        seconds."""
        if len(self._newer) >= REMEMBERED or now >= self._since + HORIZON:
            self._newer, self._older, self._since = Counter(), self._newer, now
        before = self._newer[device] + self._older[device]
        self._newer[device] += 1
        return before

    def seldom(self) -> tuple[float, float]:
        """Return the most requests that a device may be known of that asks seldom, and the share
        of all devices that do."""
        counts = list((self._newer + self._older).values())
        requests = sum(counts)
        if not requests:
            return 0.0, 0.0
        most = sum(each * each for each in counts) / requests / RARE
        return most, sum(each <= most for each in counts) / len(counts)
