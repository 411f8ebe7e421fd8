"""Which format a parsed JSON value is in, found by looking at it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers import jaeger, jaeger_model, otlp_json, plain_spans, zipkin
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.otlp import decode_json_natively, decode_protobuf
from ldfi.lineage.span import Span


def read_message(body: bytes) -> Batch:
    """Read what one message or request holds: JSON of any of our formats, or else OTLP as protobuf.

    JSON must begin at once: white space before it may be the beginning of protobuf. Raises
    UnreadableTraces for what is neither.
    """
    if not body.startswith((b"{", b"[")):
        return decode_protobuf(body)
    return read_json(body)


def read_json(text: bytes) -> Batch:
    """Read what a piece of JSON holds, whichever format it is in. Raises UnreadableTraces."""
    batch = decode_json_natively(text)
    if batch is not None:
        return batch
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableTraces(f"no JSON: {error}") from error
    return read_value(value)


def read_value(value: Any) -> Batch:
    """Read whatever trace data a parsed JSON value holds: one span, one trace, many.

    Raises UnreadableTraces for what is none.
    """
    if isinstance(value, list):
        return _read_list(value)
    if not isinstance(value, Mapping):
        raise UnreadableTraces(
            f"a JSON {type(value).__name__} is not trace data in OTLP, Jaeger or Zipkin"
        )
    if otlp_json.looks_like_document(value):
        return otlp_json.read_document(value)
    if "scopeSpans" in value or "scope_spans" in value or "instrumentationLibrarySpans" in value:
        return otlp_json.read_document({"resourceSpans": [value]})
    if zipkin.looks_like_span(value):
        return zipkin.read_spans([value])
    if plain_spans.looks_like_span(value):
        return plain_spans.read_spans([value])
    if jaeger_model.looks_like_model(value):
        return jaeger_model.read_model(value)
    if jaeger.looks_like_trace(value):
        return jaeger.read_trace(value)
    if _found_by_tempo(value):
        raise UnreadableTraces(
            "this is what a search of Tempo answers: traces without their spans; give it"
            " /api/traces/ID of each, or let ldfi ask: ldfi analyze --tempo URL --service NAME"
        )
    for key in ("data", "traces"):
        if isinstance(value.get(key), list):
            return _read_list(value[key])
    keys = ", ".join(sorted(map(str, value))[:6])
    raise UnreadableTraces(
        f"a JSON object with {keys or 'nothing in it'} is not trace data in OTLP, Jaeger or Zipkin"
    )


def _found_by_tempo(value: Mapping[str, Any]) -> bool:
    """Return whether a parsed JSON value is the answer to a search in Tempo, or one trace of it."""
    inner = value.get("traces")
    listed = inner if isinstance(inner, list) and inner else [value]
    return all(
        isinstance(each, Mapping)
        and "traceID" in each
        and not {"rootServiceName", "rootTraceName", "spanSet", "spanSets"}.isdisjoint(each)
        for each in listed
    ) or (inner == [] and isinstance(value.get("metrics"), Mapping))


def _read_list(values: list[Any]) -> Batch:
    if values and all(zipkin.looks_like_span(value) for value in values):
        return zipkin.read_spans(values)
    spans: list[Span] = []
    rejected, unreadable = 0, None
    for value in values:
        try:
            batch = read_value(value)
        except UnreadableTraces as error:
            unreadable = error
            rejected += 1
            continue
        spans += batch.spans
        rejected += batch.rejected
    if unreadable is not None and not spans:
        raise unreadable
    return Batch(spans, rejected)
