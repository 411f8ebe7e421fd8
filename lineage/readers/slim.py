"""OTLP's trace messages with everything we do not read left undecoded.

Protocol buffers write an embedded message exactly as they write ``bytes``. So a message type that
declares ``attributes`` as ``repeated bytes`` reads the same wire format, but hands each attribute
over as it stands, and a dictionary that remembers what those bytes mean replaces the decoding:
attributes recur far more often than they differ. Field numbers are those of
``opentelemetry/proto/trace/v1/trace.proto``; what is not declared here is skipped.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE: Final = "ldfi.lineage"
_TYPES: Final[dict[str, list[tuple[str, int, str, bool]]]] = {
    "Request": [("resource_spans", 1, "ResourceSpans", True)],
    "ResourceSpans": [
        ("resource", 1, "bytes", False),
        ("scope_spans", 2, "ScopeSpans", True),
        ("instrumentation_library_spans", 1000, "ScopeSpans", True),
    ],
    "ScopeSpans": [("scope", 1, "bytes", False), ("spans", 2, "Span", True)],
    "Span": [
        ("trace_id", 1, "bytes", False),
        ("span_id", 2, "bytes", False),
        ("parent_span_id", 4, "bytes", False),
        ("name", 5, "bytes", False),
        ("kind", 6, "int32", False),
        ("start_time_unix_nano", 7, "fixed64", False),
        ("end_time_unix_nano", 8, "fixed64", False),
        ("attributes", 9, "bytes", True),
        ("events", 11, "bytes", True),
        ("links", 13, "bytes", True),
        ("status", 15, "bytes", False),
    ],
}
_SCALARS: Final = {
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "fixed64": _Field.TYPE_FIXED64,
}


def _request_type() -> type[Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="ldfi/lineage/slim.proto", package=_PACKAGE, syntax="proto3"
    )
    for type_name, fields in _TYPES.items():
        message = file.message_type.add(name=type_name)
        for name, number, kind, repeated in fields:
            field = message.field.add(name=name, number=number)
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if kind in _SCALARS:
                field.type = _SCALARS[kind]
            else:
                field.type = _Field.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"{_PACKAGE}.Request")
    made: type[Any] = message_factory.GetMessageClass(found)
    return made


SlimRequest: Final = _request_type()
"""``ExportTraceServiceRequest`` (and ``TracesData``), read no deeper than we need."""
