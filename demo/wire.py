"""HTTP/1.1 to one service, below httpx: plain asyncio, the parser that uvicorn uses, no pool.

httpcore lets a *connection* carry several requests at once, since HTTP/2 does. This one does it by
keeping a socket for each. So httpcore's pool, which looks at all of its connections and all of its
requests for every single request, has one connection per service to look at, and a burst costs no
more per request than a trickle.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

import httpcore
import httptools

Headers = list[tuple[bytes, bytes]]


class Wire(httpcore.AsyncConnectionInterface):
    """All sockets to one service at ``host:port``."""

    def __init__(self, service: bytes, host: str, port: int) -> None:
        self._service = service
        self._address = host, port
        self._idle: list[_Socket] = []

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request and read the whole answer. Raises httpcore's exceptions."""
        limits = request.extensions.get("timeout", {})
        message = await _serialized(request)
        socket = await self._socket(limits.get("connect"))
        try:
            async with asyncio.timeout(limits.get("read")):
                status, headers, body = await socket.exchange(message)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(f"nothing within {limits['read']} s") from error
        finally:
            if socket.reusable:
                self._idle.append(socket)
            else:
                socket.close()
        return httpcore.Response(status, headers=headers, content=body)

    async def _socket(self, seconds: float | None) -> _Socket:
        while self._idle:
            socket = self._idle.pop()
            if socket.reusable:
                return socket
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                _, socket = await loop.create_connection(_Socket, *self._address)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"no connection within {seconds} s") from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return socket

    async def aclose(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def info(self) -> str:
        return f"{self._address}, {len(self._idle)} idle sockets"

    def can_handle_request(self, origin: httpcore.Origin) -> bool:
        return origin.host == self._service

    def is_available(self) -> bool:
        return True

    def has_expired(self) -> bool:
        return False

    def is_idle(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False


async def _serialized(request: httpcore.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method, request.url.target)]
    lines += [b"%s: %s" % header for header in request.headers]
    assert not isinstance(request.stream, bytes)  # noqa: S101 - httpcore has made it a stream
    body = [part async for part in request.stream]  # type: ignore[union-attr]
    return b"\r\n".join([*lines, b"", b"".join(body)])


class _Socket(asyncio.Protocol):
    """One socket; one exchange at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[None] | None = None
        self._start()

    def _start(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: Headers = []
        self._body: list[bytes] = []
        self._kept_alive = False

    @property
    def reusable(self) -> bool:
        """Return whether the socket is open and between two exchanges."""
        return self._transport is not None and self._answered is None

    async def exchange(self, message: bytes) -> tuple[int, Headers, bytes]:
        """Send a request; status, headers and body of the answer."""
        assert self._transport is not None  # noqa: S101 - only open sockets are handed out
        self._start()
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        await self._answered
        if self._kept_alive:
            self._answered = None
        return self._parser.get_status_code(), self._headers, b"".join(self._body)

    def close(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(httpcore.RemoteProtocolError(str(error)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(httpcore.ReadError(f"the service hung up: {exc}"))

    def _fail(self, error: Exception) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; called by the parser."""
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body; called by the parser."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """End a message; called by the parser, which only now knows whether the socket stays
        open."""
        self._kept_alive = self._parser.should_keep_alive()
        if self._answered is not None:
            with suppress(asyncio.InvalidStateError):  # the caller has gone
                self._answered.set_result(None)
