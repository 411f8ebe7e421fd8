"""httpx, and anything else that sends through httpcore: sync and async.

The point sits on httpcore's connection pools, beneath OpenTelemetry's instrumentation of httpx.
``error`` is answered with 503. ``delay`` and ``timeout`` end with httpx.ReadTimeout after the read
timeout. ``refused`` and ``reset`` are what httpcore makes of the operating system's errors;
statuses and bodies are answers, of which one that is ``truncated`` fails where it is read. Of a
``slow`` body each piece that is waited for longer than the read timeout ends with that.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import httpcore

from ldfi.fit import error, hosts, passage, patching
from ldfi.fit.answers import Reply, answer_of
from ldfi.fit.clients import http, httpx_failures
from ldfi.fit.clients.httpx_failures import HttpxFailures
from ldfi.fit.clients.httpx_slow import slowed
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay, timeout
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import http_point
from ldfi.fit.slow import Slow
from ldfi.fit.strike import Strike


def patch() -> None:
    """Make httpcore's pools injection points."""
    patching.put(httpcore.ConnectionPool, "handle_request", _sync)
    patching.put(httpcore.AsyncConnectionPool, "handle_async_request", _async)


def _sync(original: Any) -> Any:
    def handle_request(pool: Any, request: Any) -> Any:
        if armed():
            if http.PASSED not in request.extensions:
                answer = passage.through(SITE, None, request)
                if isinstance(answer, Slow):
                    return slowly(answer, pool, request)
                if answer is not None:
                    return answer
            hosts.guarded(_keep_back, request)
        return original(pool, request)

    def slowly(slow: Slow, pool: Any, request: Any) -> Any:
        hosts.guarded(_keep_back, request)
        try:
            return _slowed(slow, request, original(pool, request), httpx_failures.SYNC)
        finally:
            slow.over()

    return handle_request


def _async(original: Any) -> Any:
    async def hit(fault: Any, pool: Any, request: Any) -> Any:
        answer = await fault
        if isinstance(answer, Slow):
            try:
                answered = await original(pool, request)
                return _slowed(answer, request, answered, httpx_failures.ASYNC)
            finally:
                answer.over()
        return await original(pool, request) if answer is None else answer

    def handle_async_request(pool: Any, request: Any) -> Any:
        if not armed():
            return original(pool, request)
        hosts.guarded(_keep_back, request)
        if http.PASSED in request.extensions:
            return original(pool, request)
        fault = passage.through_async(ASYNC_SITE, None, request)
        return original(pool, request) if fault is None else hit(fault, pool, request)

    return handle_async_request


def _keep_back(request: Any) -> None:
    """Take our entry out of the baggage where the host may not have it."""
    left = hosts.stripped(request.url.host.decode(), request.headers)
    if left is not None:
        request.headers = left


def _name(service: str, request: Any) -> str:
    url = request.url
    return _point(service, request.method, url.host, url.port, url.target, http.template())


@lru_cache(maxsize=8192)
def _point(
    service: str, method: bytes, host: bytes, port: int | None, target: bytes, template: str
) -> str:
    path = target.partition(b"?")[0].decode("ascii", "replace")
    return http_point(service, method.decode(), host.decode(), port, path, template)


def _strike(injection: Injection, request: Any, failures: HttpxFailures) -> Strike | None:
    if injection.kind == "error":
        return Strike(
            failure=httpcore.Response(
                error.STATUS, headers=list(error.HEADERS.items()), content=error.BODY
            )
        )
    patience = _patience(request)
    if injection.kind == "slow":
        return Strike(injection.delay_ms / 1000, slow=True)
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, lambda: httpcore.ReadTimeout("timed out"))
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, failures.late)
    if injection.kind == "refused":
        url = request.url
        return Strike(failure=failures.refused(url.host.decode(), url.port or _port(url.scheme)))
    if injection.kind == "reset":
        return Strike(failure=failures.reset())
    answer = answer_of(injection.kind)
    return None if answer is None else Strike(failure=_response(answer))


def _strike_sync(injection: Injection, request: Any) -> Strike | None:
    return _strike(injection, request, httpx_failures.SYNC)


def _strike_async(injection: Injection, request: Any) -> Strike | None:
    return _strike(injection, request, httpx_failures.ASYNC)


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


def _response(answer: Reply) -> Any:
    content = httpx_failures.Cut(answer) if answer.cut else answer.body
    return httpcore.Response(
        answer.status,
        headers=list(answer.headers.items()),
        content=content,
        extensions={"http_version": b"HTTP/1.1", "reason_phrase": answer.reason.encode()},
    )


SITE = Site(_name, _strike_sync)
ASYNC_SITE = Site(_name, _strike_async)
