"""Jaeger's JSON, as its UI and ``/api/traces/{id}`` give it.

Spans name their process, their tags are typed, their parent is a reference; older clients embed
the whole parent in the reference, of which only the ids are read. ``FOLLOWS_FROM`` says that the
parent does not depend on the span. Where ``span.kind`` is missing, names ending in ``_client`` and
``_server`` (Thrift's convention) tell the side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldfi.lineage.attributes import Fields, wanted
from ldfi.lineage.operation import KINDS, operation
from ldfi.lineage.outcome import STATUS_UNSET
from ldfi.lineage.readers import ids
from ldfi.lineage.readers.batch import Batch, refuse
from ldfi.lineage.span import Links, Span


def looks_like_trace(raw: Any) -> bool:
    """Return whether a parsed JSON value is one of Jaeger's traces, or a span with its process
    inside."""
    return isinstance(raw, Mapping) and "traceID" in raw and ("spans" in raw or "spanID" in raw)


def read_trace(raw: Mapping[str, Any]) -> Batch:
    """Read one parsed trace (or single span); spans without usable ids are counted as rejected."""
    processes = _mapping(raw.get("processes"))
    spans = raw.get("spans", [raw])
    read, rejected = [], 0
    for each in spans if isinstance(spans, list) else []:
        try:
            span = _span(each, processes) if isinstance(each, Mapping) else None
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this span only
            refuse(error, each)
            span = None
        if span is None:
            rejected += 1
        else:
            read.append(span)
    return Batch(read, rejected)


def _span(raw: Mapping[str, Any], processes: Mapping[str, Any]) -> Span | None:
    trace_id, span_id = ids.trace_id(raw.get("traceID")), ids.span_id(_text(raw.get("spanID")))
    if trace_id is None or span_id is None:
        return None
    process = _mapping(raw.get("process") or processes.get(_text(raw.get("processID"))))
    tags = _tags(raw.get("tags"))
    parent_id, follows = _parent(raw, trace_id)
    start = _microseconds(raw.get("startTime"))
    name = _text(raw.get("operationName"))
    kind = _kind(name, tags.get("span.kind", ""))
    what = operation(
        _text(process.get("serviceName")) or "unknown",
        name,
        kind,
        STATUS_UNSET,
        _exception(raw.get("logs")),
        _fields(kind, tags),
        follows,
    )
    end = start + _microseconds(raw.get("duration")) if start else 0
    return Span(trace_id, span_id, parent_id, start, end, what, _links(raw, trace_id, parent_id))


def _links(raw: Mapping[str, Any], trace_id: str, parent_id: str | None) -> Links:
    """List what a span refers to besides its parent."""
    given = raw.get("references")
    references = (
        [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    )
    found = (
        (ids.trace_id(each.get("traceID")), ids.span_id(_text(each.get("spanID"))))
        for each in references
    )
    pairs = ((there, span_id) for there, span_id in found if there and span_id)
    return tuple(pair for pair in pairs if pair != (trace_id, parent_id))


def _parent(raw: Mapping[str, Any], trace_id: str) -> tuple[str | None, bool]:
    """Find the parent's span id, and whether the span merely follows from it."""
    found: list[tuple[bool, str]] = []
    references = raw.get("references")
    for reference in references if isinstance(references, list) else []:
        if isinstance(reference, Mapping) and ids.trace_id(reference.get("traceID")) == trace_id:
            span_id = ids.span_id(_text(reference.get("spanID")))
            if span_id is not None:
                found.append((reference.get("refType") == "FOLLOWS_FROM", span_id))
    if found:
        follows, span_id = min(found)
        return span_id, follows
    return ids.span_id(_text(raw.get("parentSpanID"))), False


def _kind(name: str, tag: str) -> str:
    if tag in KINDS and tag:
        return tag
    return next((side for side in ("client", "server") if name.endswith("_" + side)), "")


def _tags(tags: Any) -> dict[str, str]:
    read = {}
    for tag in tags if isinstance(tags, list) else []:
        if isinstance(tag, Mapping) and isinstance(tag.get("key"), str):
            value = tag.get("value")
            if isinstance(value, str | int | float):
                read[tag["key"]] = str(value)
    return read


def _fields(kind: str, tags: Mapping[str, str]) -> Fields:
    names = wanted(kind)
    read = ((names[tag], value) for tag, value in tags.items() if tag in names and value)
    return tuple((field, form(value)) for (field, form), value in read)


def _exception(logs: Any) -> bool:
    for log in logs if isinstance(logs, list) else []:
        fields = log.get("fields") if isinstance(log, Mapping) else None
        for field in fields if isinstance(fields, list) else []:
            if not isinstance(field, Mapping) or field.get("key") != "event":
                continue
            if field.get("value") in {"exception", "error"}:
                return True
    return False


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _microseconds(value: Any) -> int:
    """Read microseconds as nanoseconds; 0 for what is no time."""
    if isinstance(value, int) and 0 <= value < 2**63:
        return value * 1000
    return 0
