"""Spans whose attributes hold what strangers send: every key that is read, with every kind of value
and every trouble known, in each format."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.lineage.attributes import wanted

KEYS: Final = sorted({name for kind in ("", "server", "client") for name in wanted(kind)})
TEXTS: Final = (
    *("", " ", "\0", "//[", "[shop", "http://[x]/a", "http://a]b/", "http://h:99999999999/"),
    *("http://h:x/", "http://[fe80::1%]/", "http://[::1/", "//h:1:2/", "http://h:-1/a", "://"),
    *(
        "http://\u2100.com/",
        "http://h\uff0f/",
        "\ud800",
        "%ff%",
        "%",
        "?=&;",
        "a=b&" * 300,
        "/" * 3000,
    ),
    *("[", "{", '{"query":', "query {", "query($", "SELECT", "select * from", "'", '"', "--", "/*"),
    *(
        "9" * 401,
        "-1",
        "1e999",
        "nan",
        "GET",
        "/a.B/C",
        "A" * 9000,
        "é" * 999,
        "\u202e",
        "tt0111161",
    ),
    *(
        "127.1.1.1",
        "::",
        "h:",
        ":80",
        "1,2",
        "error@",
        "error@a>b",
        ">",
        "a>b:c:d/e",
        "v9;x",
        "1.2.3",
    ),
)
MORE: Final = (
    *("http://u:p@[/", "http:///", "http:", "//", "?", "#", "/../..", "/%00", "/\t/\r\n", "*"),
    *(
        "GET /a HTTP/1.1",
        "a@b@c",
        "1.2.3.4:99999",
        "[::ffff:1.2.3.4]:80",
        "xn--\x00",
        "/\u0130/\u0131",
    ),
)
OTHERS: Final[tuple[Any, ...]] = (True, 0, -1, 2**63 - 1, 0.5, float("inf"), ["//["], None)
VALUES: Final = (*TEXTS, *MORE, *OTHERS)
KINDS: Final = range(-1, 7)


def cases(values: Iterable[Any] = VALUES) -> Iterator[tuple[int, dict[str, Any]]]:
    """Draw each key with each value at each kind of span, beside what makes a call of it."""
    for kind, key, value in itertools.product(KINDS, KEYS, values):
        beside = {"http.request.method": "GET"} if key != "http.request.method" else {}
        yield kind, {**beside, key: value}


def protobuf(many: Iterable[tuple[int, dict[str, Any]]]) -> bytes:
    """Write spans as OTLP over protocol buffers; no text in it can be half a surrogate pair."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number, (kind, attributes) in enumerate(many, start=1):
        span = spans.add(trace_id=number.to_bytes(16, "big"), span_id=number.to_bytes(8, "big"))
        span.name, span.start_time_unix_nano = "GET", 1
        span.kind = kind if kind >= 0 else 0  # type: ignore[assignment]
        for key, value in attributes.items():
            _put(span.attributes.add(key=key).value, value)
    return request.SerializeToString()


def _put(to: Any, value: Any) -> None:
    if isinstance(value, bool):
        to.bool_value = value
    elif isinstance(value, int):
        to.int_value = value
    elif isinstance(value, float):
        to.double_value = value
    elif isinstance(value, list):
        to.array_value.values.add().string_value = value[0]
    elif value is not None:
        to.string_value = value.encode(errors="replace").decode()


def otlp_json(many: Iterable[tuple[int, dict[str, Any]]]) -> bytes:
    """Write spans as OTLP in JSON."""
    spans = [
        {
            "traceId": f"{number:032x}",
            "spanId": f"{number:016x}",
            "name": "GET",
            "kind": kind,
            "startTimeUnixNano": "1",
            "attributes": [{"key": k, "value": _any(v)} for k, v in attributes.items()],
        }
        for number, (kind, attributes) in enumerate(many, start=1)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [{"stringValue": value[0]}]}}
    return {} if value is None else {"stringValue": value}


def jaeger(many: Iterable[tuple[int, dict[str, Any]]]) -> bytes:
    """Write spans as Jaeger's JSON, one trace each."""
    names = ("", "internal", "server", "client", "producer", "consumer")
    traces = [
        {
            "traceID": f"{number:032x}",
            "processes": {"p": {"serviceName": "shop"}},
            "spans": [
                {
                    "traceID": f"{number:032x}",
                    "spanID": f"{number:016x}",
                    "processID": "p",
                    "operationName": "GET",
                    "startTime": 1,
                    "tags": [
                        {"key": "span.kind", "value": names[kind % len(names)]},
                        *({"key": key, "value": value} for key, value in attributes.items()),
                    ],
                }
            ],
        }
        for number, (kind, attributes) in enumerate(many, start=1)
    ]
    return json.dumps({"data": traces}).encode()


