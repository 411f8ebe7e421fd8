"""OpenTelemetry, for the Python services."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler
from opentelemetry.util.http import parse_excluded_urls


def set_up(sampler: Sampler | None = None) -> None:
    """Export spans as the environment says, and trace what httpx calls."""
    provider = TracerProvider(sampler=sampler or ParentBased(ALWAYS_ON))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    HTTPXClientInstrumentor().instrument()


def traced(app: Any) -> OpenTelemetryMiddleware:
    """Trace what an application is asked, except whether it is well."""
    return OpenTelemetryMiddleware(app, excluded_urls=parse_excluded_urls("/health"))
