"""HTTP/1.1 by hand, as little of it as ten thousand simulated edges in one process can afford.

:class:`Line` is a connection that is kept, for one question at a time; :class:`Offers` a stream of
server-sent events. Both read bodies with a length and in chunks, as servers write them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

END: Final = b"\r\n\r\n"
MOST: Final = 4 * 1024 * 1024
"""Bytes of a body, or of an event."""


class Refused(Exception):  # noqa: N818 - reads as what it is
    """Raised for an answer other than 200, and for a connection that ended. Data: ``how``."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is, and what is said to it with each question."""

    host: str
    port: int
    token: str

    def question(self, method: str, target: str, accept: str, body: bytes = b"") -> bytes:
        """Write a whole request."""
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return (
            f"{method} {target} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nAccept: {accept}\r\n"
            f"{length if body else ''}\r\n"
        ).encode() + body


class Line:
    """A connection that is made when it is needed, and kept. ``to``: the service."""

    def __init__(self, to: Address) -> None:
        self._to = to
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, target: str, body: bytes = b"") -> bytes:
        """Send a question and return the answer to it. Raises Refused, and OSError where nobody
        listens. What is cut short leaves no connection behind."""
        streams, self._streams = self._streams, None
        if streams is None or streams[0].at_eof():
            streams = await asyncio.open_connection(self._to.host, self._to.port, limit=MOST)
        reader, writer = streams
        try:
            writer.write(self._to.question(method, target, "application/json", body))
            answer = await _answer(reader)
        except BaseException:
            writer.transport.abort()
            raise
        self._streams = streams
        return answer

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def _answer(reader: asyncio.StreamReader) -> bytes:
    try:
        status, named = _head(await reader.readuntil(END))
        body = await _body(reader, named)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise Refused("closed before the answer") from error
    if status != 200:
        raise Refused(f"{status}")
    return body


async def _body(reader: asyncio.StreamReader, named: dict[str, str]) -> bytes:
    if named.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(named.get("content-length", "0")))
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return body


def _head(text: bytes) -> tuple[int, dict[str, str]]:
    """Read the status and the headers of an answer."""
    first, *lines = text.decode("latin-1").strip().split("\r\n")
    named = (line.partition(":") for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in named}


class Offers(asyncio.Protocol):
    """A stream of events. ``question``: what opens it. ``heard``: is given the data of each event;
    ``ended``: is told why it ended, nothing where it did so by itself, in order."""

    __slots__ = ("_chunks", "_ended", "_heard", "_question", "_told", "_transport", "seen")

    def __init__(
        self, question: bytes, heard: Callable[[bytes], None], ended: Callable[[str], None]
    ) -> None:
        self._question = question
        self._heard = heard
        self._ended = ended
        self._chunks: Chunks | None = None
        self._told = b""
        self._transport: asyncio.BaseTransport | None = None
        self.seen = 0.0
        """When something came last, by the loop's clock."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self.seen = asyncio.get_running_loop().time()
        transport.write(self._question)

    def data_received(self, data: bytes) -> None:
        """Take in what has come, and hand on what is whole."""
        self.seen = asyncio.get_running_loop().time()
        if self._chunks is None:
            head, end, data = (self._told + data).partition(END)
            if not end:
                self._told = head
                return
            status, named = _head(head)
            if status != 200 or not named.get("content-type", "").startswith("text/event-stream"):
                self.close(f"{status} {named.get('content-type', '')}")
                return
            self._told = b""
            self._chunks = Chunks()
        told = (self._told + self._chunks.read(data)).replace(b"\r\n", b"\n")
        *events, self._told = told.split(b"\n\n")
        for event in events:
            if event.startswith(b"data: "):
                self._heard(event[6:])
        if self._chunks.over:
            self.close("")

    def connection_lost(self, _error: Exception | None) -> None:
        """Tell that the other side has closed it."""
        self.close("closed by the service")

    def close(self, why: str = "") -> None:
        """Close it; whoever waits for that is told once."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            self._ended(why)


class Chunks:
    """A body in chunks, read piece by piece."""

    __slots__ = ("_left", "_rest", "over")

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0
        self.over = False

    def read(self, data: bytes) -> bytes:
        """Take in more; return what of the body came with it."""
        data, found = self._rest + data, []
        while data and not self.over:
            if self._left > 2:  # of a chunk, and the end of line behind it
                piece = data[: self._left - 2]
                found.append(piece)
                self._left -= len(piece)
                data = data[len(piece) :]
            elif self._left:
                ends, data = data[: self._left], data[self._left :]
                self._left -= len(ends)
            else:
                size, end, after = data.partition(b"\r\n")
                if not end:
                    break
                data, self.over = after, int(size, 16) == 0
                self._left = int(size, 16) + 2
        self._rest = data if not self.over else b""
        return b"".join(found)
