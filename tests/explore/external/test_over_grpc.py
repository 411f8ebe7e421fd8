"""Spans come in over gRPC at the address that takes HTTP, from OpenTelemetry's own exporter."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from ldfi.explore.external.environment import variables
from ldfi.explore.external.receiver import Receiver
from ldfi.explore.external.requests import SentRequest, as_call, root_span
from ldfi.explore.external.session import Elsewhere
from ldfi.explore.external.stamp import SharedKeys
from ldfi.lineage.span import Span
from tests.explore.external.test_receiving import body, post

if os.environ.get("CI"):
    import opentelemetry.exporter.otlp.proto.grpc.trace_exporter as otlp
else:
    otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")

KEYS = SharedKeys("test:0123456789abcdef0123456789abcdef")


def exported(receiver: Receiver, **options: Any) -> SpanExportResult:
    """What becomes of one span of a service that was told the block, sent by the real exporter."""
    port = receiver.address.rpartition(":")[2]
    results: list[SpanExportResult] = []

    class Told(otlp.OTLPSpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            results.append(super().export(spans))
            return results[-1]

    exporter = Told(endpoint=f"http://127.0.0.1:{port}", insecure=True, timeout=10, **options)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("GET /"):
        pass
    provider.shutdown()
    return results[0]


@pytest.fixture
def taken() -> list[Span]:
    return []


@pytest.fixture
def receiver(taken: list[Span]) -> Iterator[Receiver]:
    made = Receiver("127.0.0.1:0", "", taken.extend)
    yield made
    made.close()


@pytest.mark.parametrize("compression", ["NoCompression", "Gzip"])
def test_spans_come_in_over_both_at_one_address(
    receiver: Receiver, taken: list[Span], compression: str
) -> None:
    import grpc

    packed = getattr(grpc.Compression, compression)

    assert exported(receiver, compression=packed) is SpanExportResult.SUCCESS
    assert post(receiver, body()) == 200
    assert exported(receiver, compression=packed) is SpanExportResult.SUCCESS

    assert [span.operation.name for span in taken] == ["GET /"] * 3
    assert not receiver.counts


def test_beyond_loopback_the_token_of_the_block_is_asked_for(
    taken: list[Span], monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver("0.0.0.0:0", KEYS.token, taken.extend)
    try:
        assert exported(receiver) is SpanExportResult.FAILURE
        assert (len(taken), receiver.counts["refused"]) == (0, 1)

        for name, value in variables(KEYS, f"http://{receiver.address}").items():
            monkeypatch.setenv(name, value)
        assert exported(receiver) is SpanExportResult.SUCCESS
        assert (len(taken), receiver.counts["refused"]) == (1, 1)
    finally:
        receiver.close()


def test_what_is_no_traces_is_refused_and_metrics_are_let_go(
    receiver: Receiver, taken: list[Span]
) -> None:
    import grpc

    with grpc.insecure_channel(receiver.address) as channel:
        packages = "/opentelemetry.proto.collector"
        export = channel.unary_unary(f"{packages}.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
            export(b"nonsense")
        metrics = channel.unary_unary(f"{packages}.metrics.v1.MetricsService/Export")
        assert metrics(b"whatever") == b""

    assert (taken, receiver.counts) == ([], {"unreadable": 1})


def test_without_grpcio_it_is_said_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    elsewhere = Elsewhere("127.0.0.1:0", 0.05)
    trace, root, sent_id, now = "a" * 32, "b" * 16, "c" * 16, time.time_ns()
    sent = SentRequest(sent_id, "GET", "http://127.0.0.1:8080/page/17", now, now + 900, 200)
    own = [
        root_span(trace, root, "app", now, now + 1000, failed=False),
        as_call(trace, root, "app", sent),
    ]
    try:
        host, _, port = elsewhere.receiver.address.rpartition(":")
        with socket.create_connection((host, int(port)), 5) as speaking:
            speaking.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            assert speaking.recv(1) == b""  # hung up on
        elsewhere.begin(trace)
        shown = elsewhere.shown(trace, own, [sent])
    finally:
        elsewhere.close()

    assert "grpcio is not installed here: pip install grpcio" in shown.problem
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in shown.problem
