"""OpenTelemetry and fit, set up as any service would: once per process, before serving.

Where services share a process each has a tracer provider of its own; calls are the first one's.

Where spans go is said by the standard ``OTEL_EXPORTER_OTLP_*`` variables; without them nothing is
exported. The gateway's caller decides what is sampled, fit keeps what is under experiment.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

from ldfi import fit
from ldfi.fit.protocol.points import template_path

EXPORT_EVERY_MS = 100
EXPORT_TIMEOUT = 2.0
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def start(services: Sequence[str]) -> dict[str, TracerProvider]:
    """Trace these services of this process, and make the calls of the first injection points.
    Returns a provider for each."""
    if not services:
        return {}
    fit.install(services[0])
    providers = {name: _provider(name) for name in services}
    trace.set_tracer_provider(providers[services[0]])
    HTTPXClientInstrumentor().instrument()
    return providers


def _provider(service: str) -> TracerProvider:
    provider = TracerProvider(
        sampler=fit.Sampler(ParentBased(ALWAYS_ON)),
        resource=Resource.create({"service.name": service}),
        shutdown_on_exit=False,
    )
    if any(os.environ.get(name) for name in ENDPOINTS):
        # A collector that is away costs spans, not lines in the log.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        exporter = OTLPSpanExporter(timeout=EXPORT_TIMEOUT)
        provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=EXPORT_EVERY_MS)
        )
    return provider


def traced(app: Any, provider: TracerProvider | None = None) -> Any:
    """Trace the application with one SERVER span around every request that users make.
    ``provider``: of the spans, by default the process's."""
    return OpenTelemetryMiddleware(
        app,
        tracer_provider=provider,
        excluded_urls="/healthz,/_demo/",
        exclude_spans=["receive", "send"],
        default_span_details=_details,
    )


def _details(scope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of a SERVER span: the route, never a raw identifier."""
    route = template_path(scope["path"])
    return f"{scope['method']} {route}", {"http.route": route}
