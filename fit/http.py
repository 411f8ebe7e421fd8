"""Injection points for HTTP: every request that httpx, or httpcore itself, sends.

The wrapper sits on httpcore's connection pools, below OpenTelemetry's instrumentation of httpx
whichever of the two came first. So the fault happens inside the span of the call, and the caller
sees what it would see in real life: httpx turns httpcore's responses and exceptions into its own.

A request outside any CLIENT span (the client is not instrumented) is let through: there would be
no span to prove that the fault fired.

``error`` is answered with status 503. ``delay`` hangs until the caller's read timeout, and raises
that timeout, or where the caller waits longer, hangs for the delay's full length and then lets the
call through.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import Any

from opentelemetry import trace

from fit import runtime
from fit.context import Injection
from fit.points import http_point

ERROR_STATUS = 503


def patch_httpcore() -> bool:
    """Make httpcore's pools injection points. False where httpcore is not installed."""
    try:
        import httpcore
    except ImportError:
        return False
    if not getattr(httpcore.ConnectionPool.handle_request, "_fit", False):
        _patch_sync(httpcore)
        _patch_async(httpcore)
    return True


def _patch_sync(httpcore: Any) -> None:
    original = httpcore.ConnectionPool.handle_request

    @functools.wraps(original)
    def handle_request(pool: Any, request: Any) -> Any:
        injection = _injection(request)
        if injection is None:
            return original(pool, request)
        if injection.kind == "error":
            return _failed_response(httpcore)
        seconds, times_out = _delay(injection, request)
        time.sleep(seconds)
        if times_out:
            raise httpcore.ReadTimeout("timed out")
        return original(pool, request)

    handle_request._fit = True  # type: ignore[attr-defined]
    httpcore.ConnectionPool.handle_request = handle_request


def _patch_async(httpcore: Any) -> None:
    original = httpcore.AsyncConnectionPool.handle_async_request

    @functools.wraps(original)
    async def handle_async_request(pool: Any, request: Any) -> Any:
        injection = _injection(request)
        if injection is None:
            return await original(pool, request)
        if injection.kind == "error":
            return _failed_response(httpcore)
        seconds, times_out = _delay(injection, request)
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError as error:
            runtime.gave_up(error)
            raise
        if times_out:
            raise httpcore.ReadTimeout("timed out")
        return await original(pool, request)

    httpcore.AsyncConnectionPool.handle_async_request = handle_async_request


def _injection(request: Any) -> Injection | None:
    active = runtime.active()
    if active is None:
        return None
    span = trace.get_current_span()
    if getattr(span, "kind", None) is not trace.SpanKind.CLIENT:
        return None
    try:
        url = request.url
        point = http_point(
            active.service,
            request.method.decode("ascii"),
            url.host.decode("ascii"),
            url.port,
            url.target.partition(b"?")[0].decode("ascii", "replace"),
        )
        return runtime.enter(active, point, span)
    except Exception:
        runtime.swallow()
        return None


def _delay(injection: Injection, request: Any) -> tuple[float, bool]:
    """How long to hang, in seconds, and whether the caller has then run out of patience."""
    longest = injection.delay_ms / 1000
    patience = request.extensions.get("timeout", {}).get("read")
    if patience is not None and patience <= longest:
        return patience, True
    return longest, False


def _failed_response(httpcore: Any) -> Any:
    return httpcore.Response(
        ERROR_STATUS,
        headers=[(b"content-type", b"text/plain"), (b"content-length", b"14")],
        content=b"fault injected",
    )
