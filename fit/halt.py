"""Halting an edge by itself, without anybody's network: no request is stamped while it holds.

Either of two says so: the variable ``FIT_HALT`` is ``1`` when the process starts, or the file that
``FIT_HALT_FILE`` names is there. The file is looked for a few times a second at most, and only
while rules are armed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from ldfi.fit.clock import steady

VARIABLE: Final = "FIT_HALT"
FILE: Final = "FIT_HALT_FILE"
LOOK_SECONDS: Final = 0.25


class LocalHalt:
    """``environ``: where both variables are."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = steady
    ) -> None:
        self._file = environ.get(FILE, "")
        self._always = environ.get(VARIABLE) == "1"
        self._clock = clock
        self._halted = False
        self._next = -1.0

    def holds(self) -> bool:
        """Return whether this edge is halted, as of a moment ago. Raises nothing."""
        if self._always or not self._file:
            return self._always
        now = self._clock()
        if now >= self._next:
            self._next = now + LOOK_SECONDS
            self._halted = os.path.lexists(self._file)
        return self._halted
