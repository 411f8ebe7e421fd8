"""aiohttp's client.

The point is the sending of a request over its connection, beneath OpenTelemetry's trace config and
the client's middlewares. ``error`` is a ClientConnectorError, connection refused: an answer cannot
be made without aiohttp's insides. ``delay`` ends with a SocketTimeoutError after ``sock_read``; the
``total`` timeout and the caller's own cancel it as they would any request.
"""

from __future__ import annotations

import errno
from typing import Any

import aiohttp

from ldfi.fit import error, passage, patching
from ldfi.fit.clients import fakes, http
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import http_point
from ldfi.fit.strike import Strike


def patch() -> None:
    """Make every request of aiohttp's client an injection point."""
    patching.put(aiohttp.ClientRequest, "send", _async)


def _async(original: Any) -> Any:
    async def hit(fault: Any, go: Any, request: Any, conn: Any) -> Any:
        await fault
        return await go(request, conn)

    def send(request: Any, conn: Any) -> Any:
        if not armed() or fakes.passed():
            return original(request, conn)
        go = getattr(conn, fakes.ANSWER, original)
        fault = passage.through_async(_SITE, None, request, conn)
        return go(request, conn) if fault is None else hit(fault, go, request, conn)

    return send


def _name(service: str, request: Any, _conn: Any) -> str:
    url = request.url
    host = url.raw_host or ""
    return http_point(service, request.method, host, url.port, url.raw_path, http.template())


def _strike(injection: Injection, request: Any, conn: Any) -> Strike:
    if injection.kind == "error":
        refused = OSError(errno.ECONNREFUSED, f"Connect call failed ({error.TEXT})")
        return Strike(failure=aiohttp.ClientConnectorError(request.connection_key, refused))
    return delay(
        injection.delay_ms,
        conn.protocol.read_timeout,
        lambda: aiohttp.SocketTimeoutError("Timeout on reading data from socket"),
    )


_SITE = Site(_name, _strike)
