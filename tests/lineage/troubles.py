"""Spans whose attributes hold what strangers send: every key that is read, with every kind of value
and every trouble known, in each format."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
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
