"""OTLP as JSON: documents or lines, hex or base64 ids, camelCase or snake_case keys.

Also what Jaeger's v3 API answers, the same wrapped in ``{"result": …}``; and what Tempo does, where
the groups are called ``batches`` and may be wrapped in ``{"trace": …}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ldfi.lineage.attributes import SCOPE, Fields, said, wanted
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.operation import KINDS, Operation, operation
from ldfi.lineage.readers import ids
from ldfi.lineage.readers.batch import Batch, refuse
from ldfi.lineage.span import Links, Span

_GROUPS = ("resourceSpans", "resource_spans", "batches")
_WRAPPED = ("result", "trace")
_KIND_PREFIX = "SPAN_KIND_"
_STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def decode_json(body: bytes | str) -> Batch:
    """Read one OTLP-JSON document, by the extension where that can. Raises UnreadableTraces for
    what is none."""
    from ldfi.lineage.readers.otlp import decode_json_natively  # a test's process reads no protobuf

    batch = decode_json_natively(
        body if isinstance(body, bytes) else body.encode(errors="surrogatepass")
    )
    return decode_json_in_python(body) if batch is None else batch


def decode_json_in_python(body: bytes | str) -> Batch:
    """Do what :func:`decode_json` does, without the extension."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableTraces(f"no JSON: {error}") from error
    return read_document(document)


def looks_like_document(value: Any) -> bool:
    """Return whether a parsed JSON value holds OTLP's groups of spans."""
    return isinstance(_get(_unwrapped(value), *_GROUPS), list)


def read_document(document: Any) -> Batch:
    """Read one parsed OTLP-JSON document. Raises UnreadableTraces for what is none."""
    spans: list[Span] = []
    groups = _get(_unwrapped(document), *_GROUPS)
    if not isinstance(groups, list):
        raise UnreadableTraces("JSON without a list of resourceSpans is not OTLP trace data")
    rejected = 0
    for group in groups:
        service = _service(_get(group, "resource"))
        for scope, raw in _spans(group):
            try:
                span = _span(service, scope, raw)
            except Exception as error:  # noqa: BLE001 - whatever it is, it costs this span only
                refuse(error, raw)
                span = None
            if span is None:
                rejected += 1
            else:
                spans.append(span)
    return Batch(spans, rejected)


def _unwrapped(document: Any) -> Any:
    inner = _get(document, *_WRAPPED)
    return inner if isinstance(inner, Mapping) else document


def _spans(group: Any) -> Iterator[tuple[list[Any], Any]]:
    """List the spans of a group, each with what its scope says, as attributes."""
    keys = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
    for scope in _list(_get(group, *keys)):
        name = _text(_get(_get(scope, "scope", "instrumentationLibrary"), "name"))
        named = [{"key": SCOPE, "value": {"stringValue": name}}] if name else []
        for raw in _list(_get(scope, "spans")):
            yield named, raw


def _span(service: str, scope: list[Any], raw: Any) -> Span | None:
    trace_id = ids.trace_id(_get(raw, "traceId", "trace_id"))
    span_id = ids.span_id(_text(_get(raw, "spanId", "span_id")))
    start = _integer(_get(raw, "startTimeUnixNano", "start_time_unix_nano"))
    if trace_id is None or span_id is None or start < 0:
        return None
    end = _integer(_get(raw, "endTimeUnixNano", "end_time_unix_nano"))
    return Span(
        trace_id,
        span_id,
        ids.span_id(_text(_get(raw, "parentSpanId", "parent_span_id"))),
        start,
        max(start, end) if start else 0,
        _operation(service, scope, raw),
        _links(_list(_get(raw, "links"))),
    )


def _operation(service: str, scope: list[Any], raw: Any) -> Operation:
    """Read what a span means. An exception counts where a call says no other way how it ended, as
    in OTLP over protocol buffers."""
    kind = _kind(_get(raw, "kind"))
    fields = read_fields(kind, [*scope, *_list(_get(raw, "attributes"))])
    meaning = partial(
        operation,
        service,
        _text(_get(raw, "name")),
        kind,
        _code(_get(_get(raw, "status"), "code")),
    )
    what = meaning(False, fields)
    if not what.may_have_thrown:
        return what
    events = [_get(event, "name") for event in _list(_get(raw, "events"))]
    return meaning(True, fields) if "exception" in events else what


def _links(given: list[Any]) -> Links:
    found = (
        (
            ids.trace_id(_get(link, "traceId", "trace_id")),
            ids.span_id(_text(_get(link, "spanId", "span_id"))),
        )
        for link in given
    )
    return tuple((trace_id, span_id) for trace_id, span_id in found if trace_id and span_id)


def read_fields(kind: str, attributes: list[Any]) -> Fields:
    """Pick what we read from the attributes of a span of some kind."""
    fields, names = [], wanted(kind)
    for pair in attributes:
        known = names.get(_text(_get(pair, "key")))
        value = _value(_get(pair, "value")) if known else ""
        if known and value:
            fields.append(said(known, value))
    return tuple(fields)


def _service(resource: Any) -> str:
    for pair in _list(_get(resource, "attributes")):
        if _get(pair, "key") == "service.name":
            return _value(_get(pair, "value")) or "unknown"
    return "unknown"


def _value(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    for kind, content in value.items():
        if kind in {"arrayValue", "array_value"}:
            return ",".join(_value(item) for item in _list(_get(content, "values")))
        if isinstance(content, str | int | float):
            return str(content)
    return ""


def _kind(kind: Any) -> str:
    if isinstance(kind, str) and kind.startswith(_KIND_PREFIX):
        name = kind.removeprefix(_KIND_PREFIX).lower()
        return name if name in KINDS else ""
    number = _integer(kind)
    return KINDS[number] if 0 <= number < len(KINDS) else ""


def _code(code: Any) -> int:
    return _STATUS[code] if isinstance(code, str) and code in _STATUS else _integer(code)


def _integer(value: Any) -> int:
    if isinstance(value, str) and len(value) <= 20 and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and abs(value) < 2**64 else 0


def _get(holder: Any, *keys: str) -> Any:
    if isinstance(holder, Mapping):
        for key in keys:
            if key in holder:
                return holder[key]
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
