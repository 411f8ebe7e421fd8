"""A time limit without a clock: a timer thread raises a flag and interrupts who asked for it.

The solver may not read the time (it is pure), and a SAT call could not look at a clock anyway; it
has to be interrupted from outside. Branching in Python polls the same flag.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class Deadline:
    """``with Deadline(seconds) as deadline``: ``deadline.passed`` turns true when time is up."""

    def __init__(self, seconds: float | None) -> None:
        self.passed = False
        self._interrupts: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._timer = None if seconds is None else threading.Timer(seconds, self._ring)
        if self._timer is not None:
            self._timer.daemon = True

    def __enter__(self) -> Deadline:
        if self._timer is not None:
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def on_pass(self, interrupt: Callable[[], None]) -> None:
        """Call ``interrupt`` when time is up (at once if it is up already)."""
        with self._lock:
            self._interrupts.append(interrupt)
            if self.passed:
                interrupt()

    def forget(self, interrupt: Callable[[], None]) -> None:
        """Do not call ``interrupt`` any more. Returns only when no call of it is under way."""
        with self._lock:
            self._interrupts.remove(interrupt)

    def _ring(self) -> None:
        with self._lock:
            self.passed = True
            for interrupt in self._interrupts:
                interrupt()
