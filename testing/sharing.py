"""What the requests of an application share: a circuit breaker, a pool of connections.

    breaker = Breaker(failures=5, seconds=10)

    def boot(request):
        try:
            breaker.call(request, "api>http:GET:ratings/stars")
        except CallFailed:
            request.call("popular")          # the fallback: but see Breaker

Requests that share something are not independent: what is done to one is felt by the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ldfi.testing.programs import PATIENCE, Caller, CallFailed, Unserved


@dataclass
class Breaker:
    """Opens for ``seconds`` when so many calls have failed (``failures``) within as long.

    While it is open no call is made. With ``fatal`` the request fails then: the fallback is for
    calls that fail, and nobody thought of an open breaker. Otherwise it is as if the call failed.
    """

    failures: int = 5
    seconds: float = 10.0
    fatal: bool = True
    opened: int = 0
    """How often it has opened."""
    _until: float = 0.0
    _failed: deque[float] = field(default_factory=deque)

    def call(
        self, request: Caller, point: str, does: Callable[[Caller], object] | None = None
    ) -> None:
        """Call ``point``, which then ``does`` something, unless it is open. Raises CallFailed, or
        Unserved where it is open."""
        now = request.now
        if now < self._until:
            raise (Unserved if self.fatal else CallFailed)(point)
        try:
            request.call(point, does)
        except CallFailed:
            self._failed.append(now)
            while self._failed[0] < now - self.seconds:
                self._failed.popleft()
            if len(self._failed) >= self.failures:
                self._failed.clear()
                self._until = now + self.seconds
                self.opened += 1
            raise


@dataclass
class Pool:
    """So many connections. One is not given back for ``seconds`` when a call hangs or fails on it.

    ``inside``: it is the call itself that waits for a connection in vain, and fails; otherwise the
    request fails before any call is made.
    """

    size: int = 5
    seconds: float = 10.0
    inside: bool = False
    _taken: list[float] = field(default_factory=list)

    def call(self, request: Caller, point: str) -> None:
        """Call ``point`` over a connection. Raises CallFailed, or Unserved where none is free."""
        now, began = request.now, request.clock
        self._taken = [until for until in self._taken if now < until]
        if len(self._taken) >= self.size:
            if self.inside:
                with suppress(CallFailed):
                    request.call(point, _refused)
            raise Unserved(point)
        try:
            request.call(point)
        except CallFailed:
            self._taken.append(now + self.seconds)
            raise
        if request.clock - began > PATIENCE:
            self._taken.append(now + self.seconds)


def _refused(_: Caller) -> None:
    raise Unserved("no connection is free")
