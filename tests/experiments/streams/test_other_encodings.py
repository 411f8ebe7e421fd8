"""Spans that other tracers' encodings bring through Kafka become the same observations."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.streams.stream import Stream, Topics
from ldfi.experiments.streams.wire import ObservationReader
from ldfi.experiments.streams.worker import Worker
from tests.experiments.streams.driving import work
from tests.kit.spans import document
from tests.kit.streams import Piece, produce, request

pytestmark = pytest.mark.parametrize("stream", ["memory"], indirect=True)  # brokers read nothing

KINDS = {2: "server", 3: "client"}
TRACE_IDS = ["ab" * 16, "0" * 31 + "7"]


def _spans(value: bytes) -> Iterator[tuple[str, Any, dict[str, str]]]:
    for group in ExportTraceServiceRequest.FromString(value).resource_spans:
        service = next(a.value.string_value for a in group.resource.attributes)
        for span in (span for scope in group.scope_spans for span in scope.spans):
            yield service, span, {a.key: a.value.string_value for a in span.attributes}


def jaeger_json(value: bytes) -> Iterator[bytes]:
    """One span to a message."""
    for service, span, said in _spans(value):
        parent = {"traceId": _base64(span.trace_id), "spanId": _base64(span.parent_span_id)}
        begin = datetime.fromtimestamp(span.start_time_unix_nano // 10**9, UTC)
        length = span.end_time_unix_nano - span.start_time_unix_nano
        told = {**said, "span.kind": KINDS[span.kind]}
        times = {"startTime": f"{begin:%Y-%m-%dT%H:%M:%S}Z", "duration": f"{length / 1e9:.9f}s"}
        ids = {"traceId": _base64(span.trace_id), "spanId": _base64(span.span_id)}
        references = [parent] if span.parent_span_id else []
        tags = [{"key": key, "vStr": text} for key, text in told.items()]
        what = {"operationName": span.name, "tags": tags, "process": {"serviceName": service}}
        yield json.dumps({**ids, **times, **what, "references": references}).encode()


def zipkin_json(value: bytes) -> Iterator[bytes]:
    """A list of spans to a message."""
    written = [
        {
            "traceId": span.trace_id.hex(),
            "id": span.span_id.hex(),
            **({"parentId": span.parent_span_id.hex()} if span.parent_span_id else {}),
            "kind": KINDS[span.kind].upper(),
            "name": span.name.lower(),
            "timestamp": span.start_time_unix_nano // 1000,
            "duration": (span.end_time_unix_nano - span.start_time_unix_nano) // 1000,
            "localEndpoint": {"serviceName": service},
            "tags": said,
        }
        for service, span, said in _spans(value)
    ]
    yield json.dumps(written).encode()


def otlp_json(value: bytes) -> Iterator[bytes]:
    """A request to a message."""
    for service, span, said in _spans(value):
        attributes = [{"key": k, "value": {"stringValue": v}} for k, v in said.items()]
        written = MessageToDict(span) | {"kind": span.kind, "attributes": attributes}
        for name in ("traceId", "spanId", "parentSpanId"):  # OTLP has these in hexadecimal
            written[name] = base64.b64decode(written.get(name, "")).hex()
        yield json.dumps(document(written, service=service)).encode()


def as_it_is(value: bytes) -> Iterator[bytes]:
    yield value


def _base64(given: bytes) -> str:
    return base64.b64encode(given).decode()


def _said(observation: Observation) -> tuple[object, ...]:
    lineage = observation.lineage
    return (lineage.trace_id, lineage.support, lineage.features, lineage.callees)


@pytest.mark.parametrize("encoded", [as_it_is, otlp_json, jaeger_json, zipkin_json])
def test_every_encoding_becomes_the_same_observations(
    stream: Stream, topics: Topics, worker: Worker, encoded: Callable[[bytes], Iterator[bytes]]
) -> None:
    # Given requests whose spans come in one encoding, and one whose pieces come in several
    pieces = [piece for trace_id in TRACE_IDS for piece in request(trace_id)]
    produce(stream, topics, [each for piece in pieces for each in _encoded(piece, encoded)])
    mixed = request("cd" * 16)
    produce(stream, topics, [mixed[0], *_encoded(mixed[1], encoded), *mixed[2:]])
    # Then all of them are read, and say the same but for their ids
    found = work(worker, stream.reader(topics.observations, {}), len(TRACE_IDS) + 1)
    read = ObservationReader()
    said = [_said(read.read(message.value).observation) for message in found]
    assert {each[0] for each in said} == {*TRACE_IDS, "cd" * 16}
    points = frozenset(f"api>http:GET:{callee}/{callee}" for callee in ("ratings", "titles"))
    callees = {point: point.rpartition("/")[2] for point in points}
    home = {"method": "GET", "path": "/home"}
    assert all(each[1:] == (points, home, callees) for each in said)
    assert worker.seen.dead_letters == 0


def _encoded(piece: Piece, encoded: Callable[[bytes], Iterator[bytes]]) -> Iterator[Piece]:
    values = [piece.value] if piece.half == "metrics" else encoded(piece.value)
    for value in values:
        yield Piece(piece.half, piece.trace_id, value)


@pytest.mark.parametrize("value", [b'{"no": "spans"}', b"[]", b'[{"traceId": "1"', b"{"])
def test_json_that_holds_no_spans_is_a_dead_letter(
    stream: Stream, topics: Topics, worker: Worker, value: bytes
) -> None:
    produce(stream, topics, [Piece("spans", "ab" * 16, value), *request("cd" * 16)])
    work(worker, stream.reader(topics.observations, {}), 1)
    assert worker.seen.dead_letters == 1
