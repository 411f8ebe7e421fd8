"""OTLP over protocol buffers: the body of an export request, or a stored one.

See :mod:`lineage.readers.slim` for why this is fast. Attributes are remembered by their bytes;
the ones nobody asked for cost one dictionary look-up.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Event
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from lineage.attributes import WANTED
from lineage.errors import UnreadableTraces
from lineage.operation import KINDS, operation
from lineage.readers.batch import Batch
from lineage.readers.slim import SlimRequest
from lineage.span import Span

_NO_ID: Final = (b"\0" * 16, b"\0" * 8)
_MEMORY: Final = 65536


class _Memo(dict[bytes, Any]):
    """Bytes → what they mean. Forgets everything when it grows too large; that is rare."""

    def remember(self, raw: bytes, meaning: Any) -> Any:
        if len(self) >= _MEMORY:
            self.clear()
        self[raw] = meaning
        return meaning


_attributes = _Memo()
_services = _Memo()
_events = _Memo()
_statuses = _Memo()
_names = _Memo()


def decode_protobuf(body: bytes) -> Batch:
    """Read an ``ExportTraceServiceRequest`` (or ``TracesData``).

    Raises UnreadableTraces for what is none. Spans without a valid id or with impossible times
    are rejected one by one, as OTLP's partial success wants it.
    """
    request = SlimRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise UnreadableTraces(f"{len(body)} bytes are no OTLP trace data: {error}") from error
    if body and not request.resource_spans:
        raise UnreadableTraces(f"{len(body)} bytes hold no OTLP resource spans; send traces here")
    spans: list[Span] = []
    rejected = 0
    for group in request.resource_spans:
        service = _services.get(group.resource)
        if service is None:
            service = _services.remember(group.resource, _service(group.resource))
        for scope in (*group.scope_spans, *group.instrumentation_library_spans):
            for raw in scope.spans:
                span = _span(service, raw)
                if span is None:
                    rejected += 1
                else:
                    spans.append(span)
    return Batch(spans, rejected)


def _span(service: str, raw: Any) -> Span | None:
    trace_id, span_id, parent_id = raw.trace_id, raw.span_id, raw.parent_span_id
    if len(trace_id) != 16 or len(span_id) != 8 or trace_id == _NO_ID[0] or span_id == _NO_ID[1]:
        return None
    start, end = raw.start_time_unix_nano, raw.end_time_unix_nano
    if not start:
        return None
    fields = []
    for blob in raw.attributes:
        try:
            field = _attributes[blob]
        except KeyError:
            field = _attributes.remember(blob, _attribute(blob))
        if field is not None:
            fields.append(field)
    kind = raw.kind
    exception = any(map(_is_exception, raw.events))
    status = raw.status
    return Span(
        trace_id.hex(),
        span_id.hex(),
        parent_id.hex() if parent_id and parent_id != _NO_ID[1] else None,
        start,
        max(start, end),
        operation(
            service,
            _names.get(raw.name) or _names.remember(raw.name, raw.name.decode("utf-8", "replace")),
            KINDS[kind] if 0 <= kind < len(KINDS) else "",
            (_statuses.get(status) or _statuses.remember(status, _status(status))) if status else 0,
            exception,
            tuple(fields),
        ),
    )


def _attribute(blob: bytes) -> tuple[str, str] | None:
    try:
        pair = KeyValue.FromString(blob)
    except DecodeError:
        return None
    wanted = WANTED.get(pair.key)
    if wanted is None:
        return None
    field, form = wanted
    value = _text(pair.value)
    return (field, form(value)) if value else None


def _text(value: AnyValue) -> str:
    which = value.WhichOneof("value")
    if which == "array_value":  # headers are lists
        return ",".join(_text(item) for item in value.array_value.values)
    if which is None or which in {"kvlist_value", "bytes_value"}:
        return ""
    return str(getattr(value, which))


def _service(resource: bytes) -> str:
    try:
        attributes = Resource.FromString(resource).attributes
    except DecodeError:
        return "unknown"
    for pair in attributes:
        if pair.key == "service.name":
            return _text(pair.value) or "unknown"
    return "unknown"


def _status(blob: bytes) -> int:
    try:
        return int(Status.FromString(blob).code)
    except DecodeError:
        return 0


def _is_exception(blob: bytes) -> bool:
    """Whether an event records an exception. Its bytes are searched before they are decoded."""
    if b"exception" not in blob:
        return False
    try:
        return bool(Event.Event.FromString(blob).name == "exception")
    except DecodeError:
        return False
