"""Every call through httpx is an injection point where its transport answers, and has a span of
ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind

from ldfi.experiments.pytest_plugin.loop import Asked
from ldfi.experiments.pytest_plugin.recorder import ENTRY, Recorder, present
from ldfi.fit import attributes
from ldfi.fit.clients import http, httpx_transports


def seen() -> AbstractContextManager[None]:
    """See calls through httpx as long as this lasts, so that they can be hit."""
    return httpx_transports.seen(_Onlooker())


class _Origin(NamedTuple):
    recorder: Recorder
    by_test: bool


@dataclass(frozen=True, slots=True)
class _Call:
    recorder: Recorder
    span: trace.Span
    passes: bool

    def answered(self, response: httpx.Response) -> None:
        self.span.set_attribute("http.response.status_code", response.status_code)

    def handed_on(self) -> None:
        self.recorder.lift(self.span)


class _Onlooker:
    def origin(self) -> _Origin | None:
        recorder = present()
        return None if recorder is None else _Origin(recorder, recorder.outermost)

    @contextmanager
    def call(self, origin: _Origin, transport: Any, request: httpx.Request) -> Iterator[_Call]:
        recorder = origin.recorder
        # The test itself calls an application in this process: TestClient, ASGITransport.
        enters = origin.by_test and hasattr(transport, "app")
        opened = (
            recorder.span("request", SpanKind.INTERNAL, {ENTRY: True})
            if enters
            else _calling(recorder, request)
        )
        with opened as span:
            _set_out(origin, span, request)
            yield _Call(recorder, span, not enters)


def _calling(recorder: Recorder, request: httpx.Request) -> AbstractContextManager[trace.Span]:
    url, template = request.url, http.template()
    named = {
        "http.request.method": request.method,
        "server.address": url.host,
        "url.path": url.path,
        attributes.POINT: httpx_transports.name(recorder.service, request),
    }
    if template:
        named["url.template"] = template
    return recorder.span(f"{request.method} {url.host}", SpanKind.CLIENT, named)


def _set_out(origin: _Origin, span: trace.Span, request: httpx.Request) -> None:
    """Send the context along in headers, for applications in other threads and processes."""
    if origin.by_test:
        url = request.url
        origin.recorder.remember(
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
