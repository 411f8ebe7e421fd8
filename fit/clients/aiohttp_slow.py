"""Bodies that come slowly, for aiohttp: between a connection's transport and its protocol.

So aiohttp reads, times out and closes as it does with any connection. While bytes are held, nothing
more is read from the socket; that the other end has closed is told when they have come.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from ldfi.fit.slow import Pace, Slow, body_length

_END: Final = b"\r\n\r\n"
_LONGEST: Final = 1 << 20
"""Bytes of headers: aiohttp itself has refused such by then."""

_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})")
_OPEN: Final = object()


class _Tap:
    """A connection's transport, of which reading can be held up."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._held = False
        self._paused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def pause_reading(self) -> None:
        """Read no more: aiohttp has enough for now."""
        self._paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, unless we have enough."""
        self._paused = False
        self.hold(self._held)

    def hold(self, held: bool) -> None:
        """Read no more, or on unless aiohttp has enough."""
        self._held = held
        if held:
            self._transport.pause_reading()
        elif not self._paused:
            self._transport.resume_reading()


class Sluice(asyncio.Protocol):
    """Stands before the protocol of one call, and goes when its answer's body has come."""

    def __init__(self, protocol: Any, slow: Slow) -> None:
        """Take the place of ``protocol`` at its transport; ``slow`` is asked once headers come."""
        self._protocol = protocol
        self._transport: Any = protocol.transport
        self._slow = slow
        self._loop = asyncio.get_running_loop()
        self._held = bytearray()
        self._pace: Pace | None = None
        self._at = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self._lost: Any = _OPEN
        self._tap = protocol.transport = _Tap(self._transport)
        self._transport.set_protocol(self)

    def data_received(self, data: bytes) -> None:
        """Pass headers on, and hold what comes of the body until it may come."""
        self._held += data
        if self._pace is None:
            self._read_head()
        else:
            self._go_on()

    def eof_received(self) -> bool | None:
        """Pass on that the other end says no more, when all has come that it said."""
        self._ended = True
        return True if self._held else self._protocol.eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Pass on that there is no connection any more, when all has come that came over it; at
        once where the caller has closed it."""
        self._slow.over()
        self._lost = exc
        if not self._held or self._protocol.transport is not self._tap:
            self._stop()
            self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._protocol.resume_writing()

    def _read_head(self) -> None:
        while True:
            head, end, _ = bytes(self._held).partition(_END)
            if not end and len(head) <= _LONGEST:
                return  # there is more of it to come
            status = _STATUS.match(head)
            if not end or status is None:
                self._go()
                return
            head += end
            del self._held[: len(head)]
            code = int(status[1])
            if not 100 <= code < 200 or code == 101:
                break
            self._protocol.data_received(head)  # 100 Continue, 103 Early Hints: another follows
        self._pace = self._slow.begun(lambda: body_length(code, _named(head)))
        self._protocol.data_received(head)
        if self._pace is None:
            self._go()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Pass on what may come, and wait for the next."""
        while self._held and self._pace is not None and self._timer is None:
            size = self._pace.size(self._at, len(self._held))
            wait = self._pace.due(self._at)
            if wait > 0:
                self._timer = self._loop.call_later(wait, self._woken)
                break
            self._at += size
            if self._at >= (self._pace.length or 0):
                self._go()
                return
            piece = bytes(self._held[:size])
            del self._held[:size]
            self._protocol.data_received(piece)
        if self._lost is _OPEN:
            self._tap.hold(bool(self._held))

    def _woken(self) -> None:
        self._timer = None
        self._go_on()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go(self) -> None:
        """Hand the connection over: all that is left is none of ours."""
        self._slow.over()
        self._stop()
        self._transport.set_protocol(self._protocol)
        if self._protocol.transport is self._tap:
            self._protocol.transport = self._transport
        rest, self._held = bytes(self._held), bytearray()
        if self._lost is _OPEN:
            self._tap.hold(False)
        if rest:
            self._protocol.data_received(rest)
        if self._lost is not _OPEN:
            self._protocol.connection_lost(self._lost)
        elif self._ended and not self._protocol.eof_received():
            self._transport.close()


def _named(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    split = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in split if name}
