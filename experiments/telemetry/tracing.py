"""Traces of the service itself, sent where OpenTelemetry's standard variables say; else nowhere.

The service must not observe its own observing: requests that bring spans or device metrics are not
traced, so that what is exported never causes another export. Without an endpoint in the
environment no SDK is loaded and a span costs a function call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final

from opentelemetry import trace
from starlette.types import ASGIApp

from ldfi.experiments.domain.judging.experiment import Experiment

_log = logging.getLogger("ldfi")

TRACER: Final = trace.get_tracer("ldfi")

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
UNTRACED: Final = "/v1/traces,/api/v1/device-metrics,/api/v1/edge/rules,/healthz,/readyz,/metrics"
"""Paths of machines that call all the time, or bring what would be exported again."""


def wanted(environ: Mapping[str, str]) -> bool:
    """Return whether the environment asks for traces of the service."""
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporter = environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    return not disabled and exporter != "none" and any(environ.get(name) for name in ENDPOINTS)


def traced(app: ASGIApp) -> ASGIApp:
    """Trace the application's requests, and everything else from now on too.

    Where the extra ``ldfi[tracing]`` is not installed that is logged, and the application comes
    back as it is: variables are often set for a whole cluster.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        _log.warning("no traces of the service itself, install ldfi[tracing]: %s", error)
        return app
    resource = Resource.create({"service.name": "ldfi"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return OpenTelemetryMiddleware(app, excluded_urls=UNTRACED, exclude_spans=["receive", "send"])


def tell(what: str, experiment: Experiment, began: int) -> None:
    """Write a span for what was done with an experiment since ``began`` (nanoseconds, Unix time).

    Told afterwards: most passes do nothing, and those shall leave no trace.
    """
    span = TRACER.start_span(f"{what} experiment", start_time=began)
    if span.is_recording():
        span.set_attributes(
            {
                "ldfi.experiment": experiment.id,
                "ldfi.purpose": experiment.purpose,
                "ldfi.state": experiment.state,
                "ldfi.verdict": experiment.verdict or "",
                "ldfi.faults": len(experiment.faults),
            }
        )
    span.end()


def clock() -> int:
    """Return the time that :func:`tell` counts from (nanoseconds, Unix time)."""
    return time.time_ns()
