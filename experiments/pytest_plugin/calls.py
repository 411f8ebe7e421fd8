"""Every call through httpx is an injection point above its transports, and has a span of ours."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import httpx
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind

from ldfi.experiments.elsewhere.stamp import DEVICE_HEADER
from ldfi.experiments.pytest_plugin.loop import Asked
from ldfi.experiments.pytest_plugin.recorder import ENTRY, Recorder, present
from ldfi.fit import attributes, passage
from ldfi.fit.clients import httpx_transports


def seen() -> AbstractContextManager[None]:
    """See calls through httpx as long as this lasts, so that they can be hit."""
    return httpx_transports.replaced(_sync, _async)


def _sync(original: Any) -> Any:
    def send(client: httpx.Client, request: httpx.Request) -> httpx.Response:
        recorder = present()
        if recorder is None:
            return original(client, request)  # type: ignore[no-any-return]
        if _enters(recorder, client, request):
            with _entry(recorder, request) as span:
                _set_out(recorder, span, request)
                return _answered(span, original(client, request))
        with _call(recorder, request) as span:
            _set_out(recorder, span, request)
            answer = passage.through(httpx_transports.SITE, span, request)
            return _answered(span, original(client, request) if answer is None else answer)

    return send


def _async(original: Any) -> Any:
    async def send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        recorder = present()
        if recorder is None:
            return await original(client, request)  # type: ignore[no-any-return]
        if _enters(recorder, client, request):
            with _entry(recorder, request) as span:
                _set_out(recorder, span, request)
                return _answered(span, await original(client, request))
        with _call(recorder, request) as span:
            _set_out(recorder, span, request)
            fault = passage.through_async(httpx_transports.ASYNC_SITE, span, request)
            answer = None if fault is None else await fault
            return _answered(span, await original(client, request) if answer is None else answer)

    return send


def _enters(recorder: Recorder, client: Any, request: httpx.Request) -> bool:
    """Tell whether the test itself calls an application: in this process (TestClient,
    ASGITransport), or a service elsewhere."""
    if not recorder.outermost:
        return False
    transport = client._transport_for_url(request.url)
    if hasattr(transport, "app"):
        return True
    over_a_socket = isinstance(transport, httpx.HTTPTransport | httpx.AsyncHTTPTransport)
    return over_a_socket and recorder.asked_by_the_test()


def _entry(recorder: Recorder, request: httpx.Request) -> Any:
    asked = {"http.request.method": request.method, "url.full": str(request.url)}
    return recorder.span("request", SpanKind.INTERNAL, {ENTRY: True, **asked})


def _call(recorder: Recorder, request: httpx.Request) -> Any:
    url = request.url
    named = {
        "http.request.method": request.method,
        "server.address": url.host,
        "url.path": url.path,
        attributes.POINT: httpx_transports.name(recorder.service, request),
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
    if recorder.stamp is not None and recorder.within_test(span):
        about = span.get_span_context()
        known = request.headers.get
        request.headers.update(
            recorder.stamp.headers(
                f"{about.trace_id:032x}",
                f"{about.span_id:016x}",
                known(DEVICE_HEADER),
                known("baggage", ""),
            )
        )


def _answered(span: trace.Span, response: httpx.Response) -> httpx.Response:
    span.set_attribute("http.response.status_code", response.status_code)
    return response
