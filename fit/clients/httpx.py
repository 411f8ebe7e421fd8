"""httpx, and anything else that sends through httpcore (or its fork httpcore2): sync and async.

The point sits on httpcore's connection pools, beneath OpenTelemetry's instrumentation of httpx.
``error`` is answered with 503. ``delay`` and ``timeout`` end with httpx.ReadTimeout after the read
timeout. ``refused`` and ``reset`` are what httpcore makes of the operating system's errors;
statuses and bodies are answers, of which one that is ``truncated`` fails where it is read. Of a
``slow`` body each piece that is waited for longer than the read timeout ends with that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, Final

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.answers import Reply, answer_of
from ldfi.fit.clients import http
from ldfi.fit.clients.httpx_failures import Cut, HttpxFailures, in_tasks, in_threads
from ldfi.fit.clients.httpx_slow import slowed
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import http_point
from ldfi.fit.slow import Slow

_PLAIN: Final = (b"http", b"ws")


def patch() -> None:
    """Make httpcore's pools injection points."""
    put_points(import_module("httpcore"))


def put_points(core: Any) -> None:
    """Make the pools of httpcore, or of httpcore2, injection points."""
    sync, tasks = in_threads(core), in_tasks(core)
    patching.put(core.ConnectionPool, "handle_request", partial(_sync, sync))
    patching.put(core.AsyncConnectionPool, "handle_async_request", partial(_async, tasks))


def _sync(failures: HttpxFailures, original: Any) -> Any:
    here = site(failures)

    def handle_request(pool: Any, request: Any) -> Any:
        if armed():
            if http.PASSED not in request.extensions:
                answer = inject.through(here, None, request)
                if isinstance(answer, Slow):
                    return slowly(answer, pool, request)
                if answer is not None:
                    return answer
            hosts.guarded(_address, pool, request)
        return original(pool, request)

    def slowly(slow: Slow, pool: Any, request: Any) -> Any:
        hosts.guarded(_address, pool, request)
        try:
            return _slowed(slow, request, original(pool, request), failures)
        finally:
            slow.over()

    return handle_request


def _async(failures: HttpxFailures, original: Any) -> Any:
    here = site(failures)

    async def hit(fault: Any, pool: Any, request: Any) -> Any:
        answer = await fault
        if isinstance(answer, Slow):
            try:
                answered = await original(pool, request)
                return _slowed(answer, request, answered, failures)
            finally:
                answer.over()
        return await original(pool, request) if answer is None else answer

    def handle_async_request(pool: Any, request: Any) -> Any:
        if not armed():
            return original(pool, request)
        hosts.guarded(_address, pool, request)
        if http.PASSED in request.extensions:
            return original(pool, request)
        fault = inject.through_async(here, None, request)
        return original(pool, request) if fault is None else hit(fault, pool, request)

    return handle_async_request


def _address(pool: Any, request: Any) -> None:
    """Write our entry into the baggage where all may have it that read the request, or take it
    out."""
    headers = hosts.addressed(request.headers, *_readers(pool, request.url))
    if headers is not None:
        request.headers = headers


def _readers(pool: Any, url: Any) -> Iterator[str]:
    """List who can read a request: its host and, where it is not encrypted, a proxy."""
    yield url.host.decode()
    if url.scheme in _PLAIN:
        given = getattr(pool, "_proxy", None)
        proxy = getattr(pool, "_proxy_url", None) if given is None else given.url
        if proxy is not None:
            yield proxy.host.decode()


def _name(service: str, request: Any) -> str:
    url = request.url
    return _point(service, request.method, url.host, url.port, url.target, http.template())


@lru_cache(maxsize=8192)
def _point(
    service: str, method: bytes, host: bytes, port: int | None, target: bytes, template: str
) -> str:
    path = target.partition(b"?")[0].decode("ascii", "replace")
    return http_point(service, method.decode(), host.decode(), port, path, template)


def site(failures: HttpxFailures) -> Site:
    """Return the point whose calls fail like this."""

    def effect(injection: Injection, request: Any) -> Effect | None:
        return _effect(failures, injection, request)

    return Site(_name, effect)


def _effect(failures: HttpxFailures, injection: Injection, request: Any) -> Effect | None:
    core = failures.core
    if injection.kind == "error":
        return Effect(
            failure=core.Response(
                error.STATUS, headers=list(error.HEADERS.items()), content=error.BODY
            )
        )
    patience = _patience(request)
    if injection.kind == "slow":
        return Effect(injection.delay_ms / 1000, slow=True)
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, lambda: core.ReadTimeout("timed out"))
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, failures.late)
    if injection.kind in error.CONNECTING:
        url = request.url
        address = url.host.decode(), url.port or _port(url.scheme)
        return Effect(failure=failures.unconnected(injection.kind, address))
    if injection.kind == "reset":
        return Effect(failure=failures.reset())
    answer = answer_of(injection.kind)
    return None if answer is None else Effect(failure=_response(core, answer))


def _patience(request: Any) -> float | None:
    patience: float | None = request.extensions.get("timeout", {}).get("read")
    return patience


def _slowed(slow: Slow, request: Any, response: Any, failures: HttpxFailures) -> Any:
    """Have the body of an answer come slowly, where it is to."""
    body = slowed(
        slow,
        response.status,
        response.headers,
        response.stream,
        _patience(request),
        failures.late,
    )
    if body is not None:
        response.stream = body
    return response


def _port(scheme: bytes) -> int:
    return 443 if scheme == b"https" else 80


def _response(core: Any, answer: Reply) -> Any:
    content = Cut(answer, core) if answer.cut else answer.body
    return core.Response(
        answer.status,
        headers=list(answer.headers.items()),
        content=content,
        extensions={"http_version": b"HTTP/1.1", "reason_phrase": answer.reason.encode()},
    )
