"""aiohttp's client.

The point is the sending of a request over its connection, beneath OpenTelemetry's trace config and
the client's middlewares. ``error`` is a ClientConnectorError, connection refused. ``delay`` and
``timeout`` end with a SocketTimeoutError after ``sock_read``; the ``total`` timeout and the
caller's own cancel a ``delay`` as they would any request. Answers are bytes that aiohttp's own
parser reads; nothing is sent, and the connection is closed afterwards. A ``slow`` body is held back
before the parser (:mod:`ldfi.fit.clients.aiohttp_slow`): ``sock_read`` starts anew with each piece.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import aiohttp
from multidict import CIMultiDict

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.answers import Reply, answer_of, wire
from ldfi.fit.clients import fakes, http
from ldfi.fit.clients.aiohttp_slow import Sluice
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.kinds import FaultKind
from ldfi.fit.protocol.points import http_point
from ldfi.fit.slow import Slow


def patch() -> None:
    """Make every request of aiohttp's client an injection point."""
    patching.put(aiohttp.ClientRequest, "send", _async)


def _async(original: Any) -> Any:
    async def hit(fault: Any, go: Any, request: Any, conn: Any) -> Any:
        answer = await fault
        if isinstance(answer, Slow):
            Sluice(conn.protocol, answer)
            return await go(request, conn)
        if answer is None:
            return await go(request, conn)
        conn.protocol.transport = _Mute(conn.protocol.transport)
        response = await original(request, conn)
        _answer(conn.protocol, answer)
        return response

    def send(request: Any, conn: Any) -> Any:
        if not armed():
            return original(request, conn)
        hosts.guarded(_address, request)
        if fakes.passed():
            return original(request, conn)
        go = getattr(conn, fakes.ANSWER, original)
        fault = inject.through_async(_SITE, None, request, conn)
        return go(request, conn) if fault is None else hit(fault, go, request, conn)

    return send


def _address(request: Any) -> None:
    """Write our entry into the baggage where all may have it that read the request, or take it
    out."""
    headers = hosts.addressed(request.headers.items(), *_readers(request))
    if headers is not None:
        request.headers = CIMultiDict(headers)


def _readers(request: Any) -> Iterator[str]:
    """List who can read a request: its host and, where it is not encrypted, a proxy."""
    yield request.url.raw_host or ""
    if request.proxy is not None and not request.is_ssl():
        yield request.proxy.raw_host or ""


def _name(service: str, request: Any, _conn: Any) -> str:
    url = request.url
    host = url.raw_host or ""
    return http_point(service, request.method, host, url.port, url.raw_path, http.template())


def _effect(injection: Injection, request: Any, conn: Any) -> Effect | None:
    if injection.kind == "error":
        refused = OSError(errno.ECONNREFUSED, f"Connect call failed ({error.TEXT})")
        return Effect(failure=aiohttp.ClientConnectorError(request.connection_key, refused))
    if injection.kind == "slow":
        by_a_fake = hasattr(conn, fakes.ANSWER)  # which knows nothing of slow bodies
        return None if by_a_fake else Effect(injection.delay_ms / 1000, slow=True)
    patience = conn.protocol.read_timeout
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, _late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, _late)
    if injection.kind in error.CONNECTING:
        return Effect(failure=_unconnected(injection.kind, request, conn))
    if injection.kind == "reset":
        torn = error.reset()
        return Effect(failure=error.marked(aiohttp.ClientOSError(*torn.args), torn))
    answer = answer_of(injection.kind)
    return None if answer is None else Effect(failure=answer)


def _late() -> Any:
    return error.marked(aiohttp.SocketTimeoutError("Timeout on reading data from socket"))


def _unconnected(kind: FaultKind, request: Any, conn: Any) -> Any:
    cause = error.connecting_at(kind, conn.protocol.transport.get_extra_info("peername"))
    made = getattr(aiohttp, error.CONNECTING[kind]["aiohttp"])
    return error.marked(made(request.connection_key, cause), cause)


def _answer(protocol: Any, answer: Reply) -> None:
    """Have aiohttp read an answer as if it had come over the connection, which is lost after that
    where the answer is cut: who reads what has come gets that first."""
    protocol.data_received(wire(answer))
    if answer.cut:
        protocol.transport.abort()


class _Mute:
    """A connection's transport on which nothing is sent any more. It is closed as any."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, _data: Any) -> None:
        """Send nothing."""

    def writelines(self, _data: Any) -> None:
        """Send nothing."""

    def write_eof(self) -> None:
        """End nothing."""


_SITE = Site(_name, _effect)
