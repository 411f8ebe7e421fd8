"""A lean client for load: keep-alive connections to one target, HTTP/1.1, without a task a request.

What cannot be sent because every connection is busy waits, and its latency goes on: it counts from
when the request was due. A connection that the target closed while it was idle is no failure of the
request, which is sent again on another one, once. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httptools

from ldfi.errors import InvalidReplay

SWEEP: Final = 0.05
"""Seconds between two looks for requests that nobody answered in time."""


@dataclass(slots=True, eq=False)
class Job:
    """A request that is due. ``done`` gets status and body, or None and why there is no answer."""

    wire: bytes
    due: float
    done: Callable[[int | None, bytes], None]
    head: bool = False
    again: bool = True
    over: bool = False
    connection: Connection | None = None

    def finish(self, status: int | None, body: bytes) -> None:
        """Report the outcome, once."""
        if not self.over:
            self.over = True
            self.done(status, body)


@dataclass(frozen=True, slots=True)
class TargetAddress:
    """Where a target is. ``base``: a path that comes before every request's own."""

    url: str
    host: str
    port: int
    tls: bool
    base: str

    @classmethod
    def of(cls, url: str) -> TargetAddress:
        """Read a URL. Raises InvalidReplay."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise InvalidReplay(f"{url!r} is not a target: {error}") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
            raise InvalidReplay(f"{url!r} is not a target; give a URL of http or https")
        return cls(url, parts.hostname, port, parts.scheme == "https", parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """The ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class Connection(asyncio.Protocol):
    """One connection: it has at most one request under way."""

    def __init__(self, pool: Connections) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._body: list[bytes] = []
        self._whole = self._sized = False
        self.job: Job | None = None
        self.used = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def send(self, job: Job) -> None:
        """Send a request; the connection is idle."""
        self.job, job.connection = job, self
        self._parser = httptools.HttpResponseParser(self)
        self._body = []
        self._whole = self._sized = False
        if self._transport is not None:
            self._transport.write(job.wire)

    def close(self) -> None:
        """Close it: whatever is under way is given up."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; what is no HTTP ends the connection."""
        if self._parser is None or self.job is None:
            self.close()
            return
        parser = self._parser
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._whole:
                self.close()
                return
        if self._whole:
            self._answered(parser)

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Note whether the answer says where it ends (httptools calls this)."""
        self._sized = self._sized or name.lower() in {b"content-length", b"transfer-encoding"}

    def on_headers_complete(self) -> None:
        """End an answer to HEAD, which has nothing more (httptools calls this)."""
        if self.job is not None and self.job.head:
            self._whole = True

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body (httptools calls this)."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Note that the answer is whole, if it is no interim one (httptools calls this)."""
        if self._parser is not None and self._parser.get_status_code() >= 200:
            self._whole = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell what becomes of the request under way."""
        job, parser, self.job = self.job, self._parser, None
        self._pool.lost(self)
        if job is None or job.over:
            return
        started = parser is not None and parser.get_status_code() > 0
        if started and parser is not None and not self._sized and exc is None:
            job.finish(parser.get_status_code(), b"".join(self._body))  # it ends where it ends
        elif self.used and job.again and not started:
            job.again, job.connection = False, None
            self._pool.submit(job)
        else:
            job.finish(None, str(exc or "the connection was closed").encode())

    def _answered(self, parser: httptools.HttpResponseParser) -> None:
        job, self.job = self.job, None
        keeps = parser.should_keep_alive() and (self._sized or (job is not None and job.head))
        self.used = True
        if job is not None:
            job.finish(parser.get_status_code(), b"".join(self._body))
        if keeps or parser.get_status_code() in {204, 304}:
            self._pool.free(self)
        else:
            self.close()


class Connections:
    """As many connections to one target as there is work for, up to ``most``.

    ``patience``: seconds from when a request was due until it is given up.
    """

    def __init__(self, origin: TargetAddress, most: int, patience: float) -> None:
        self.origin = origin
        self.patience = patience
        self._most = most
        self._open = 0
        self._idle: list[Connection] = []
        self._waiting: deque[Job] = deque()
        self._pending: deque[Job] = deque()
        self._connecting: set[asyncio.Task[None]] = set()
        self._tls = ssl.create_default_context() if origin.tls else None

    def start(self, job: Job) -> None:
        """Take on a request that is due now."""
        self._pending.append(job)
        self.submit(job)

    def submit(self, job: Job) -> None:
        """Send a request, or let it wait for a connection."""
        if self._idle:
            self._idle.pop().send(job)
        elif self._open < self._most:
            self._open += 1
            task = asyncio.get_running_loop().create_task(self._connect(job))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
        else:
            self._waiting.append(job)

    def free(self, connection: Connection) -> None:
        """Give a connection its next request."""
        job = self._next()
        if job is None:
            self._idle.append(connection)
        else:
            connection.send(job)

    def lost(self, connection: Connection) -> None:
        """Forget a connection; who waits for one gets another."""
        self._open -= 1
        if connection in self._idle:
            self._idle.remove(connection)
        job = self._next()
        if job is not None:
            self.submit(job)

    def sweep(self, now: float) -> None:
        """Give up requests that were not answered in time."""
        while self._pending and (
            self._pending[0].over or self._pending[0].due + self.patience <= now
        ):
            job = self._pending.popleft()
            if not job.over:
                job.finish(None, f"no whole answer within {self.patience:g} s".encode())
                if job.connection is not None and job.connection.job is job:
                    job.connection.close()

    @property
    def settled(self) -> bool:
        """Return whether nothing is under way."""
        return not self._pending

    async def close(self) -> None:
        """Close all connections."""
        for task in list(self._connecting):
            task.cancel()
        for connection in list(self._idle):
            connection.close()
        await asyncio.sleep(0)

    def _next(self) -> Job | None:
        while self._waiting:
            job = self._waiting.popleft()
            if not job.over:
                return job
        return None

    async def _connect(self, job: Job) -> None:
        loop = asyncio.get_running_loop()
        connection = Connection(self)
        try:
            async with asyncio.timeout(self.patience):
                await loop.create_connection(
                    lambda: connection, self.origin.host, self.origin.port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            self._open -= 1
            job.finish(None, (str(error) or "nobody answered in time").encode())
            following = self._next()
            if following is not None:
                self.submit(following)
            return
        if job.over:  # while the connection was made, patience ended
            self.free(connection)
        else:
            connection.send(job)
