"""Every call through httpx is an injection point where its transport answers, and has a span of
ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import httpx
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind

from ldfi.explore.external.stamp import DEVICE_HEADER
from ldfi.explore.pytest.recorder import ENTRY, Recorder, current_recorder
from ldfi.explore.pytest.run import Asked
from ldfi.fit.clients import http, httpx_transports
from ldfi.fit.protocol import attributes

_SOCKETS: Final = (httpx.HTTPTransport, httpx.AsyncHTTPTransport)
_SOCKET: Final = "network_stream"
"""Among the extensions of an answer that came over a socket; no fake has one."""


def seen() -> AbstractContextManager[None]:
    """See calls through httpx as long as this lasts, so that they can be hit."""
    return httpx_transports.seen(_Onlooker())


class _Origin(NamedTuple):
    """Where a call comes from. ``by_test``: the test itself runs, not the application within a
    call; ``asks``: over a socket it is a request of the test's own."""

    recorder: Recorder
    by_test: bool
    asks: bool


@dataclass(frozen=True, slots=True)
class _Call:
    recorder: Recorder
    span: trace.Span
    passes: bool
    over_a_socket: Callable[[], None] | None = None

    def answered(self, response: httpx.Response) -> None:
        self.span.set_attribute("http.response.status_code", response.status_code)
        if self.over_a_socket is not None and _SOCKET in response.extensions:
            self.over_a_socket()

    def handed_on(self) -> None:
        self.recorder.lift(self.span)


class _Onlooker:
    """Tells what a test asks from what its application does. A fake of the wire shows only when it
    answers: which of the test's own calls go over a socket is learned in the runs without faults.
    """

    def __init__(self) -> None:
        self._own: set[str] = set()
        """What the test itself asks over a socket, as points are named."""

    def origin(self) -> _Origin | None:
        recorder = current_recorder()
        if recorder is None:
            return None
        by_test = recorder.outermost
        return _Origin(recorder, by_test, by_test and recorder.asked_by_the_test())

    @contextmanager
    def call(self, origin: _Origin, transport: Any, request: httpx.Request) -> Iterator[_Call]:
        recorder = origin.recorder
        asked = {"http.request.method": request.method, "url.full": str(request.url)}
        # The test itself calls an application in this process: TestClient, ASGITransport.
        if origin.by_test and hasattr(transport, "app"):
            with recorder.span("request", SpanKind.INTERNAL, {ENTRY: True, **asked}) as span:
                _set_out(origin, span, request)
                yield _Call(recorder, span, passes=False)
            return
        asks = origin.asks and isinstance(transport, _SOCKETS)
        point = httpx_transports.name(recorder.service, request)
        own = asks and (recorder.stamp is not None or point in self._own)

        with _calling(recorder, request, point, asked if asks else {}) as span:

            def over_a_socket() -> None:
                self._own.add(point)
                recorder.enter(span)

            if own:
                over_a_socket()
            _set_out(origin, span, request)
            yield _Call(recorder, span, not own, over_a_socket if asks else None)


def _calling(
    recorder: Recorder, request: httpx.Request, point: str, asked: dict[str, str]
) -> AbstractContextManager[trace.Span]:
    url, template = request.url, http.template()
    named = asked | {
        "http.request.method": request.method,
        "server.address": url.host,
        "url.path": url.path,
        attributes.POINT: point,
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
    if origin.by_test and origin.recorder.stamp is not None:
        about = span.get_span_context()
        known = request.headers.get
        request.headers.update(
            origin.recorder.stamp.headers(
                f"{about.trace_id:032x}",
                f"{about.span_id:016x}",
                known(DEVICE_HEADER),
                known("baggage", ""),
            )
        )
