"""Small applications, instrumented as a user would instrument them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpcore
import httpx
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldfi.fit.protocol.keys import Keys

KEYS = Keys.parse("test:0123456789abcdef")


@dataclass
class Recorded:
    """What was exported, and the provider to instrument with."""

    provider: TracerProvider
    exporter: InMemorySpanExporter

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def attributes(self, kind: str) -> list[dict[str, object]]:
        return [dict(s.attributes or {}) for s in self.spans() if s.kind.name == kind]


def recording(sampler: Sampler) -> Recorded:
    """Return what keeps the spans that a sampler does."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Recorded(provider, exporter)


class Answering(httpx.HTTPTransport):
    """A real transport and a real pool, whose network answers at once."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(trust_env=False)
        text = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (
            len(answer.content),
            answer.content,
        )
        self._pool = httpcore.ConnectionPool(network_backend=httpcore.MockBackend([text]))


async def _echo(request: Request) -> Response:
    return Response(",".join(request.headers.getlist("baggage")).encode("latin-1"))


def echo_app() -> Starlette:
    """Answers with the baggage that it received, byte for byte."""
    return Starlette(routes=[Route("/{rest:path}", _echo, methods=["GET", "POST"])])


def traced(app: Any, recorded: Recorded) -> OpenTelemetryMiddleware:
    """An application behind OpenTelemetry's ASGI middleware."""
    return OpenTelemetryMiddleware(
        app,
        tracer_provider=recorded.provider,
        exclude_spans=["receive", "send"],
    )
