"""OTLP requests divided by trace: nothing is lost, nothing is mixed, nothing is too large."""

from __future__ import annotations

import base64
import json

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.experiments.streams.otlp import LARGEST, divide, from_json
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.formats import read_message
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.span import Span
from tests.lineage.troubles import WRITERS, cases

TRACES = [bytes([number]) * 16 for number in range(4)] + [b"short"]  # the first is no id
spans = st.tuples(
    st.sampled_from(TRACES), st.sampled_from([b"", b"\1" * 8, b"\2" * 8]), st.booleans()
)
requests = st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.lists(spans, max_size=4))))


def written(groups: list[tuple[str, list[list[tuple[bytes, bytes, bool]]]]]) -> bytes:
    request = ExportTraceServiceRequest()
    for service, scopes in groups:
        group = request.resource_spans.add(schema_url=f"of {service}")
        group.resource.attributes.add(key="service.name").value.string_value = service
        for scope in scopes:
            place = group.scope_spans.add()
            place.scope.name = "scope"
            for trace_id, span_id, begun in scope:
                span = place.spans.add(trace_id=trace_id, span_id=span_id, name="GET /", kind=2)
                span.start_time_unix_nano = int(begun)
    return request.SerializeToString()


def read(body: bytes) -> list[Span]:
    return list(decode_protobuf(body).spans)


@given(requests)
def test_the_pieces_are_the_whole_and_each_is_of_one_trace(
    groups: list[tuple[str, list[list[tuple[bytes, bytes, bool]]]]],
) -> None:
    body = written(groups)
    whole, divided = decode_protobuf(body), divide(body)

    assert divided.rejected == whole.rejected
    keys = [trace_id for trace_id, _ in divided.pieces]
    assert len(keys) == len(set(keys))
    found = []
    for trace_id, piece in divided.pieces:
        assert {span.trace_id for span in read(piece)} == {trace_id}
        found += read(piece)
    assert sorted(found, key=repr) == sorted(whole.spans, key=repr)
    assert len(found) == len(whole.spans)


def test_a_large_trace_is_divided_and_a_span_too_large_for_any_message_is_refused() -> None:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number, size in enumerate((400_000, 400_000, 400_000, LARGEST + 1), start=1):
        span = scope.spans.add(trace_id=b"\1" * 16, span_id=bytes([number]) * 8, name="x" * size)
        span.start_time_unix_nano = 1

    divided = divide(request.SerializeToString())

    assert divided.rejected == 1
    assert len(divided.pieces) == 3
    assert all(len(piece) <= LARGEST for _, piece in divided.pieces)


@given(requests)
def test_json_says_the_same(
    groups: list[tuple[str, list[list[tuple[bytes, bytes, bool]]]]],
) -> None:
    body = written(groups)
    document = MessageToDict(ExportTraceServiceRequest.FromString(body))
    for group in document.get("resourceSpans", []):
        for scope in group.get("scopeSpans", []):
            for span in scope.get("spans", []):
                for name in ("traceId", "spanId"):  # OTLP has these in hexadecimal
                    span[name] = base64.b64decode(span.get(name, "")).hex()

    again = from_json(json.dumps(document).encode())

    assert divide(again) == divide(body)


@pytest.mark.parametrize("written", ["protobuf", "otlp"])
def test_no_attribute_costs_more_than_its_span(written: str) -> None:
    """What the workers behind Kafka read is what one process reads without Kafka."""
    body = WRITERS[written](list(cases())[::101])
    whole = read_message(body)

    divided = divide(from_json(body) if written == "otlp" else body)

    assert divided.rejected == whole.rejected == 0
    found = [span for _, piece in divided.pieces for span in read(piece)]
    assert {span.span_id for span in found} == {span.span_id for span in whole.spans}


def test_text_that_is_no_utf_8_costs_nothing() -> None:
    span = b"\x0a\x10" + b"\1" * 16 + b"\x12\x08" + b"\2" * 8 + b"\x39" + b"\1" * 8
    span += b"\x4a\x0c" + b"\x0a\x05rpc.x" + b"\x12\x03\x0a\x01\xff"
    scope = b"\x12" + bytes([len(span)]) + span
    group = b"\x12" + bytes([len(scope)]) + scope
    body = b"\x0a" + bytes([len(group)]) + group

    divided = divide(body)

    assert [len(read(piece)) for _, piece in divided.pieces] == [1]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"resourceSpans": 1}', b'{"resourceSpans": [{"scopeSpans": 1}]}']
)
def test_what_is_no_otlp_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableTraces):
        from_json(body)
