"""Spans in plain JSON: attributes as an object, times as text (RFC 3339), kinds and states by name.

So test harnesses write them, and OpenTelemetry's exporter to the console (``context``,
``parent_id``, ``start_time``). What is said is the same as in OTLP, so it is brought to that form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ldfi.lineage.readers import otlp_json
from ldfi.lineage.readers.batch import Batch

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PREFIXES: Final = ("SpanKind.", "SPAN_KIND_", "StatusCode.", "STATUS_CODE_")


def looks_like_span(raw: Any) -> bool:
    """Return whether a parsed JSON value is a span in this form."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("attributes"), Mapping):
        return False
    context = raw.get("context")
    ids = context if isinstance(context, Mapping) else raw
    return not {"spanId", "span_id"}.isdisjoint(ids) and not {"start", "start_time"}.isdisjoint(raw)


def read_spans(spans: Iterable[Mapping[str, Any]]) -> Batch:
    """Read parsed spans; those without usable ids are counted as rejected."""
    return otlp_json.read_document({"resourceSpans": [_group(span) for span in spans]})


def _group(raw: Mapping[str, Any]) -> dict[str, Any]:
    resource = _mapping(_mapping(raw.get("resource")).get("attributes"))
    service = raw.get("service") or resource.get("service.name")
    ids = _mapping(raw.get("context")) or raw
    status = raw.get("status")
    code = status.get("status_code") if isinstance(status, Mapping) else status
    span = {
        "traceId": _hex(_first(ids, "traceId", "trace_id")),
        "spanId": _hex(_first(ids, "spanId", "span_id")),
        "parentSpanId": _hex(_first(raw, "parentSpanId", "parent_id")),
        "name": raw.get("name"),
        "kind": f"SPAN_KIND_{_word(raw.get('kind'))}",
        "startTimeUnixNano": _nanoseconds(_first(raw, "start", "start_time")),
        "endTimeUnixNano": _nanoseconds(_first(raw, "end", "end_time")),
        "status": {"code": f"STATUS_CODE_{_word(code)}"},
        "attributes": _attributes(_mapping(raw.get("attributes"))),
        "events": raw.get("events"),
    }
    said = _attributes({"service.name": service})
    scope = _first(raw, "scope", "instrumentationScope", "instrumentation_scope")
    spans = {"scope": _mapping(scope), "spans": [span]}
    return {"resource": {"attributes": said}, "scopeSpans": [spans]}


def _attributes(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in given.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {} if value is None else {"anyValue": value}


def _word(text: Any) -> str:
    """Read the name of a kind or a state, with or without what it is a member of."""
    word = text if isinstance(text, str) else ""
    for prefix in _PREFIXES:
        word = word.removeprefix(prefix)
    return word.upper()


def _hex(text: Any) -> Any:
    return text.removeprefix("0x") if isinstance(text, str) else text


def _nanoseconds(text: Any) -> int:
    """Read a time; 0 for what is none."""
    try:
        at = datetime.fromisoformat(text)
        since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    except (TypeError, ValueError, OverflowError):
        return 0
    return since // timedelta(microseconds=1) * 1000


def _first(holder: Mapping[str, Any], *keys: str) -> Any:
    return next((holder[key] for key in keys if key in holder), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
