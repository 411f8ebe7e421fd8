"""requests, urllib3, and all that sends through urllib3 2.

The point is each attempt that a connection pool makes: beneath urllib3's own retries, redirects
and OpenTelemetry's instrumentations of both libraries. ``error`` is answered with 503, so that a
``Retry`` with a ``status_forcelist`` retries it; ``delay`` and ``timeout`` end with a
ReadTimeoutError, which requests turns into its own ReadTimeout. Other answers are read from bytes,
``refused`` and ``reset`` are what the connection raises by itself. A ``slow`` body comes slowly out
of the connection, so that the standard library reads it, and times out over it, as any.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from typing import Any, Final

from urllib3 import HTTPHeaderDict
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import NameResolutionError, NewConnectionError, ReadTimeoutError
from urllib3.response import HTTPResponse as Urllib3Response
from urllib3.util.timeout import Timeout

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.answers import Reply, answer_of, wire
from ldfi.fit.clients import fakes, http
from ldfi.fit.clients.http_file import Wire, slow_down
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import http_point
from ldfi.fit.protocol.urls import split_url
from ldfi.fit.slow import Slow


def patch() -> None:
    """Make urllib3's connection pools injection points."""
    patching.put(HTTPConnectionPool, "_make_request", _sync)


def _sync(original: Any) -> Any:
    def make_request(pool: Any, conn: Any, method: str, url: str, **options: Any) -> Any:
        if armed() and not fakes.passed():
            answer = inject.through(_SITE, None, pool, conn, method, url, options)
            if isinstance(answer, Slow):
                hosts.guarded(_address, pool, url, options)
                return slowly(answer, pool, conn, method, url, options)
            if answer is not None:
                if options.get("response_conn") is not None:
                    pool._put_conn(conn)  # it was never used: back into the pool at once
                if options.get("preload_content", True):
                    answer.read(decode_content=options.get("decode_content"), cache_content=True)
                return answer
            fakes.let_through()
        if armed():
            hosts.guarded(_address, pool, url, options)
        return original(pool, conn, method, url, **options)

    def slowly(slow: Slow, pool: Any, conn: Any, method: str, url: str, options: Any) -> Any:
        preload = options.get("preload_content", True)
        patience = _patience(options.get("timeout"))
        try:
            response = original(pool, conn, method, url, **{**options, "preload_content": False})
            _slow_down(slow, response, patience)
        finally:
            slow.over()
        if preload:
            response.read(decode_content=options.get("decode_content"), cache_content=True)
        return response

    return make_request


def _slow_down(slow: Slow, response: Any, patience: float | None) -> None:
    """Have the body of an answer come slowly, where it is to: out of the socket's file."""
    read = getattr(response, "_original_response", None)
    if isinstance(read, HTTPResponse):  # and no answer of HTTP/2
        slow_down(slow, read, patience, lambda: response.length_remaining)


def _address(pool: Any, url: str, options: Any) -> None:
    """Write our entry into the baggage where all may have it that read the request, or take it
    out. The headers themselves belong to the caller, and so to other calls, too."""
    headers = options.get("headers") or {}
    onward = hosts.addressed(headers.items(), *_readers(pool, url))
    if onward is not None:
        options["headers"] = _like(headers, onward)


def _readers(pool: Any, url: str) -> Iterator[str]:
    """List who can read a request: its host and, where it is not encrypted, a proxy."""
    yield pool.host
    plain = pool.scheme == "http" or not url.startswith("/")
    if plain and pool.proxy is not None:
        yield pool.proxy.host
    if plain and (socks := pool.conn_kw.get("_socks_options")):
        yield socks["proxy_host"] or ""
    if not url.startswith("/"):  # whole, when it is a proxy that is asked
        yield split_url(url).host or pool.host


def _like(headers: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """Make headers of pairs, of the caller's own kind where that can hold them: botocore asks
    its own for names in any case."""
    if len({name for name, _ in pairs}) < len(pairs) or not hasattr(headers, "copy"):
        return HTTPHeaderDict(pairs)
    made = headers.copy()
    made.update(pairs)
    return made


def _name(service: str, pool: Any, _conn: Any, method: str, url: str, _options: Any) -> str:
    rule = http.rule.get()
    if rule is not None and (known := rule(service)):
        return known
    if url.startswith("/"):
        path = url.partition("?")[0]
        return http_point(service, method, pool.host, pool.port, path, http.template())
    parts = split_url(url)  # whole, when it goes through a proxy
    host = parts.host or pool.host
    return http_point(service, method, host, parts.port, parts.path or "/", http.template())


def _effect(
    injection: Injection, pool: Any, conn: Any, method: str, url: str, options: Any
) -> Effect | None:
    patience = _patience(options.get("timeout"))
    late = functools.partial(_late, pool, url, patience)
    if injection.kind == "slow":
        return None if fakes.answers() else Effect(injection.delay_ms / 1000, slow=True)
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, late)
    if injection.kind in error.CONNECTING:
        cause = error.connecting(injection.kind)
        made = _UNCONNECTED[error.CONNECTING[injection.kind]["urllib3"]]
        return Effect(failure=error.marked(made(conn, cause), cause))
    if injection.kind == "reset":
        return Effect(failure=error.reset())  # the pool makes a ProtocolError of it
    answer = _UNAVAILABLE if injection.kind == "error" else answer_of(injection.kind)
    if answer is None:
        return None
    return Effect(failure=_response(answer, pool, method, url, options))


def _late(pool: Any, url: str, patience: float | None) -> Any:
    message = f"Read timed out. (read timeout={patience})"
    return error.marked(ReadTimeoutError(pool, url, message), TimeoutError("timed out"))


def _patience(timeout: Any) -> float | None:
    if not isinstance(timeout, Timeout):
        return None
    running = timeout.clone()
    running.start_connect()
    left = Timeout.resolve_default_timeout(running.read_timeout)
    return None if left is None else float(left)


def _response(answer: Reply, pool: Any, method: str, url: str, options: Any) -> Any:
    """Have the standard library read the answer, as it does what comes from a socket.

    The body is left for its reader.
    """
    read = HTTPResponse(Wire(wire(answer)), method=method, url=url)  # type: ignore[arg-type]
    read.begin()
    return Urllib3Response(
        body=read,
        headers=answer.headers,
        status=read.status,
        reason=read.reason,
        version=read.version,
        preload_content=False,
        decode_content=options.get("decode_content", True),
        enforce_content_length=options.get("enforce_content_length", True),
        original_response=read,
        request_method=method,
        request_url=url,
        retries=options.get("retries"),
        pool=pool,
    )


def _new_connection(conn: Any, cause: OSError) -> NewConnectionError:
    return NewConnectionError(conn, f"Failed to establish a new connection: {cause}")


_UNCONNECTED: Final[dict[str, Callable[[Any, Any], Exception]]] = {
    "NewConnectionError": _new_connection,
    "NameResolutionError": lambda conn, cause: NameResolutionError(conn.host, conn, cause),
}
"""The exception's name → how urllib3 makes it of the connection and its cause."""
_SITE = Site(_name, _effect)
_UNAVAILABLE = answer_of(f"status:{error.STATUS}")