def zipkin(many: Iterable[tuple[int, dict[str, Any]]]) -> bytes:
    """Write spans as Zipkin's JSON."""
    names = ("", "", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
    return json.dumps(
        [
            {
                "traceId": f"{number:032x}",
                "id": f"{number:016x}",
                "name": "get",
                "kind": names[kind % len(names)],
                "timestamp": 1,
                "localEndpoint": {"serviceName": "shop"},
                "tags": attributes,
            }
            for number, (kind, attributes) in enumerate(many, start=1)
        ]
    ).encode()


WRITERS: Final = {"protobuf": protobuf, "otlp": otlp_json, "jaeger": jaeger, "zipkin": zipkin}


def _span_of(number: int) -> dict[str, Any]:
    said = {
        "http.request.method": "GET",
        "server.address": "ratings",
        "url.full": "http://ratings/a",
    }
    there = {"traceId": "a" * 32, "spanId": "b" * 16}
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{number + 1:016x}",
        "name": "GET",
        "kind": 3,
        "startTimeUnixNano": "5",
        "endTimeUnixNano": "9",
        "status": {"code": 1, "message": "fine"},
        "links": [{**there, "attributes": []}],
        "events": [{"name": "exception", "timeUnixNano": "6", "attributes": []}],
        "attributes": [{"key": key, "value": _any(value)} for key, value in said.items()],
    }


def _of_jaeger(number: int) -> dict[str, Any]:
    ids = {"traceID": f"{number:032x}", "spanID": f"{number:016x}"}
    return {
        **ids,
        "references": [{"refType": "CHILD_OF", **ids, "spanID": "b" * 16}],
        "operationName": "GET",
        "startTime": 5,
        "duration": 4,
        "process": {"serviceName": "shop", "tags": []},
        "tags": [
            {"key": "span.kind", "type": "string", "value": "client"},
            {"key": "http.url", "type": "string", "value": "http://ratings/a"},
        ],
        "logs": [{"timestamp": 6, "fields": [{"key": "event", "value": "exception"}]}],
    }


def _of_zipkin(number: int) -> dict[str, Any]:
    return {
        "traceId": f"{number:032x}",
        "id": f"{number:016x}",
        "parentId": "b" * 16,
        "name": "get",
        "kind": "CLIENT",
        "timestamp": 5,
        "duration": 4,
        "localEndpoint": {"serviceName": "shop", "ipv4": "10.0.0.1", "port": 80},
        "remoteEndpoint": {"serviceName": "ratings", "ipv4": "10.0.0.2", "port": 80},
        "annotations": [{"timestamp": 6, "value": "exception"}],
        "tags": {"http.method": "GET", "http.url": "http://ratings/a"},
    }


def _of_a_harness(number: int) -> dict[str, Any]:
    return {
        "context": {"trace_id": f"0x{number:032x}", "span_id": f"0x{number:016x}"},
        "parent_id": "0x" + "b" * 16,
        "name": "GET",
        "kind": "SpanKind.CLIENT",
        "start_time": "2026-11-28T12:00:00Z",
        "end_time": "2026-11-28T12:00:01Z",
        "status": {"status_code": "OK"},
        "events": [{"name": "exception"}],
        "attributes": {"http.request.method": "GET", "url.full": "http://ratings/a"},
        "resource": {"attributes": {"service.name": "shop"}},
    }


def _document(spans: list[Any]) -> Any:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


DOCUMENTS: Final[dict[str, tuple[Callable[[int], Any], Callable[[list[Any]], Any]]]] = {
    "otlp": (_span_of, _document),
    "tempo": (_span_of, lambda spans: {"trace": {"batches": _document(spans)["resourceSpans"]}}),
    "jaeger": (_of_jaeger, lambda spans: {"data": [{"traceID": "1", "spans": spans}]}),
    "zipkin": (_of_zipkin, list),
    "harness": (_of_a_harness, list),
}
"""In each format in JSON: how a span is written, and what is around many."""

ODD: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 0.5, 1e308, float("nan"), float("inf"), 2**64 - 1, 2**64, 10**400),
    *("", "x", "0" * 32, "0" * 16, "\ud800", "a" * 33, "-1", "1e9", "9" * 5000, "\uff11", "AAAA"),
    *([], {}, [None], [[]], [{}], [7, "x", None, [], {}], {"": None}, {"values": 7}, {"code": 99}),
    *([{"key": "", "value": {}}] * 2, [{"key": 7}], {"values": [{"stringValue": 7}]}),
)
"""What may stand in anything's place. The last of some: duplicates, keys of no name or no text."""

LARGE: Final[tuple[Any, ...]] = (
    *("x" * 1_000_000, "{" * 100_000, "<{" * 50_000, "/**/" * 50_000, "--\n" * 50_000),
    *('\\"' * 50_000, "[" * 100_000, "a=b&" * 100_000, "%25" * 50_000, "'" * 100_001),
)
"""Long texts; of some a careless reader goes over the rest again at each letter."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List where anything stands in a parsed JSON value: the keys that lead there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


def with_instead(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Copy a parsed JSON value that has something else at a place."""
    if not path:
        return odd
    made = copy.copy(value)
    made[path[0]] = with_instead(value[path[0]], path[1:], odd)
    return made
