"""The time of a log: how long a partition has been quiet, as far as somebody who reads it can say.

A trace is whole when nothing more of it has been written for a while. A reader cannot tell that by
its own clock: it may be behind, or the broker away, and then everything is quiet. So time passes

- by what is read: from the time at which one message was written to that of the next;
- by our clock, but only when we know that there is nothing that we have not read.

Never by more than a *step* at once: when nobody could write for a minute, that minute was not quiet
at all. Only differences are used, so no two clocks are ever compared.
"""

from __future__ import annotations


class LogTime:
    """The time of one partition, in seconds since we began to read it."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step
        self._written: float | None = None
        self._ours: float | None = None

    def read(self, written: float, ours: float) -> None:
        """Note that a message was read that was written then, by the broker's clock; it is
        ``ours`` now."""
        if self._written is not None:
            self._pass(written - self._written)
        self._written = max(written, self._written or written)
        self._ours = ours

    def idle(self, ours: float) -> None:
        """Note that by our clock it is ``ours``, and everything that was written has been read."""
        if self._ours is not None:
            self._pass(ours - self._ours)
            if self._written is not None:
                self._written += max(0.0, ours - self._ours)
        self._ours = ours

    def _pass(self, seconds: float) -> None:
        self.now += min(max(0.0, seconds), self._step)
