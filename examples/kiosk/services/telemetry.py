"""OpenTelemetry and fit, for the Python services: all that a service needs to be explored."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ldfi import fit


def set_up() -> TracerProvider:
    """Export spans as the environment says, and obey the failure context."""
    provider = TracerProvider(sampler=fit.Sampler(ALWAYS_ON))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    fit.install()
    return provider
