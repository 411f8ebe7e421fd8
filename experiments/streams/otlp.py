"""OTLP requests divided as the topic wants them: one trace to a message, its id as the key.

This is what the Collector's Kafka exporter does with ``partition_traces_by_id``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.slim import SlimRequest

LARGEST: Final = 900_000
"""Bytes of a message; brokers take a little more. A larger trace is divided span by span."""

_GROUPS: Final = ("resourceSpans", "resource_spans")
_SCOPES: Final = ("scopeSpans", "scope_spans")
_UNFIT: Final = (ParseError, ValueError, AttributeError, TypeError)
"""What is raised for JSON of another shape."""

_IDS: Final = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")


class Divided(NamedTuple):
    """Pairs of a trace id (32 hexadecimal digits) and an OTLP request with spans of just that
    trace; and how many spans could not be used."""

    pieces: list[tuple[str, bytes]]
    rejected: int


def divide(body: bytes) -> Divided:
    """Divide an ``ExportTraceServiceRequest``. Raises UnreadableTraces for what is none."""
    batch = decode_protobuf(body)  # what is usable is for those to say who will read it
    request = SlimRequest()
    request.ParseFromString(body)
    usable = {span.trace_id for span in batch.spans}
    pieces, lost = [], 0
    for trace_id, whole in _by_trace(request).items():
        if trace_id not in usable:
            continue  # counted as rejected by the batch
        for piece in (whole,) if whole.ByteSize() <= LARGEST else _span_by_span(whole):
            if piece.ByteSize() <= LARGEST:
                pieces.append((trace_id, piece.SerializeToString()))
            else:
                lost += 1
    return Divided(pieces, batch.rejected + lost)


def from_json(body: bytes) -> bytes:
    """Translate an OTLP-JSON request to protobuf, less what cannot be: attributes one by one, and
    spans. Raises UnreadableTraces for what is no request."""
    request = ExportTraceServiceRequest()
    try:
        document = json.loads(body)
        _ids_to_base64(document)
        for group in _first(document, _GROUPS):
            _group(group, request.resource_spans.add())
    except (*_UNFIT, RecursionError) as error:
        raise UnreadableTraces(f"no OTLP as JSON: {error}") from error
    return request.SerializeToString()


def _group(group: dict[str, Any], into: Any) -> None:
    scopes = _first(group, _SCOPES)
    _filled(group.pop("resource", {}), into.resource)
    ParseDict(group, into, ignore_unknown_fields=True)
    for scope in scopes:
        spans, place = scope.pop("spans", ()), into.scope_spans.add()
        _filled(scope.pop("scope", {}), place.scope)
        ParseDict(scope, place, ignore_unknown_fields=True)
        for span in spans:
            try:
                _filled(span, place.spans.add())
            except _UNFIT:
                del place.spans[-1]  # the decoder counted it: it has no usable id or time


def _first(node: dict[str, Any], names: tuple[str, str]) -> Any:
    """Take out what stands under the first of these names; nothing where it stands under none."""
    found = [node.pop(name, None) for name in names]
    return next((each for each in found if each is not None), ())


def _filled(node: Any, into: Any) -> None:
    """Fill a message that has attributes; those that fit no type are left out."""
    attributes = node.pop("attributes", ())
    ParseDict(node, into, ignore_unknown_fields=True)
    for each in attributes:
        try:
            ParseDict(each, into.attributes.add(), ignore_unknown_fields=True)
        except _UNFIT:
            del into.attributes[-1]


def _by_trace(request: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for group in request.resource_spans:
        for scope in group.scope_spans:
            places: dict[bytes, Any] = {}  # of this scope, in the request of each trace
            for span in scope.spans:
                place = places.get(span.trace_id)
                if place is None:
                    whole = found.setdefault(span.trace_id.hex(), SlimRequest())
                    place = places[span.trace_id] = _like(whole, group, scope)
                place.spans.append(span)
    return found


def _like(whole: Any, group: Any, scope: Any) -> Any:
    """Add a scope without spans, like that one of that group, to a request."""
    added = whole.resource_spans.add()
    added.CopyFrom(group)
    del added.scope_spans[:]
    place = added.scope_spans.add()
    place.CopyFrom(scope)
    del place.spans[:]
    return place


def _span_by_span(whole: Any) -> Iterator[Any]:
    for group in whole.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                piece = SlimRequest()
                _like(piece, group, scope).spans.append(span)
                yield piece


def _ids_to_base64(node: Any) -> None:
    """Rewrite ids in base64: OTLP has them in hexadecimal, unlike everything else that is bytes."""
    if isinstance(node, list):
        for each in node:
            _ids_to_base64(each)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in _IDS and isinstance(value, str):
                node[name] = base64.b64encode(_hexadecimal(value)).decode()
            else:
                _ids_to_base64(value)


def _hexadecimal(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""  # this span is rejected, not all of them
