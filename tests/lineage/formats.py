"""One request, written in each format that is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.lineage.operation import KINDS
from tests.lineage.test_jaeger_model import in_model

BEGAN: Final = 1_790_000_000_000
"""Milliseconds since the epoch at which requests begin."""

TRACE: Final = "3e241b731fcf87976a3d50f5a7cc4d94"


@dataclass(frozen=True)
class Made:
    """A span: ``at`` in milliseconds of the request, ``id`` and ``parent`` as numbers. ``events``:
    names. A time of None is not known."""

    id: int
    parent: int
    service: str
    kind: str
    name: str
    at: tuple[int, int] | None = (0, 10)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    status: str = ""
    events: Sequence[str] = ()
    trace: str = TRACE

    @property
    def begins(self) -> int:
        return BEGAN + self.at[0] if self.at else 0

    @property
    def lasts(self) -> int:
        return self.at[1] - self.at[0] if self.at else 0


def otlp_json(spans: Sequence[Made]) -> bytes:
    """Write OTLP as JSON."""
    return json.dumps({"resourceSpans": list(map(_group, spans))}).encode()


def _group(made: Made) -> dict[str, Any]:
    span = {
        "traceId": made.trace,
        "spanId": f"{made.id:016x}",
        "parentSpanId": f"{made.parent:016x}" if made.parent else "",
        "name": made.name,
        "kind": KINDS.index(made.kind),
        "startTimeUnixNano": str(made.begins * 1_000_000),
        "endTimeUnixNano": str((made.begins + made.lasts) * 1_000_000),
        "attributes": _pairs(made.attributes),
        "events": [{"name": each} for each in made.events],
        "status": {"code": ["", "OK", "ERROR"].index(made.status)},
    }
    resource = {"attributes": _pairs({"service.name": made.service})}
    return {"resource": resource, "scopeSpans": [{"spans": [span]}]}


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = {bool: "boolValue", int: "intValue", str: "stringValue"}
    return [{"key": key, "value": {names[type(v)]: v}} for key, v in attributes.items()]


def otlp_protobuf(spans: Sequence[Made]) -> bytes:
    """Write OTLP as protocol buffers."""
    request = ExportTraceServiceRequest()
    for made in spans:
        group = request.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = made.service
        span = group.scope_spans.add().spans.add(
            trace_id=bytes.fromhex(made.trace),
            span_id=made.id.to_bytes(8, "big"),
            parent_span_id=made.parent.to_bytes(8, "big") if made.parent else b"",
            name=made.name,
            start_time_unix_nano=made.begins * 1_000_000,
            end_time_unix_nano=(made.begins + made.lasts) * 1_000_000,
        )
        span.kind = KINDS.index(made.kind)  # type: ignore[assignment]
        span.status.code = ["", "OK", "ERROR"].index(made.status)  # type: ignore[assignment]
        for key, value in made.attributes.items():
            to = span.attributes.add(key=key).value
            if isinstance(value, bool):
                to.bool_value = value
            elif isinstance(value, int):
                to.int_value = value
            else:
                to.string_value = value
        for event in made.events:
            span.events.add(name=event)
    return request.SerializeToString()


def _jaeger_trace(spans: Sequence[Made]) -> dict[str, Any]:
    types = {bool: "bool", int: "int64", str: "string"}
    return {
        "traceID": spans[0].trace,
        "processes": {made.service: {"serviceName": made.service} for made in spans},
        "spans": [
            {
                "traceID": made.trace,
                "spanID": f"{made.id:016x}",
                "processID": made.service,
                "operationName": made.name,
                "references": [
                    {
                        "refType": "CHILD_OF",
                        "traceID": made.trace,
                        "spanID": f"{made.parent:016x}",
                    }
                ]
                * (made.parent > 0),
                "startTime": made.begins * 1000,
                "duration": made.lasts * 1000,
                "tags": [
                    {"key": key, "value": value, "type": types[type(value)]}
                    for key, value in _tags(made, "span.kind").items()
                ],
                "logs": [
                    {
                        "timestamp": made.begins * 1000,
                        "fields": [{"key": "event", "value": each, "type": "string"}],
                    }
                    for each in made.events
                ],
            }
            for made in spans
        ],
    }


def _tags(made: Made, kind: str = "") -> dict[str, Any]:
    """Write a span's status and kind as tags, as OpenTelemetry's exporters do."""
    said = {"otel.status_code": made.status} if made.status else {}
    return {**made.attributes, **said, **({kind: made.kind} if kind and made.kind else {})}


def jaeger(spans: Sequence[Made]) -> bytes:
    """Write the JSON of Jaeger's pages."""
    return json.dumps({"data": [_jaeger_trace(spans)]}).encode()


def jaeger_kafka(spans: Sequence[Made]) -> bytes:
    """Write spans as Jaeger does to Kafka."""
    return json.dumps(in_model(_jaeger_trace(spans))).encode()


def zipkin(spans: Sequence[Made]) -> bytes:
    """Write Zipkin v2: tags are text."""
    written = [
        {
            "traceId": made.trace,
            "id": f"{made.id:016x}",
            "name": made.name,
            "localEndpoint": {"serviceName": made.service},
            "tags": {
                key: str(value).lower() if isinstance(value, bool) else str(value)
                for key, value in _tags(made).items()
            },
            "annotations": [
                {"timestamp": made.begins * 1000, "value": each} for each in made.events
            ],
            **({"parentId": f"{made.parent:016x}"} if made.parent else {}),
            **({"kind": made.kind.upper()} if made.kind not in {"", "internal"} else {}),
            **({"timestamp": made.begins * 1000, "duration": made.lasts * 1000} if made.at else {}),
        }
        for made in spans
    ]
    return json.dumps(written).encode()


def plain(spans: Sequence[Made]) -> bytes:
    """Write spans in plain JSON."""
    written = [
        {
            "traceId": made.trace,
            "spanId": f"{made.id:016x}",
            "parentSpanId": f"{made.parent:016x}" if made.parent else None,
            "name": made.name,
            "kind": made.kind.upper(),
            "service": made.service,
            "start": _time(made.begins),
            "end": _time(made.begins + made.lasts),
            "status": made.status or "UNSET",
            "attributes": dict(made.attributes),
            "events": [{"name": each} for each in made.events],
        }
        for made in spans
    ]
    return json.dumps(written).encode()


def _time(milliseconds: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return at.isoformat().replace("+00:00", "Z")


WRITERS: Final[Mapping[str, Callable[[Sequence[Made]], bytes]]] = {
    "otlp-protobuf": otlp_protobuf,
    "otlp-json": otlp_json,
    "jaeger": jaeger,
    "jaeger-kafka": jaeger_kafka,
    "zipkin": zipkin,
    "plain": plain,
}
