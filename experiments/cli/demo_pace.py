"""How fast the demo's devices ask, as they say it themselves, and what a campaign makes of that."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

CLEARLY: Final = 0.9
"""Share of the requests that were wanted below which it is said that there are fewer."""

LARGE_ARM: Final = 0.3
"""The largest share of devices that is treated where there are few requests."""

_KINDS: Final = {"boot": 0.5, "play": 0.25, "search": 0.25}


@dataclass(frozen=True, slots=True)
class Asking:
    """Requests a second that the devices make, and that were wanted; seconds that the median answer
    took, 0 where nobody knows."""

    asked: float
    wanted: float
    took: float = 0.0

    @property
    def share(self) -> float:
        """Tell how much of what was wanted is asked for."""
        return self.asked / self.wanted

    @property
    def fewer(self) -> bool:
        """Whether that is clearly less."""
        return self.share < CLEARLY

    def __str__(self) -> str:
        took = f"{self.took:.1f} s" if self.took >= 1 else f"{1000 * self.took:.0f} ms"
        late = f", half of them answered within {took}" if self.took else ""
        return f"{self.asked:.3g} of {self.wanted:.3g} requests a second{late}"


class DevicesHeard:
    """What the devices say on their standard output, read as it comes so that they never wait."""

    def __init__(self, said: IO[str]) -> None:
        self._said = said
        self._any = threading.Event()
        self.newest: Asking | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def first(self, seconds: float) -> Asking | None:
        """Wait for the first word; None where there is none within so many seconds."""
        self._any.wait(seconds)
        return self.newest

    def _read(self) -> None:
        try:
            for line in self._said:
                self.newest = Asking(**json.loads(line))
                self._any.set()
        except (ValueError, TypeError, OSError):
            return  # it is closed, for the demo is over


def rates(in_all: float) -> str:
    """Divide requests a second among the classes, as the devices are told."""
    return ",".join(f"{kind}={in_all * part:g}" for kind, part in _KINDS.items())


def fitting(definition: Mapping[str, Any], asking: Asking | None) -> dict[str, Any]:
    """Fit a campaign to the requests that there are: where these are fewer, more of them are
    treated, up to :data:`LARGE_ARM`, so that a window still decides. Simulated members feel no
    pain."""
    share = asking.share if asking is not None and asking.fewer else 1.0
    treated = max(definition["treatment"], min(LARGE_ARM, definition["treatment"] / share))
    return {**definition, "treatment": round(treated, 2)}
