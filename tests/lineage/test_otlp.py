"""OTLP in, both encodings."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Wire

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.otlp_json import decode_json
from tests.kit import spans

TRACE_ID, SPAN_ID, PARENT = bytes(range(1, 17)), bytes(range(8)), bytes(range(8, 16))


ATTRIBUTES: dict[str, str | int] = {
    "http.request.method": "GET",
    "url.full": "http://ratings:8080/titles/7?page=1",
    "http.response.status_code": 503,
    "thread.name": "nobody asked",
}


def request(**overrides: Any) -> ExportTraceServiceRequest:
    ids = {"trace_id": TRACE_ID, "span_id": SPAN_ID, "parent_span_id": PARENT}
    times = {"start_time_unix_nano": 10, "end_time_unix_nano": 20}
    span = spans.wire(ATTRIBUTES, **{**ids, **times, "kind": Wire.SPAN_KIND_CLIENT, **overrides})
    return spans.request(spans.of_service("api", span))


def as_json(message: ExportTraceServiceRequest, encode: Any) -> dict[str, Any]:
    span = message.resource_spans[0].scope_spans[0].spans[0]
    raw = {
        "traceId": encode(span.trace_id),
        "spanId": encode(span.span_id),
        "parentSpanId": encode(span.parent_span_id),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_time_unix_nano),
        "endTimeUnixNano": str(span.end_time_unix_nano),
        "attributes": spans.in_json(ATTRIBUTES),
        "status": {},
    }
    return spans.document(raw, service="api")


def base64_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def test_a_protobuf_span_is_read() -> None:
    (span,), rejected = decode_protobuf(request().SerializeToString())
    assert rejected == 0
    assert span.trace_id == TRACE_ID.hex()
    assert (span.span_id, span.parent_id) == (SPAN_ID.hex(), PARENT.hex())
    assert (span.start, span.end) == (10, 20)
    assert span.operation.point == "api>http:GET:ratings/titles/*"
    assert span.operation.failed is True
    assert "nobody asked" not in str(span)


def backwards(message: Message) -> bytes:
    """The same message, written from its last field to its first, as the Collector does it."""
    written = b""
    for field, value in reversed(message.ListFields()):
        if field.message_type is None:
            alone = type(message)(**{field.name: value})
            written += alone.SerializeToString()
            continue
        for each in value if field.is_repeated else [value]:
            inner = backwards(each)
            written += varint(field.number << 3 | 2) + varint(len(inner)) + inner
    return written


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


@given(
    key=st.sampled_from(["url.full", "http.route", "nobody.asked", "k" * 127, "k" * 128]),
    value=st.one_of(
        st.text(max_size=3), st.integers(0, 300).map("x".__mul__), st.integers(0, 1000)
    ),
)
def test_fields_may_come_in_any_order(key: str, value: str | int) -> None:
    message = request()
    span = message.resource_spans[0].scope_spans[0].spans[0]
    del span.attributes[1:]  # the method stays
    added = span.attributes.add(key=key).value
    if isinstance(value, int):
        added.int_value = value
    else:
        added.string_value = value
    assert ExportTraceServiceRequest.FromString(backwards(message)) == message
    assert decode_protobuf(backwards(message)) == decode_protobuf(message.SerializeToString())


@pytest.mark.parametrize("encode", [bytes.hex, lambda raw: raw.hex().upper(), base64_text])
def test_json_means_the_same_as_protobuf_whichever_way_ids_are_written(encode: Any) -> None:
    message = request()
    document = json.dumps(as_json(message, encode))
    assert decode_json(document) == decode_protobuf(message.SerializeToString())


@pytest.mark.parametrize(
    "broken",
    [
        {"trace_id": b"\0" * 16},
        {"trace_id": b"short"},
        {"span_id": b""},
    ],
)
def test_a_span_without_usable_ids_is_rejected_alone(broken: dict[str, Any]) -> None:
    message = request()
    message.MergeFrom(request(**broken))
    read, rejected = decode_protobuf(message.SerializeToString())
    assert (len(read), rejected) == (1, 1)


@pytest.mark.parametrize("body", [b"hello", b"\xff" * 40, b'{"resourceSpans": []}', b"\x10\x01"])
def test_what_is_no_otlp_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableTraces):
        decode_protobuf(body)


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b'{"a": 1}', b'{"resourceSpans": 3}'])
def test_what_is_no_otlp_json_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableTraces):
        decode_json(body)


def test_an_empty_export_is_no_error() -> None:
    assert decode_protobuf(b"") == ([], 0)
    assert decode_json('{"resourceSpans": []}') == ([], 0)


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(body: bytes) -> None:
    for decode in (decode_protobuf, decode_json):
        with suppress(UnreadableTraces):
            decode(body)


@given(st.data())
def test_damaged_requests_raise_nothing_else(data: st.DataObject) -> None:
    whole = bytearray(request().SerializeToString())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(UnreadableTraces):
        decode_protobuf(bytes(whole[: data.draw(st.integers(0, len(whole)))]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.data())
def test_json_of_any_shape_raises_nothing_else(data: st.DataObject) -> None:
    document: Any = as_json(request(), bytes.hex)
    holder, key = document, "resourceSpans"
    for _ in range(data.draw(st.integers(0, 8))):  # walk down, then put anything there
        below = holder[key]
        if not below or not isinstance(below, dict | list):
            break
        step = below.keys() if isinstance(below, dict) else range(len(below))
        holder, key = below, data.draw(st.sampled_from(sorted(step)))
    holder[key] = data.draw(JSON)
    with suppress(UnreadableTraces):
        decode_json(json.dumps(document))
