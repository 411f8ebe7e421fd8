"""Requests as they come out of Kafka: spans of several services, each a message of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.streams.stream import Stream, Topics
from ldfi.experiments.streams.wire import write_outcome

BEGIN = 1_800_000_000_000_000_000


@dataclass(frozen=True)
class Piece:
    """One message of a request."""

    half: Literal["spans", "metrics"]
    trace_id: str
    value: bytes

    @property
    def key(self) -> bytes:
        """As the Collector does it."""
        return self.trace_id.encode()


def traffic(path: str = "/home", run: int = 0) -> Iterator[list[Piece]]:
    """Requests to this path, each as its pieces. ``run`` keeps several of these apart."""
    for number in count(1):
        yield request(f"{run:08x}{number:024x}", path)


def request(
    trace_id: str, path: str = "/home", success: bool = True, experiment: str = ""
) -> list[Piece]:
    """One request: three services, and the device."""
    root, calls = f"{1:016x}", {"ratings": f"{2:016x}", "titles": f"{3:016x}"}
    api = [_span(trace_id, root, "", 2, "GET", path, experiment)]
    for callee, span_id in calls.items():
        point = {"fit.point": f"api>http:GET:{callee}/{callee}"}
        api.append(_span(trace_id, span_id, root, 3, "GET", f"/{callee}", "", point))
    messages = [_message("api", api)]
    for number, (callee, span_id) in enumerate(calls.items()):
        served = _span(trace_id, f"{10 + number:016x}", span_id, 2, "GET", f"/{callee}")
        messages.append(_message(callee, [served]))
    outcome = Outcome(trace_id, f"device of {trace_id}", "m", success, None, 0.1)
    pieces = [Piece("spans", trace_id, message) for message in messages]
    return [*pieces, Piece("metrics", trace_id, write_outcome(outcome))]


def produce(stream: Stream, topics: Topics, pieces: list[Piece]) -> None:
    """Write pieces to the topics of their halves, and wait until they are there."""
    producer = stream.producer()
    for piece in pieces:
        topic = topics.spans if piece.half == "spans" else topics.metrics
        producer.send(topic, piece.key, piece.value)
    producer.flush()
    producer.close()


def _span(
    trace_id: str,
    span_id: str,
    parent: str,
    kind: int,
    method: str,
    path: str,
    experiment: str = "",
    more: dict[str, str] | None = None,
) -> Span:
    span = Span(
        trace_id=bytes.fromhex(trace_id),
        span_id=bytes.fromhex(span_id),
        parent_span_id=bytes.fromhex(parent),
        kind=Span.SpanKind.ValueType(kind),
        name=f"{method} {path}",
        start_time_unix_nano=BEGIN + int(span_id, 16),
        end_time_unix_nano=BEGIN + 1_000_000 - int(span_id, 16),
    )
    given = {"http.method": method, "http.target": path, "http.status_code": "200", **(more or {})}
    if experiment:
        given |= {"fit.experiment": experiment, "fit.arm": "treatment"}
    for key, value in given.items():
        span.attributes.add(key=key).value.string_value = value
    return span


def _message(service: str, spans: list[Span]) -> bytes:
    group = ResourceSpans()
    group.resource.attributes.add(key="service.name").value.string_value = service
    group.scope_spans.add().spans.extend(spans)
    return ExportTraceServiceRequest(resource_spans=[group]).SerializeToString()
