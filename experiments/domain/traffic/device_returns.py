"""How soon devices come again, and so for how long it has to be watched what becomes of one.

Of some hundreds of devices is noted when each asked first, and how long it was until it asked
again. Of those that have not come yet it is only known that it takes longer, so the share that has
come by some time is estimated as of censored lifetimes (Kaplan and Meier, "Nonparametric estimation
from incomplete observations", Journal of the American Statistical Association 53, 1958). Times are
those at which requests began.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 60.0
"""Seconds for which a device is watched at most, unless somebody asks for more. Nothing is tried
before this is over where devices do not come again, so it is short."""

NEARLY_ALL: Final = 0.95
"""Share of the devices that come again at all whose return is waited for."""

HARDLY_ANY: Final = 0.05
"""Where a smaller share comes again in the longest time, nobody is waited for."""

MARGIN: Final = 1.25
COHORT: Final = 500
FEW: Final = 20
"""With fewer devices that were watched for so long nothing is known before the longest time is
over."""

RENEWED: Final = 900.0
"""Seconds after which others are looked at: habits change."""


@dataclass(slots=True)
class Returns:
    """Of one request class. Times are nanoseconds since the epoch, what is returned is seconds."""

    _began: dict[str, int] = field(default_factory=dict)
    """Device → its first request."""
    _gaps: dict[str, float] = field(default_factory=dict)
    """Device → seconds until it came again."""
    _first: int | None = None
    _latest: int = 0
    _former: float | None = None
    """What those before have shown."""

    def add(self, device: str, start: int) -> None:
        """Take in that a device has asked."""
        first = self._first = start if self._first is None else min(self._first, start)
        self._latest = max(self._latest, start)
        if self._latest - first > RENEWED * 1e9:
            former = self.stay()
            self._began, self._gaps, self._first, self._former = {}, {}, self._latest, former
        began = self._began.get(device)
        if began is None:
            if len(self._began) < COHORT:
                self._began[device] = start
        elif device not in self._gaps:
            self._gaps[device] = abs(start - began) / 1e9

    def stay(self) -> float | None:
        """Return for how long to watch a device from one of its requests on: until nearly all that
        come again have, :data:`LONGEST` at most; 0 where hardly any comes again, None where it is
        not known yet."""
        for_long = self._first is not None and self._latest - self._first >= LONGEST * 1e9
        if self._former is not None and not for_long:
            return self._former
        share, shares = 0.0, list[tuple[float, float]]()
        for after, came, there in self._lifetimes():
            share += (1 - share) * came / there
            shares.append((after, share))
        if for_long and share < HARDLY_ANY:
            return 0.0
        enough = NEARLY_ALL * (share if for_long else 1.0)
        watched = sorted((self._latest - began) / 1e9 for began in self._began.values())
        reached = next(
            (
                after
                for after, share in shares
                if share >= enough
                and (for_long or len(watched) - bisect_left(watched, after) >= FEW)
            ),
            None,
        )
        return None if reached is None else min(LONGEST, math.ceil(MARGIN * reached))

    def _lifetimes(self) -> list[tuple[float, int, int]]:
        """List after how long devices came again, how many did just then, and how many had not
        before and were watched for as long."""
        gaps = self._gaps
        lives = sorted(
            (gaps.get(device, (self._latest - began) / 1e9), device in gaps)
            for device, began in self._began.items()
        )
        return [
            (after, 1, len(lives) - at)
            for at, (after, came) in enumerate(lives)
            if came and after <= LONGEST
        ]
