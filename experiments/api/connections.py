"""Connections: how long one may take to say what it wants, and how many there may be.

Uvicorn waits for ever for the headers of a request, so whoever opens connections and says nothing
could have all descriptors there are, and with them the door that ``ldfi halt`` comes in by.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS: Final = 10.0
"""How long the headers of a request may take to come in."""

MAX_HEADERS: Final = 64 * 1024
"""Bytes that they may have."""

MOST: Final = 65_536
"""Descriptors that a process asks for at most."""

KEPT: Final = 256
"""Descriptors that are not for connections: files, the database, brokers, other services."""


class PatientConnection(AutoHTTPProtocol):  # type: ignore[misc,valid-type] # one of two, by what there is
    """One connection. One that has no request under way *idles*: when there are ``most``, the one
    that has idled longest gives way to a new one; where none idles, the new one is closed."""

    seconds: ClassVar[float] = HEADER_SECONDS
    most: ClassVar[int] = MOST
    _idle: ClassVar[dict[Any, None]] = {}
    _all: ClassVar[set[Any]] = set()

    _waiting: asyncio.TimerHandle | None = None
    _bytes: int = 0

    def connection_made(self, transport: Any) -> None:
        """Let it in, if there is room or somebody gives way."""
        super().connection_made(transport)
        if len(self._all) >= self.most and not self.oldest_gives_way():
            transport.abort()
            return
        self._all.add(self)
        self._wait()

    @classmethod
    def oldest_gives_way(cls) -> bool:
        """Close the one that has idled longest, in the loop's next turn; whether there is one."""
        oldest = next(iter(cls._idle), None)
        if oldest is not None:
            oldest.transport.abort()
            oldest._leave()
        return oldest is not None

    def data_received(self, data: bytes) -> None:
        """Read on, unless these are headers without end."""
        idle = self in self._idle
        super().data_received(data)
        if self._busy():
            self._stop_waiting()
        elif idle:
            self._bytes += len(data)
            if self._bytes > MAX_HEADERS:
                self.transport.abort()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request on it."""
        super().on_response_complete()
        if self in self._all and not self._busy():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._leave()
        super().connection_lost(exc)

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._stop_waiting()
        self._bytes = 0
        self._idle[self] = None
        self._waiting = self.loop.call_later(self.seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        self._idle.pop(self, None)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _leave(self) -> None:
        self._stop_waiting()
        self._all.discard(self)


def room() -> int:
    """Have as many descriptors as we may, and say how many of them are for connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(KEPT, max(soft, wanted) - KEPT)
