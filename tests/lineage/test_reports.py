"""An injector reports over OTLP: what is read of it, and that it is no request."""

from __future__ import annotations

from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.span import Trace
from tests.kit.spans import request, wire

REPORT = "1 python/0.2.0 api>http:* api>db:*"


def learned(*names: str) -> Lineage:
    """The lineage of spans of these names, each below the one before; the last one reports."""
    written = [
        wire(
            {"fit.reach": REPORT} if number == len(names) else None,
            name=name,
            span_id=bytes([number] * 8),
            parent_span_id=bytes([number - 1] * 8) if number > 1 else b"",
        )
        for number, name in enumerate(names, 1)
    ]
    spans = decode_protobuf(request(*written).SerializeToString()).spans
    lineage = learn(Trace.of(spans[0].trace_id, spans))
    assert lineage is not None
    return lineage


def test_a_report_is_read_and_is_no_request() -> None:
    report = learned("fit.reach")
    assert (report.reach, report.is_report) == (REPORT, True)


def test_what_is_said_inside_a_request_is_read_and_the_request_stays_one() -> None:
    asked = learned("GET /boot", "something inside")
    assert (asked.reach, asked.is_report) == (REPORT, False)
