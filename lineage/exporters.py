"""Requests by which telemetry is exported: no request of a user, and no call that one needs.

Exporters that are instrumented themselves, and collectors that write spans of what they receive,
leave traces of their own traffic. They would become request classes, and points of whatever service
exports.
"""

from __future__ import annotations

from typing import Final

from ldfi.fit.protocol.features import Features

_PATHS: Final = (
    *("/v1/traces", "/v1/metrics", "/v1/logs", "/v1development/profiles"),  # OTLP over HTTP
    *("/api/v1/spans", "/api/v2/spans"),  # Zipkin
    "/api/traces",  # Jaeger's collector
    *("/v0.3/traces", "/v0.4/traces", "/v0.5/traces", "/v0.7/traces"),  # Datadog's agent
    *("/intake/v2/events", "/intake/v2/rum/events"),  # Elastic APM
    "/loki/api/v1/push",
)
_BEHIND: Final = "/v1/traces"
"""How paths end by which vendors take OTLP; metrics and logs so may be anybody's own."""
_GATEWAY: Final = "/otlp/"
_SERVICES: Final = (
    "/opentelemetry.proto.collector.",
    "/jaeger.api_v2.CollectorService/",
    "/google.devtools.cloudtrace.",
    "/skywalking.v3.TraceSegmentReportService/",
)


def exports(features: Features) -> bool:
    """Return whether a request with these features hands telemetry on."""
    if features.get("method") != "POST":
        return False
    path = features.get("route") or features.get("path", "")
    if path.startswith(_SERVICES):
        return True
    plain = path.rstrip("/")
    return plain in _PATHS or plain.endswith(_BEHIND) or (_GATEWAY in plain and "/v1/" in plain)
