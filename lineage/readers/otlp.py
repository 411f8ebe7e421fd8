"""OTLP over protocol buffers: the body of an export request, or a stored one.

See :mod:`ldfi.lineage.readers.slim` for why this is fast. Attributes are remembered by their bytes;
the ones nobody asked for cost one dictionary look-up. This is the reference: where the extension
(:mod:`ldfi.lineage.readers.rust`) is installed it does the decoding, and asks here what
attributes and spans mean.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from ldfi.lineage.attributes import (
    SCOPE,
    SERVING,
    Fields,
    Form,
    Known,
    Names,
    said,
    template_any_path,
    template_called_url,
    template_url,
    wanted,
)
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.operation import KINDS, Operation, operation
from ldfi.lineage.packed_spans import traits
from ldfi.lineage.readers.batch import Batch, refuse
from ldfi.lineage.readers.rust import Extension, Meant
from ldfi.lineage.readers.slim import SlimRequest
from ldfi.lineage.span import Links, Span

_NO_TRACE: Final = b"\0" * 16
_NO_SPAN: Final = b"\0" * 8
_EXCEPTION: Final = b"\x12\x09exception"
"""An event of that name, as it is written: field 2, nine bytes."""

_KEY: Final = 0x0A
"""How the key of an attribute, and a string value, begins: field 1. Ours are below 128 bytes."""

_VALUE: Final = 0x12
"""How the value of an attribute begins: field 2. Most write it behind the key, but the order is
anybody's choice, and the Collector (0.155) writes all fields of a message from the last one on."""

_SHORT: Final = 128
"""A length below this is one byte."""

_NUMBER: Final = 8
"""Bytes of a number in a key."""

_PORTS: Final = 1 << 16
"""Values of one attribute that are remembered."""

_MEMORY: Final = 300_000
_MEMORY_BYTES: Final = 128 << 20
_Key = tuple[str, bytes, int, bytes, tuple[int, ...]]
_new_span = partial(tuple.__new__, Span)
"""``Span(...)`` without the detour through Python."""


class _Numbers(dict[bytes, int]):
    """The bytes of an attribute → the number of what it says; 0 for what nobody asked for.

    Of one attribute, not more values are remembered than there are ports.
    """

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = [("", "")]
        self._names = {name.encode(): each for name, each in names.items()}
        self._numbers: dict[tuple[str, str], int] = {}
        self._values: dict[bytes, int] = {}
        self.size = 0
        """Bytes that are remembered."""

    def __missing__(self, blob: bytes) -> int:
        name = _name(blob)
        known = self._names.get(name)
        field = _said(known, blob)
        number = self._number(field) if field is not None else 0
        seen = self._values[name] = self._values.get(name, 0) + 1
        if seen <= _PORTS:
            self[blob] = number
            self.size += len(blob)
        return number

    def _number(self, field: tuple[str, str]) -> int:
        number = self._numbers.setdefault(field, len(self.said))
        if number == len(self.said):
            self.said.append(field)
        return number


class _ByKind(dict[int, Any]):
    """Something for each kind of span, by OTLP's number; what has no such number said no kind."""

    def __missing__(self, kind: int) -> Any:
        return self[0]


class _Memory:
    """What was decoded before. Forgotten as a whole when it grows too large, which is rare."""

    def __init__(self) -> None:
        asked, asking = _Numbers(wanted("server")), _Numbers(wanted("client"))
        unsaid = _Numbers(wanted(""))
        self.attributes = _ByKind(
            (number, unsaid if not kind else asked if kind in SERVING else asking)
            for number, kind in enumerate(KINDS)
        )
        self.operations: dict[_Key, Operation] = {}
        self.services: dict[bytes, str] = {}
        self.scopes: dict[bytes, bytes] = {}
        self.size = 0
        """Bytes that are remembered, but for attributes."""

    def full(self) -> bool:
        values = max(map(len, self.attributes.values()))
        most = max(len(self.operations), len(self.services), len(self.scopes))
        size = self.size + sum(each.size for each in self.attributes.values())
        return max(values, most) > _MEMORY or size > _MEMORY_BYTES


_memory = _Memory()
_reading = threading.Lock()
"""What is remembered is one for all threads, and numbers in it must be of one thing each."""


