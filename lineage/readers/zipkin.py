"""Zipkin v2 JSON: arrays of spans.

Client and server of one call may share a span id; both halves are kept, and the call tree joins
them. A span without a kind is local. Timestamps are microseconds and may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ldfi.lineage.attributes import (
    Fields,
    Names,
    plain,
    said,
    template_any_path,
    template_url,
    truth,
    wanted,
)
from ldfi.lineage.operation import operation
from ldfi.lineage.outcome import STATUS_UNSET
from ldfi.lineage.readers import ids
from ldfi.lineage.readers.batch import Batch, refuse
from ldfi.lineage.span import Span

_KINDS: Final = {
    "CLIENT": "client",
    "SERVER": "server",
    "PRODUCER": "producer",
    "CONSUMER": "consumer",
}
_TAGS: Final[Names] = {
    "http.uri": ("url", template_url),
    # Spring's observations
    "method": ("method", plain),
    "uri": ("route", plain),
    "status": ("status", plain),
}
_NOTHING: Final = frozenset({"", "none", "UNKNOWN"})


def read_spans(spans: Iterable[Any]) -> Batch:
    """Read parsed Zipkin spans; those without usable ids are counted as rejected."""
    read, rejected = [], 0
    for raw in spans:
        try:
            span = _span(raw) if isinstance(raw, Mapping) else None
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this span only
            refuse(error, raw)
            span = None
        if span is None:
            rejected += 1
        else:
            read.append(span)
    return Batch(read, rejected)


def looks_like_span(raw: Any) -> bool:
    """Return whether a parsed JSON value is one of Zipkin's spans."""
    return isinstance(raw, Mapping) and "traceId" in raw and "id" in raw


def _span(raw: Mapping[str, Any]) -> Span | None:
    trace_id, span_id = ids.trace_id(raw.get("traceId")), ids.span_id(_text(raw.get("id")))
    if trace_id is None or span_id is None:
        return None
    tags = raw.get("tags")
    tags = tags if isinstance(tags, Mapping) else {}
    start = _microseconds(raw.get("timestamp"))
    kind = _KINDS.get(_text(raw.get("kind")).upper(), "internal")
    return Span(
        trace_id,
        span_id,
        ids.span_id(_text(raw.get("parentId"))),
        start,
        start + _microseconds(raw.get("duration")) if start else 0,
        operation(
            _text(_get(raw, "localEndpoint", "serviceName")) or "unknown",
            _text(raw.get("name")),
            kind,
            STATUS_UNSET,
            _exception(raw.get("annotations")),
            _fields(kind, raw, tags),
        ),
    )


def _fields(kind: str, raw: Mapping[str, Any], tags: Mapping[str, Any]) -> Fields:
    fields: dict[str, str] = {}
    names = wanted(kind)
    for tag, value in tags.items():
        known = _TAGS.get(tag) or names.get(tag)
        if known is not None and isinstance(value, str) and value not in _NOTHING:
            field, what = said(known, value)
            fields.setdefault(field, what)
    if "error" in tags:  # that it is there says it, whatever it holds
        fields["error"] = truth(_text(tags["error"]) or "true")
    if fields.get("url", "").startswith("/"):
        fields.setdefault("path", template_any_path(fields.pop("url")))
    peer = _text(_get(raw, "remoteEndpoint", "serviceName"))
    if peer:
        fields.setdefault("peer", peer)
    elif "host" not in fields:
        address = _get(raw, "remoteEndpoint", "ipv4") or _get(raw, "remoteEndpoint", "ipv6")
        port = _get(raw, "remoteEndpoint", "port")
        fields |= {"host": address} if isinstance(address, str) else {}
        fields |= {"port": str(port)} if isinstance(port, int) else {}
    return tuple(sorted(fields.items()))


def _exception(annotations: Any) -> bool:
    """Return whether an exception is noted, alone or with what OpenTelemetry writes behind it."""
    values = [
        _text(each.get("value")) if isinstance(each, Mapping) else ""
        for each in (annotations if isinstance(annotations, list) else [])
    ]
    return any(value == "exception" or _NOTED.match(value) for value in values)


_NOTED: Final = re.compile(r'\s*\{?\s*"exception"\s*:')


def _get(raw: Mapping[str, Any], outer: str, inner: str) -> Any:
    holder = raw.get(outer)
    return holder.get(inner) if isinstance(holder, Mapping) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _microseconds(value: Any) -> int:
    """Read microseconds as nanoseconds; 0 for what is no time."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 18:
        value = int(value)
    if isinstance(value, float) and 0 <= value < 2**63:
        value = int(value)
    return value * 1000 if isinstance(value, int) and 0 <= value < 2**63 else 0
