"""Jaeger's spans as they go through Kafka in JSON: one message, one span.

That is the JSON form of its protobuf model, and not that of its pages: ids in base64, times as
text, tags by type. What is said is the same, so it is brought to the other form and read as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from ldfi.lineage.readers import jaeger
from ldfi.lineage.readers.batch import Batch

_VALUES: Final = {"INT64": "vInt64", "FLOAT64": "vFloat64", "BOOL": "vBool", "BINARY": ""}
"""Where the value of a tag stands, by its type; text, which is left out as a type, in ``vStr``."""

_ZEROS: Final = {"INT64": 0, "FLOAT64": 0, "BOOL": False}
"""Values that are left out."""


def looks_like_model(raw: Any) -> bool:
    """Return whether a parsed JSON value is a span in the form of Jaeger's model."""
    return isinstance(raw, Mapping) and {"traceId", "spanId", "process"} <= raw.keys()


def read_model(raw: Mapping[str, Any]) -> Batch:
    """Read one parsed span; one without usable ids is counted as rejected."""
    process = raw.get("process")
    service = process.get("serviceName") if isinstance(process, Mapping) else ""
    return jaeger.read_trace(
        {
            "traceID": raw.get("traceId"),
            "spanID": raw.get("spanId"),
            "operationName": raw.get("operationName"),
            "references": [_reference(each) for each in _mappings(raw.get("references"))],
            "startTime": _microseconds_at(raw.get("startTime")),
            "duration": _microseconds_of(raw.get("duration")),
            "tags": _tags(raw.get("tags")),
            "logs": [{"fields": _tags(each.get("fields"))} for each in _mappings(raw.get("logs"))],
            "process": {"serviceName": service},
        }
    )


def _reference(raw: Mapping[str, Any]) -> dict[str, Any]:
    follows = raw.get("refType") in {1, "FOLLOWS_FROM"}
    return {
        "refType": "FOLLOWS_FROM" if follows else "CHILD_OF",
        "traceID": raw.get("traceId"),
        "spanID": raw.get("spanId"),
    }


def _tags(raw: Any) -> list[dict[str, Any]]:
    return [{"key": each.get("key"), "value": _value(each)} for each in _mappings(raw)]


def _value(tag: Mapping[str, Any]) -> Any:
    kind = str(tag.get("vType", ""))
    return tag.get(_VALUES.get(kind, "vStr"), _ZEROS.get(kind, ""))


def _microseconds_at(text: Any) -> int:
    """Read a time (RFC 3339); 0 for what is none."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6)
    except (TypeError, ValueError, OverflowError):
        return 0


def _microseconds_of(text: Any) -> int:
    """Read a length of time, in seconds with an ``s`` behind; 0 for what is none."""
    try:
        return int(Decimal(text.removesuffix("s")) * 1_000_000)
    except (AttributeError, ArithmeticError, ValueError):
        return 0


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