def decode_protobuf(body: bytes) -> Batch:
    """Read an ``ExportTraceServiceRequest`` (or ``TracesData``).

    Raises UnreadableTraces for what is none. Spans without a valid id are rejected one by one, as
    OTLP's partial success wants it; those without a start have no times.
    """
    (batch,) = decode_together([body])
    return decode_in_python(body) if batch is None else batch


def decode_together(bodies: Sequence[bytes]) -> list[Batch | None]:
    """Read many bodies at once, while others may run Python; None in the place of each that
    :func:`decode_protobuf` has to read by itself. Without the extension that is every one."""
    return _extension.read(bodies)


def decode_json_natively(body: bytes) -> Batch | None:
    """Read OTLP as JSON by the extension; None for what :mod:`ldfi.lineage.readers.otlp_json` has
    to read, whatever it is."""
    (batch,) = _extension.read([body], as_json=True)
    return batch


def decode_in_python(body: bytes) -> Batch:
    """Do what :func:`decode_protobuf` does, without the extension."""
    request = SlimRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise UnreadableTraces(f"{len(body)} bytes are not OTLP trace data: {error}") from error
    if body and not request.resource_spans:
        raise UnreadableTraces(f"{len(body)} bytes hold no OTLP resource spans; send traces here")
    with _reading:
        return _batch(request)


def _batch(request: Any) -> Batch:
    global _memory  # noqa: PLW0603 - a cache, replaced when it is full
    if _memory.full():
        _memory = _Memory()
    spans: list[Span] = []
    rejected = 0
    for group in request.resource_spans:
        service = _memory.services.get(group.resource)
        if service is None:
            service = _memory.services[group.resource] = _service(group.resource)
            _memory.size += len(group.resource)
        for scope in (*group.scope_spans, *group.instrumentation_library_spans):
            named = _memory.scopes.get(scope.scope)
            if named is None:
                named = _memory.scopes[scope.scope] = _scope(scope.scope)
                _memory.size += len(scope.scope)
            rejected += _read(service, named, scope.spans, spans, _memory)
    return Batch(spans, rejected)


def _read(
    service: str, scope: bytes, wire: Iterable[Any], spans: list[Span], memory: _Memory
) -> int:
    """Append what can be read of one scope's spans; returns how many cannot. ``scope``: the
    attribute that says which it is, in front of all others; empty where it has no name.

    This loop is most of what reading costs, so it does nothing twice and calls little.
    """
    number_of = _ByKind((kind, each.__getitem__) for kind, each in memory.attributes.items())
    operation_of, append = memory.operations.get, spans.append
    rejected = 0
    latest, trace_id = b"", ""
    for raw in wire:
        wire_id, span_id, parent_id = raw.trace_id, raw.span_id, raw.parent_span_id
        if wire_id != latest:
            latest = wire_id
            trace_id = wire_id.hex() if len(wire_id) == 16 and wire_id != _NO_TRACE else ""
        start = raw.start_time_unix_nano
        if not trace_id or len(span_id) != 8 or span_id == _NO_SPAN:
            rejected += 1
            continue
        try:
            kind = raw.kind
            numbers = tuple(map(number_of[kind], raw.attributes))
            if scope:
                numbers = (number_of[kind](scope), *numbers)
            key = (service, raw.name, kind, raw.status, numbers)
            what = operation_of(key)
            if what is None:
                what = memory.operations[key] = _operation(key, False, memory)
                memory.size += len(raw.name) + len(raw.status) + _NUMBER * len(numbers)
            if what.may_have_thrown:
                events = raw.events
                if events and _EXCEPTION in b"".join(events):
                    what = _operation(key, True, memory)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this span only
            refuse(error, raw)
            rejected += 1
            continue
        end = raw.end_time_unix_nano
        append(
            _new_span(
                (
                    trace_id,
                    span_id.hex(),
                    parent_id.hex() if parent_id and parent_id != _NO_SPAN else None,
                    start,
                    end if end > start > 0 else start,
                    what,
                    _links(raw.links) if raw.links else (),
                )
            )
        )
    return rejected


def _links(blobs: Iterable[bytes]) -> Links:
    found = []
    for blob in blobs:
        try:
            link = WireSpan.Link.FromString(blob)
        except DecodeError:
            continue
        if len(link.trace_id) == 16 and len(link.span_id) == 8:
            found.append((link.trace_id.hex(), link.span_id.hex()))
    return tuple(found)


