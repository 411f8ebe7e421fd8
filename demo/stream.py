"""The way to another service's socket: httpcore's network interface over plain asyncio streams.

httpcore's own goes through anyio and asks the kernel about every idle connection on every request,
which is most of what a small request costs. asyncio knows already when a peer has hung up.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore


class Stream(httpcore.AsyncNetworkStream):
    """A connection. ``timeout`` is in seconds everywhere; None waits for ever."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _mapped(httpcore.ReadTimeout, httpcore.ReadError):
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _mapped(httpcore.WriteTimeout, httpcore.WriteError):
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise NotImplementedError("the demo's services speak plain HTTP")

    def get_extra_info(self, info: str) -> Any:
        """Only what httpcore asks of an idle connection: whether the peer has hung up."""
        return self._reader.at_eof() if info == "is_readable" else None


async def connect(host: str, port: int, timeout: float | None) -> Stream:
    """Open a connection. Raises httpcore.ConnectTimeout or httpcore.ConnectError."""
    with _mapped(httpcore.ConnectTimeout, httpcore.ConnectError):
        async with asyncio.timeout(timeout):
            return Stream(*await asyncio.open_connection(host, port))


@contextmanager
def _mapped(timed_out: type[Exception], failed: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:  # before OSError, of which it is one
        raise timed_out(str(error)) from error
    except OSError as error:
        raise failed(str(error)) from error
