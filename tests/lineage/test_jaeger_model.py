"""Jaeger's spans as Kafka carries them say what they say on Jaeger's pages."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.formats import read_message, read_value
from ldfi.lineage.span import Span

DATA = Path(__file__).parents[1] / "data"
TYPES = {"string": "vStr", "int64": "vInt64", "float64": "vFloat64", "bool": "vBool"}


def in_model(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """A trace of the pages as Jaeger writes its spans to Kafka: what has its default is left
    out."""
    return [
        {
            "traceId": _base64(span["traceID"]),
            "spanId": _base64(span["spanID"]),
            "operationName": span["operationName"],
            "references": [_reference(each) for each in span["references"]],
            "startTime": _written(span["startTime"]),
            "duration": f"{span['duration'] / 1e6:.6f}s",
            "tags": [_tag(tag) for tag in span["tags"]],
            "logs": [
                {
                    "timestamp": _written(log["timestamp"]),
                    "fields": [_tag(each) for each in log["fields"]],
                }
                for log in span["logs"]
            ],
            "process": {"serviceName": trace["processes"][span["processID"]]["serviceName"]},
        }
        for span in trace["spans"]
    ]


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _reference(given: dict[str, Any]) -> dict[str, Any]:
    kind = {"refType": given["refType"]} if given["refType"] != "CHILD_OF" else {}
    return {"traceId": _base64(given["traceID"]), "spanId": _base64(given["spanID"]), **kind}


def _written(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06d}789Z"


def _tag(tag: dict[str, Any]) -> dict[str, Any]:
    value = str(tag["value"]) if tag["type"] == "int64" else tag["value"]
    kind = {} if tag["type"] == "string" else {"vType": tag["type"].upper()}
    default = value in {"", "0", 0.0}
    return {"key": tag["key"], **kind, **({} if default else {TYPES[tag["type"]]: value})}


@pytest.mark.parametrize("name", ["hotrod.jaeger.json.gz", "dsb.jaeger.json.gz"])
def test_both_forms_say_the_same(name: str) -> None:
    document = json.loads(gzip.decompress((DATA / name).read_bytes()))
    for trace in document.get("data", [document]) if isinstance(document, dict) else document:
        messages = [json.dumps(each).encode() for each in in_model(trace)]
        read = [span for each in messages for span in read_message(each).spans]
        assert read == read_value(trace).spans


def test_a_value_that_is_left_out_is_the_default_of_its_type() -> None:
    tags = [
        {"key": "error", "vType": "BOOL"},
        {"key": "http.status_code", "vType": "INT64", "vInt64": "503"},
        {"key": "span.kind", "vType": "STRING", "vStr": "client"},
        {"key": "rpc.grpc.status_code", "vType": 2},
    ]
    (span,) = _one(tags=tags)
    assert (span.operation.kind, span.operation.failed) == ("client", True)


def _one(**more: Any) -> Sequence[Span]:
    ids = {"traceId": _base64("ab" * 16), "spanId": _base64("cd" * 8)}
    return read_value({**ids, "operationName": "x", "process": {"serviceName": "a"}, **more}).spans


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["references", "startTime", "duration", "tags", "logs", "operationName"]),
        _JUNK | st.lists(st.dictionaries(st.sampled_from(["key", "vType", "vStr"]), _JUNK)),
    )
)
def test_whatever_stands_in_a_span_the_span_is_read(said: dict[str, Any]) -> None:
    (span,) = _one(**said)
    assert span.end >= span.start >= 0


@pytest.mark.parametrize(
    "body", [b"{", b"[1]", b"{}", b'{"traceId":1}', b'["', b"\x0a\x5b", b"nothing"]
)
def test_what_is_no_message_is_our_error(body: bytes) -> None:
    with pytest.raises(UnreadableTraces):
        read_message(body)