def _operation(key: _Key, exception: bool, memory: _Memory) -> Operation:
    service, name, kind, status, numbers = key
    asked = memory.attributes[kind].said
    fields = tuple(asked[number] for number in numbers if number)
    return _meaning(service, name, kind, status, fields, exception)


def _meaning(
    service: str, name: bytes, kind: int, status: bytes, fields: Fields, exception: bool
) -> Operation:
    return operation(
        service,
        name.decode("utf-8", "replace"),
        KINDS[kind] if 0 <= kind < len(KINDS) else "",
        _status(status) if status else 0,
        exception,
        fields,
    )


def _said(known: Known | None, blob: bytes) -> tuple[str, str] | None:
    """Read the field of an attribute and its value; None where there is none, or it is empty."""
    value = _string(blob) if known is not None else ""
    return said(known, value) if known is not None and value else None


def _name(blob: bytes) -> bytes:
    """Read the key of an attribute. Short ones are cut out by hand, before or behind the value."""
    if len(blob) > 2 and blob[1] < _SHORT:
        at = 2 + blob[1]
        if blob[0] == _KEY:
            return blob[2:at]
        if at + 1 < len(blob) == at + 2 + blob[at + 1] and (blob[0], blob[at]) == (_VALUE, _KEY):
            return blob[at + 2 :]
    try:
        return KeyValue.FromString(blob).key.encode()
    except DecodeError:
        return b""


def _string(blob: bytes) -> str:
    """Read the value of an attribute. Short strings, by far the commonest, are cut out by hand."""
    at = 2 + blob[1] if blob[0] == _KEY else 0  # where the value's tag and length are
    end = len(blob) if at else 2 + blob[1]
    # then come tag and length of the string
    if (
        at + 3 < end < at + 130
        and blob[at] == _VALUE
        and blob[at + 2] == _KEY
        and blob[at + 3] + at + 4 == end
    ):
        return blob[at + 4 : end].decode("utf-8", "replace")
    try:
        return _text(KeyValue.FromString(blob).value)
    except DecodeError:
        return ""


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


def _scope(blob: bytes) -> bytes:
    """Write which scope this is as an attribute of its spans; nothing where it has no name."""
    try:
        name = InstrumentationScope.FromString(blob).name
    except DecodeError:
        return b""
    pair = KeyValue(key=SCOPE, value=AnyValue(string_value=name))
    return pair.SerializeToString() if name else b""


def _status(blob: bytes) -> int:
    try:
        return int(Status.FromString(blob).code)
    except DecodeError:
        return 0


_FORMS: Final[dict[Form, str]] = {
    template_url: "url",
    template_called_url: "called_url",
    template_any_path: "path",
}
"""Where the extension may make identifiers equal before it asks, as these do themselves."""


class _Reference:
    """Tells the extension what things mean (:class:`ldfi.lineage.readers.rust.Oracle`)."""

    def __init__(self) -> None:
        self._names = [wanted(kind) for kind in ("", "server", "client")]
        self._wanted = [
            (group, name, known)
            for group, names in enumerate(self._names)
            for name, known in names.items()
        ]

    def wanted(self) -> list[tuple[int, bytes, str]]:
        return [
            (group, name.encode(), _FORMS.get(form, "")) for group, name, (_, form) in self._wanted
        ]

    def value(self, number: int, value: str) -> tuple[str, str]:
        return said(self._wanted[number][2], value)

    def attribute(self, group: int, blob: bytes) -> tuple[str, str] | None:
        name = _name(blob).decode("utf-8", "replace")
        return _said(self._names[group].get(name), blob)

    def service(self, resource: bytes) -> str:
        return _service(resource)

    def operation(
        self, service: str, name: bytes, kind: int, status: bytes, fields: Fields
    ) -> tuple[Meant, Meant | None]:
        with _reading:  # or two threads would get two operations that mean the same
            what = _meaning(service, name, kind, status, fields, False)
            if not what.may_have_thrown:
                return (what, traits(what)), None
            thrown = _meaning(service, name, kind, status, fields, True)
            return (what, traits(what)), (thrown, traits(thrown))

    def links(self, blobs: list[bytes]) -> Links:
        return _links(blobs)


_extension: Final = Extension(_Reference())
