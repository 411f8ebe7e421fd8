"""OTLP in few words: spans as exporters write them, in protobuf and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Wire

Values = Mapping[str, str | int]


def wire(attributes: Values | None = None, **fields: Any) -> Wire:
    """Return a span in protobuf, with ids and times unless others are given."""
    usual = {"trace_id": b"t" * 16, "span_id": b"s" * 8, "name": "GET"}
    span = Wire(**usual | {"start_time_unix_nano": 10**18, "end_time_unix_nano": 10**18} | fields)
    _write(span.attributes, attributes or {})
    return span


def of_service(service: str, *spans: Wire) -> ResourceSpans:
    """Return spans of one service; of nobody's where that is empty."""
    group = ResourceSpans()
    _write(group.resource.attributes, {"service.name": service} if service else {})
    group.scope_spans.add().spans.extend(spans)
    return group


def request(*groups: ResourceSpans | Wire) -> ExportTraceServiceRequest:
    """Return what an exporter sends: groups, or spans of nobody's."""
    return ExportTraceServiceRequest(
        resource_spans=[of_service("", each) if isinstance(each, Wire) else each for each in groups]
    )


def _write(into: Any, attributes: Values) -> None:
    for key, value in attributes.items():
        kind = "int_value" if isinstance(value, int) else "string_value"
        setattr(into.add(key=key).value, kind, value)


def in_json(attributes: Values) -> list[dict[str, Any]]:
    """Return attributes as JSON has them."""
    return [
        {"key": key, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for key, v in attributes.items()
    ]


def document(*spans: Mapping[str, Any], service: str = "") -> dict[str, Any]:
    """Return spans of one service as a document of JSON."""
    resource = {"attributes": in_json({"service.name": service} if service else {})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}
