"""Every call through httpx is an injection point: over sockets, mocked, or to another ASGI app.

``fit`` puts its point beneath httpx, where sockets are, and there an in-process fake is never
reached. In a test the point therefore lies in the client itself, above any transport: real ones,
``MockTransport``, ``ASGITransport``, and libraries that replace transports. Names and failures
are the same as in production: ``error`` is answered with 503, ``delay`` ends in ReadTimeout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind

from ldfi.experiments.pytest_plugin.loop import Asked
from ldfi.experiments.pytest_plugin.recorder import ENTRY, Recorder, present
from ldfi.fit import attributes, error, passage
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.passage import Site
from ldfi.fit.points import http_point
from ldfi.fit.strike import Strike

_METHOD = "_send_single_request"
"""Of both clients: sends one request, redirects and authentication aside."""


@contextmanager
def seen() -> Iterator[None]:
    """See calls through httpx as long as this lasts, so that they can be hit."""
    before = {owner: vars(owner)[_METHOD] for owner in (httpx.Client, httpx.AsyncClient)}
    setattr(httpx.Client, _METHOD, _sync(before[httpx.Client]))
    setattr(httpx.AsyncClient, _METHOD, _async(before[httpx.AsyncClient]))
    try:
        yield
    finally:
        for owner, original in before.items():
            setattr(owner, _METHOD, original)


def _sync(original: Any) -> Any:
    def send(client: httpx.Client, request: httpx.Request) -> httpx.Response:
        recorder = present()
        if recorder is None:
            return original(client, request)  # type: ignore[no-any-return]
        if _enters(recorder, client, request):
            with recorder.span("request", SpanKind.INTERNAL, {ENTRY: True}) as span:
                _set_out(recorder, span, request)
                return original(client, request)  # type: ignore[no-any-return]
        with _call(recorder, request) as span:
            _set_out(recorder, span, request)
            answer = passage.through(_SITE, span, request)
            return _answered(span, original(client, request) if answer is None else answer)

    return send


def _async(original: Any) -> Any:
    async def send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        recorder = present()
        if recorder is None:
            return await original(client, request)  # type: ignore[no-any-return]
        if _enters(recorder, client, request):
            with recorder.span("request", SpanKind.INTERNAL, {ENTRY: True}) as span:
                _set_out(recorder, span, request)
                return await original(client, request)  # type: ignore[no-any-return]
        with _call(recorder, request) as span:
            _set_out(recorder, span, request)
            fault = passage.through_async(_SITE, span, request)
            answer = None if fault is None else await fault
            return _answered(span, await original(client, request) if answer is None else answer)

    return send


def _enters(recorder: Recorder, client: Any, request: httpx.Request) -> bool:
    """Tell whether the test itself calls an application in this process: TestClient,
    ASGITransport."""
    return recorder.outermost and hasattr(client._transport_for_url(request.url), "app")


def _call(recorder: Recorder, request: httpx.Request) -> Any:
    url = request.url
    named = {
        "http.request.method": request.method,
        "server.address": url.host,
        "url.path": url.path,
        attributes.POINT: _name(recorder.service, request),
    }
    return recorder.span(f"{request.method} {url.host}", SpanKind.CLIENT, named)


def _set_out(recorder: Recorder, span: trace.Span, request: httpx.Request) -> None:
    """Send the context along in headers, for applications in other threads and processes."""
    if recorder.within_test(span):
        url = request.url
        recorder.remember(
            span,
            Asked(
                request.method,
                url.path,
                url.query.decode("ascii", "replace"),
                tuple(request.headers.multi_items()),
                request.content if hasattr(request, "_content") else b"",
            ),
        )
    propagate.inject(request.headers)


def _answered(span: trace.Span, response: httpx.Response) -> httpx.Response:
    span.set_attribute("http.response.status_code", response.status_code)
    return response


def _name(service: str, request: httpx.Request) -> str:
    url = request.url
    path = url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    return http_point(service, request.method, url.host, url.port, path)


def _strike(injection: Injection, request: httpx.Request) -> Strike:
    if injection.kind == "error":
        response = httpx.Response(
            error.STATUS,
            headers=error.HEADERS,
            content=error.BODY,
            request=request,
        )
        response.elapsed = timedelta(0)
        return Strike(failure=response)
    patience = request.extensions.get("timeout", {}).get("read")
    return delay(
        injection.delay_ms, patience, lambda: httpx.ReadTimeout("timed out", request=request)
    )


_SITE = Site(_name, _strike)
