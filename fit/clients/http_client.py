"""http.client, and what sends through it and has no point of its own: urllib.request, xmlrpc.

The point lies where a request is sent. A connection that is ``refused`` fails there; any other
fault is met where the answer is read, and the request is not sent. ``error`` is answered with 503.
Answers are read from bytes by http.client itself, so that urllib.request raises its HTTPError of
them. ``delay`` and ``timeout`` end with the connection's own timeout. Connections of urllib3 are
left to its own point.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, Final

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.answers import answer_of, wire
from ldfi.fit.clients import http
from ldfi.fit.clients.http_file import Wire, slow_down
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import http_point
from ldfi.fit.protocol.urls import split_url
from ldfi.fit.slow import Slow

_ANSWER: Final = "_fit_answer"
"""On a connection whose request was not sent: what stands in for the answer, or comes slowly."""


def patch() -> None:
    """Make every request an injection point."""
    patching.put(HTTPConnection, "_send_output", _sending)
    patching.put(HTTPConnection, "send", _unless_answered)
    patching.put(HTTPConnection, "getresponse", _answered)


def _sending(original: Any) -> Any:
    def send_output(connection: Any, *body: Any, **options: Any) -> Any:
        connection.__dict__.pop(_ANSWER, None)
        urllib3: Any = sys.modules.get("urllib3.connection")
        if not armed() or (urllib3 and isinstance(connection, urllib3.HTTPConnection)):
            return original(connection, *body, **options)
        answer = inject.through(_SITE, None, connection)
        if answer is not None:
            setattr(connection, _ANSWER, answer)
        if isinstance(answer, Wire):
            del connection._buffer[:]
            return None
        hosts.guarded(_address, connection)
        return original(connection, *body, **options)

    return send_output


def _unless_answered(original: Any) -> Any:
    def send(connection: Any, data: Any) -> Any:
        if isinstance(connection.__dict__.get(_ANSWER), Wire):
            return None  # the body of a request that is not sent
        return original(connection, data)

    return send


def _answered(original: Any) -> Any:
    def getresponse(connection: Any) -> Any:
        answer = connection.__dict__.pop(_ANSWER, None)
        if answer is None:
            return original(connection)
        if isinstance(answer, Slow):
            return slowly(answer, connection)
        real, connection.sock = connection.sock, answer
        try:
            return original(connection)
        finally:
            if connection.sock is answer:
                connection.sock = real
            elif real is not None:
                real.close()

    def slowly(slow: Slow, connection: Any) -> Any:
        patience = _patience(connection)
        try:
            response = original(connection)
            slow_down(slow, response, patience, lambda: response.length)
        finally:
            slow.over()
        return response

    return getresponse


def _address(connection: Any) -> None:
    """Write our entry into the baggage where all may have it that read the request, or take it
    out."""
    lines = [line.partition(b":") for line in connection._buffer[1:]]
    pairs = [(name, value.strip()) for name, _, value in lines]
    onward = hosts.addressed(pairs, *_readers(connection))
    if onward is not None:
        connection._buffer[1:] = [name + b": " + value for name, value in onward]


def _readers(connection: Any) -> Iterator[str]:
    """List who can read a request: its host and, but for what a tunnel encrypts, a proxy."""
    yield _target(connection)[0]
    if not (connection._tunnel_host and isinstance(connection, HTTPSConnection)):
        yield connection.host


def _target(connection: Any) -> tuple[str, int | None, str]:
    """Read host, port and path; of a request to a proxy those that it is asked for."""
    asked = connection._buffer[0].split(b" ")[1].decode("latin-1")
    if connection._tunnel_host:
        return connection._tunnel_host, connection._tunnel_port, asked
    if asked.startswith("/"):
        return connection.host, connection.port, asked
    parts = split_url(asked)
    if not parts.host:
        return connection.host, connection.port, asked
    return parts.host, parts.port, parts.path or "/"


def _name(service: str, connection: Any) -> str:
    method = connection._buffer[0].partition(b" ")[0].decode("latin-1")
    host, port, path = _target(connection)
    return http_point(service, method, host, port, path.partition("?")[0], http.template())


def _effect(injection: Injection, connection: Any) -> Effect | None:
    patience = _patience(connection)
    if injection.kind == "slow":
        return Effect(injection.delay_ms / 1000, slow=True)
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, _late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, _late)
    if injection.kind in error.CONNECTING:
        return Effect(failure=error.connecting(injection.kind))
    if injection.kind == "reset":
        return Effect(failure=Wire(error.reset()))
    answer = _UNAVAILABLE if injection.kind == "error" else answer_of(injection.kind)
    return None if answer is None else Effect(failure=Wire(wire(answer)))


def _late() -> Wire:
    return Wire(error.marked(TimeoutError("timed out")))


def _patience(connection: Any) -> float | None:
    if connection.sock is not None:
        return connection.sock.gettimeout()  # type: ignore[no-any-return]
    given = connection.timeout
    return given if given is None or isinstance(given, int | float) else socket.getdefaulttimeout()


_SITE: Final = Site(_name, _effect)
_UNAVAILABLE: Final = answer_of(f"status:{error.STATUS}")
