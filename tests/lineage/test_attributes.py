"""Which client library a call was made by, in every format in which its span may come."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.fit import clients
from ldfi.fit.protocol.reach import OWN
from ldfi.lineage.attributes import LONGEST, library_of
from ldfi.lineage.lineage import learn
from ldfi.lineage.readers.files import read_stream
from ldfi.lineage.readers.otlp import decode_in_python, decode_protobuf
from ldfi.lineage.span import Trace

VECTORS = Path(__file__).parents[2] / "ldfi" / "fit" / "protocol" / "vectors" / "libraries.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["scope"] or "empty" for case in CASES])
def test_a_scope_stands_for_the_library_that_the_vectors_say(case: dict[str, Any]) -> None:
    assert (library_of(case["scope"]) or None) == case["library"]


def test_python_has_hold_of_those_that_the_vectors_say() -> None:
    held = {name for here in clients.LIBRARIES.values() for name in clients.libraries_of(here)}
    said = {each["library"]: each["held"] for each in CASES if each["language"] == "python"}
    assert {name for name, is_held in said.items() if is_held} == held
    assert OWN not in held


@given(st.text(max_size=200) | st.text("./@->|* v1").map("opentelemetry.instrumentation.".__add__))
def test_any_scope_is_a_word_of_a_report_or_none(scope: str) -> None:
    name = library_of(scope)
    assert len(name) <= LONGEST
    assert not set(name) & set(" >|*\t\n")


SCOPE = "opentelemetry.instrumentation.redis"
TRACE, CALL, ROOT = "ab" * 16, "cd" * 8, "ef" * 8
POINT = "api>db:GET:redis"


def otlp(scope: dict[str, Any]) -> dict[str, Any]:
    """A request that asks Redis, whose span stands in this scope."""
    root = {"traceId": TRACE, "spanId": ROOT, "name": "GET /", "kind": 2}
    call = {"traceId": TRACE, "spanId": CALL, "parentSpanId": ROOT, "name": "GET", "kind": 3}
    said = [{"key": "db.system", "value": {"stringValue": "redis"}}]
    times = {"startTimeUnixNano": "5", "endTimeUnixNano": "6"}
    spans = [
        {"spans": [{**root, **times}]},
        {**scope, "spans": [{**call, **times, "attributes": said}]},
    ]
    named = {"attributes": [{"key": "service.name", "value": {"stringValue": "api"}}]}
    return {"resourceSpans": [{"resource": named, "scopeSpans": spans}]}


def jaeger(name: str) -> dict[str, Any]:
    spans: list[dict[str, Any]] = [
        {"spanID": ROOT, "operationName": "GET /", "tags": {"span.kind": "server"}},
        {
            "spanID": CALL,
            "operationName": "GET",
            "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": ROOT}],
            "tags": {"span.kind": "client", "db.system": "redis", name: SCOPE},
        },
    ]
    for each in spans:
        tags: dict[str, str] = each["tags"]
        each |= {"traceID": TRACE, "startTime": 5, "duration": 1, "processID": "p1"}
        each["tags"] = [{"key": k, "type": "string", "value": v} for k, v in tags.items()]
    data = {"traceID": TRACE, "spans": spans, "processes": {"p1": {"serviceName": "api"}}}
    return {"data": [data]}


def zipkin() -> list[dict[str, Any]]:
    local = {"traceId": TRACE, "localEndpoint": {"serviceName": "api"}, "timestamp": 5}
    tags = {"db.system": "redis", "otel.scope.name": SCOPE}
    call = {"id": CALL, "parentId": ROOT, "name": "GET", "kind": "CLIENT", "tags": tags}
    return [{**local, "id": ROOT, "name": "GET /", "kind": "SERVER"}, {**local, **call}]


def plain() -> list[dict[str, Any]]:
    times = {"start_time": "2026-11-20T00:00:00Z", "end_time": "2026-11-20T00:00:01Z"}
    own = {"trace_id": TRACE, "service": "api", **times}
    said = {"attributes": {"db.system": "redis"}, "instrumentationScope": {"name": SCOPE}}
    call = {"span_id": CALL, "parent_id": ROOT, "name": "GET", "kind": "CLIENT"}
    root = {"span_id": ROOT, "name": "GET /", "kind": "SERVER", "attributes": {}}
    return [{**own, **root}, {**own, **call, **said}]


@pytest.mark.parametrize(
    "document",
    [
        otlp({"scope": {"name": SCOPE, "version": "1"}}),
        otlp({"instrumentationLibrary": {"name": SCOPE}}),
        jaeger("otel.scope.name"),
        jaeger("otel.library.name"),
        zipkin(),
        plain(),
    ],
    ids=["otlp", "otlp of old", "jaeger", "jaeger of old", "zipkin", "plain"],
)
def test_every_format_says_which_library_called(document: Any) -> None:
    batches = list(read_stream(io.BytesIO(json.dumps(document).encode())))
    run = learn(Trace.of(TRACE, [span for batch in batches for span in batch.spans]))
    assert run is not None
    assert run.libraries == {POINT: frozenset({"redis"})}


def test_a_scope_that_cannot_be_read_costs_nothing_but_itself() -> None:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    scope = group.scope_spans.add()
    scope.scope.name = "x"
    scope.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name="GET", kind=3)
    body = request.SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff")
    for read in (decode_in_python, decode_protobuf):
        (span,) = read(body).spans
        assert span.operation.library == ""
