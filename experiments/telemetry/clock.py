"""What time it is, for everything in a process that orders, grants or lets expire.

The wall clock of a machine is set now and then, by people or by a time service, by seconds or by
hours. Nothing here may happen twice for that, or late, or never. So within a process time only goes
forward, at the pace of a clock that nobody sets; what the wall clock says is followed like this:

- up to :data:`STEP` apart, gradually;
- when it *steps* forward, at once: the calendar must hold. How far is kept, and budgets of the last
  hour and day look so much further back (``store/switches.py``), so a step renews none of them;
- when it steps back, never: time goes on, a tenth more slowly until the two agree again.

A step is counted, and the engine, which looks at every tick, disarms everything. Between two
processes the wall clock is all there is. One that is set while nothing runs cannot be noticed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from ldfi.experiments.telemetry.instruments import CLOCK_SKEW, CLOCK_STEPS

_log = logging.getLogger("ldfi")

STEP: Final = 1.0
"""Seconds by which the wall clock must change at once to have been set."""

SLEW: Final = 0.1
"""By how much faster or slower time goes until the clocks agree."""

AT_ONCE: Final = 0.01
"""Seconds within which both clocks must have been read, or it says nothing of their difference."""

REMEMBERED: Final = 90_000.0
"""Seconds for which steps forward are remembered: longer than any budget's time."""


Jump = tuple[float, float]
"""When time was jumped over, in Unix seconds, and how many seconds of it."""


class Clock:
    """``wall``: Unix seconds, as the machine has them. ``steady``: seconds that nobody sets."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps = 0
        """How often the wall clock was set."""
        self.last_step = 0.0
        """By how many seconds it was last; negative: back."""
        self._wall_clock, self._steady_clock = wall, steady
        self._lock = threading.Lock()
        self._jumps: list[Jump] = []
        self._steady, self._wall = self._both()
        self._now = self._wall

    def now(self) -> float:
        """Return what time it is, in Unix seconds: never less than was said before."""
        with self._lock:
            steady, wall = self._both()
            elapsed = steady - self._steady
            step = wall - self._wall - elapsed
            self._steady, self._wall = steady, wall
            mine = self._now + elapsed
            if abs(step) >= STEP:
                mine = self._stepped(step, mine)
            most = SLEW * elapsed
            self._now = mine + min(most, max(-most, wall - mine))
            return self._now

    @property
    def skew(self) -> float:
        """Seconds by which the wall clock was ahead of :meth:`now` when that was last asked."""
        return self._wall - self._now

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """The steps forward of the last day, as far as this process has seen them."""
        return tuple(each for each in self._jumps if each[0] >= self._now - REMEMBERED)

    def _stepped(self, step: float, mine: float) -> float:
        self.steps, self.last_step = self.steps + 1, step
        CLOCK_STEPS.inc()
        _log.warning("the machine's clock was set by %+.1f s", step)
        ahead = self._wall - mine
        if step < 0 or ahead <= 0:
            return mine
        self._jumps = [*self.jumps, (self._wall, ahead)]
        return self._wall

    def _both(self) -> tuple[float, float]:
        """Read both clocks at one moment: a process may be stopped for long between two lines."""
        before, wall, after = self._steady_clock(), self._wall_clock(), self._steady_clock()
        while after - before > AT_ONCE:
            before, wall, after = after, self._wall_clock(), self._steady_clock()
        return after, wall


CLOCK: Final = Clock()
"""That of this process."""


def now() -> float:
    """Return what time it is in this process, in Unix seconds: see :class:`Clock`."""
    said = CLOCK.now()
    CLOCK_SKEW.set(CLOCK.skew)
    return said
