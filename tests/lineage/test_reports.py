"""An injector reports over OTLP: what is read of it, and that it is no request."""

from __future__ import annotations

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.span import Trace

REPORT = "1 python/0.2.0 api>http:* api>db:*"


def learned(*names: str) -> Lineage:
    """The lineage of spans of these names, each below the one before; the last one reports."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number, name in enumerate(names, 1):
        span = scope.spans.add(name=name, trace_id=16 * b"t", span_id=bytes([number] * 8))
        span.parent_span_id = bytes([number - 1] * 8) if number > 1 else b""
        span.start_time_unix_nano = 10**18
        span.end_time_unix_nano = 10**18

    attribute = scope.spans[-1].attributes.add(key="fit.reach")
    attribute.value.string_value = REPORT
    spans = decode_protobuf(request.SerializeToString()).spans
    lineage = learn(Trace.of(spans[0].trace_id, spans))
    assert lineage is not None
    return lineage


def test_a_report_is_read_and_is_no_request() -> None:
    report = learned("fit.reach")
    assert (report.reach, report.is_report) == (REPORT, True)


def test_what_is_said_inside_a_request_is_read_and_the_request_stays_one() -> None:
    request = learned("GET /boot", "something inside")
    assert (request.reach, request.is_report) == (REPORT, False)
