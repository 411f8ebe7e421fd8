"""Bodies of OTLP as hypothesis draws them: right ones, odd ones, and bytes that are none."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from ldfi.lineage.attributes import wanted

NAMES = sorted({name for kind in ("", "server", "client") for name in wanted(kind)})
SEGMENTS = (
    *("", "home", "123", "7", "tt-0123", "deadbee1", "deadbeef", "longername123", "é", "٣٤٥", "*"),
    *("0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5B-D9CB-469F-A165-70867728950E", "a.123456"),
    *("a b", "12a", "x" * 200, "123\n", "%20", "..", "v1", "_999", "ABCDEFGH123", "0" * 40),
)

segments = st.sampled_from(SEGMENTS) | st.text(max_size=12)
paths = st.lists(segments, max_size=5).map("/".join)
urls = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "/", "http://h/", "http://[::1]:80/", "https://u:p@h:99999/", "x://"]),
        paths,
        st.sampled_from(["", "?", "?page=3", "?a=/12/b&query=x", "#f/123", "?x=1#/7"]),
        paths,
    ),
)
texts = urls | st.text(max_size=20) | st.sampled_from(["", "GET", "SELECT * FROM t WHERE id = 7"])


def _values(inner: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[AnyValue]:
    lists: Any = st.lists(inner, max_size=3)
    return st.one_of(
        lists.map(lambda values: AnyValue(array_value=ArrayValue(values=values))),
        st.just(AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k")]))),
    )


values = st.recursive(
    st.one_of(
        texts.map(lambda text: AnyValue(string_value=text)),
        texts.map(lambda text: AnyValue(string_value=text)),
        st.integers(-(2**63), 2**63 - 1).map(lambda number: AnyValue(int_value=number)),
        st.sampled_from([200, 404, 503]).map(lambda number: AnyValue(int_value=number)),
        st.booleans().map(lambda truth: AnyValue(bool_value=truth)),
        st.floats().map(lambda number: AnyValue(double_value=number)),
        st.binary(max_size=5).map(lambda raw: AnyValue(bytes_value=raw)),
        st.just(AnyValue()),
    ),
    _values,
    max_leaves=3,
)
names = st.sampled_from(NAMES) | st.sampled_from(["thread.name", "", "é", "k" * 130])
times = st.sampled_from([0, 1, 5, 10**18, 2**64 - 1])


SCOPES = ("", "opentelemetry.instrumentation.redis", "io.opentelemetry.jdbc", "my own", "\u00e9")


def _ids(size: int) -> st.SearchStrategy[bytes]:
    right = st.sampled_from([bytes([number] * size) for number in (1, 2, 3, 171)])
    wrong = st.sampled_from([b"", bytes(size), b"\x01" * (size + 1), b"\x01"])
    return right | right | right | wrong


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request as an exporter writes it, although what it says may be odd."""
    request = ExportTraceServiceRequest()
    for _ in range(draw(st.integers(0, 2))):
        group = request.resource_spans.add()
        if draw(st.booleans()):
            added = group.resource.attributes.add(key=draw(st.sampled_from(["service.name", "x"])))
            added.value.CopyFrom(draw(values))
        for _ in range(draw(st.integers(0, 2))):
            scope = group.scope_spans.add()
            scope.scope.name = draw(st.sampled_from(SCOPES))
            for _ in range(draw(st.integers(0, 3))):
                _draw_span(draw, scope.spans.add())
    return request.SerializeToString()


def _draw_span(draw: st.DrawFn, span: Any) -> None:
    span.trace_id, span.span_id = draw(_ids(16)), draw(_ids(8))
    span.parent_span_id, span.name = draw(_ids(8)), draw(texts)
    span.kind = draw(st.sampled_from([2, 3, 0, 1, 4, 5, 6, -1]))
    span.start_time_unix_nano, span.end_time_unix_nano = draw(times), draw(times)
    span.status.code = draw(st.sampled_from([0, 0, 1, 2]))
    for _ in range(draw(st.integers(0, 4))):
        span.attributes.add(key=draw(names)).value.CopyFrom(draw(values))
    for name in draw(st.lists(st.sampled_from(["exception", "handled", "e"]), max_size=2)):
        span.events.add(name=name)
    for _ in range(draw(st.integers(0, 1))):
        span.links.add(trace_id=draw(_ids(16)), span_id=draw(_ids(8)))


FIELDS = (1, 1, 2, 2, 1000, 4, 5, 6, 7, 8, 9, 11, 13, 15, 3, 16, 0, 2**29 - 1)
numbers = st.sampled_from([0, 1, 2, 127, 128, 300, 2**31, 2**32, 2**63, 2**64 - 1])


def number(value: int, longer: int = 0) -> bytes:
    """A number of variable length, by so many bytes longer than it needs to be."""
    written = bytearray()
    while value > 0x7F or longer > 0:
        longer -= value <= 0x7F
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


@st.composite
def _field(draw: st.DrawFn, inner: st.SearchStrategy[bytes]) -> bytes:
    field, kind = draw(st.sampled_from(FIELDS)), draw(st.sampled_from([2, 2, 2, 2, 0, 1, 5, 3, 4]))
    tag = number(field << 3 | kind, draw(st.sampled_from([0, 0, 0, 0, 1, 5])))
    if kind == 0:
        return tag + number(draw(numbers), draw(st.sampled_from([0, 0, 0, 1, 9])))
    if kind in (1, 5):
        size = 8 if kind == 1 else 4
        return tag + draw(st.binary(min_size=size, max_size=size))
    if kind == 2:
        content = draw(inner)
        length = len(content) + draw(st.sampled_from([0] * 20 + [1, -1, 2**31]))
        return tag + number(max(0, length)) + content
    return tag


def _messages(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(_field(inner), max_size=4).map(b"".join)


_contents = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"\x01" * 16, b"\x02" * 8, b"exception", b"\x12\x09exception", b"http.url"]),
    values.map(lambda value: value.SerializeToString()),
)
wires = st.recursive(_contents, _messages, max_leaves=12)
"""Protocol buffers of nothing in particular, right and wrong."""


@st.composite
def damaged(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> bytes:
    """A body with some of it overwritten, taken out, put in or cut off."""
    body = bytearray(draw(bodies))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body)))
        to = draw(st.sampled_from([at, at + 1, at + 2, len(body)]))
        body[at:to] = draw(st.binary(max_size=3))
    return bytes(body)
