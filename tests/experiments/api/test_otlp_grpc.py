"""What comes in over gRPC: the same as over HTTP, by the same way, and refused as there."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ldfi.experiments.api import auth, otlp_grpc
from ldfi.experiments.api.decoding import MAX_BODY
from ldfi.experiments.api.otlp_grpc import client_of
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.rate_limit import Rate, RateLimiter
from tests.experiments.api.test_api_ingest import Log, spans, status
from tests.experiments.members import until
from tests.kit.service import GIVEN, service
from tests.kit.service import client_of as http_client_of
from tests.lineage.troubles import cases, protobuf

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
HERE = ("127.0.0.1", 0)
INGEST, VIEWER = ((("authorization", f"Bearer {GIVEN[role]}"),) for role in ("ingest", "viewer"))


@pytest.fixture(scope="module")
def app(empty: str) -> Any:
    return service(empty, quiet=0.05, grpc_at=HERE)


@pytest.fixture(scope="module")
def http(app: Any) -> Iterator[httpx.Client]:
    with http_client_of(app, GIVEN["operator"]) as client:
        yield client


@pytest.fixture
def target(app: Any, http: httpx.Client) -> str:
    return f"127.0.0.1:{app.state.otlp_grpc.bound}"


@contextmanager
def calling(target: str, **options: Any) -> Iterator[Callable[..., bytes]]:
    with grpc.insecure_channel(target, **options) as channel:
        export = channel.unary_unary(EXPORT)
        yield lambda body, metadata=INGEST: export(body, metadata=metadata, timeout=30)


def refused(target: str, body: bytes, metadata: Sequence[tuple[str, str]] = INGEST) -> Any:
    with calling(target) as export, pytest.raises(grpc.RpcError) as failed:
        export(body, metadata=metadata)
    return failed.value


def some_spans(count: int = 3) -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for number in range(count):
        with provider.get_tracer("t").start_as_current_span(f"GET /{number}"):
            pass
    return list(memory.get_finished_spans())


@pytest.mark.parametrize("packed", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_the_real_exporter_is_understood(http: httpx.Client, target: str, packed: Any) -> None:
    before = status(http)
    exporter = OTLPSpanExporter(target, True, headers=INGEST, compression=packed, timeout=20)
    try:
        assert exporter.export(some_spans()) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()

    after = status(http)
    assert after["spans"] == int(str(before["spans"])) + 3
    assert after["grpc_exports"] == int(str(before["grpc_exports"])) + 1
    assert after["grpc_port"] == int(target.rpartition(":")[2])


def test_troubled_spans_cost_no_more_than_themselves(http: httpx.Client, target: str) -> None:
    before, every = status(http), list(cases())[::61]
    with calling(target, compression=grpc.Compression.Gzip) as export:
        answer = ExportTraceServiceResponse.FromString(export(protobuf(every)))

    assert not answer.HasField("partial_success")
    assert status(http)["spans"] == int(str(before["spans"])) + len(every)


def test_spans_that_cannot_be_used_are_answered_with_partial_success(target: str) -> None:
    with calling(target) as export:
        answer = ExportTraceServiceResponse.FromString(export(spans(3, span_id=b"")))

    assert answer.partial_success.rejected_spans == 3


@pytest.mark.parametrize(
    ("body", "metadata", "code", "said"),
    [
        (spans(), (), "UNAUTHENTICATED", "Bearer TOKEN"),
        (spans(), (("authorization", "Bearer nobody"),), "UNAUTHENTICATED", "Bearer TOKEN"),
        (spans(), VIEWER, "PERMISSION_DENIED", "ingest"),
        (spans(), (*INGEST, ("ldfi-namespace", "nowhere")), "UNAUTHENTICATED", "Bearer TOKEN"),
        (b"\xff\xff\xff", INGEST, "INVALID_ARGUMENT", "unreadable traces"),
        (gzip.compress(b"\xff" * 9)[:-4], INGEST, "INVALID_ARGUMENT", "unreadable gzip"),
        (gzip.compress(b"\0" * (MAX_BODY + 1)), INGEST, "RESOURCE_EXHAUSTED", "unzipped"),
        (b"\0" * (MAX_BODY + 1), INGEST, "RESOURCE_EXHAUSTED", "larger than max"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused_is_refused_as_over_http(
    target: str, body: bytes, metadata: Any, code: str, said: str
) -> None:
    error = refused(target, body, metadata)

    assert error.code() is grpc.StatusCode[code]
    assert said in error.details()
    assert not dict(error.trailing_metadata())  # sent again, it would be refused again


def test_a_stranger_is_refused_before_the_message_is_read(target: str) -> None:
    sending = threading.Event()

    def never() -> Iterator[bytes]:
        sending.wait(30)
        yield spans()

    with grpc.insecure_channel(target) as channel:
        call = channel.stream_unary(EXPORT)
        with pytest.raises(grpc.RpcError) as failed:
            call(never(), timeout=30)
        sending.set()
    assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_other_signals_and_other_compression_are_refused_in_plain_words(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        metrics = channel.unary_unary(
            EXPORT.replace("trace", "metrics").replace("Trace", "Metrics")
        )
        with pytest.raises(grpc.RpcError, match="only traces are taken here"):
            metrics(b"", metadata=INGEST, timeout=30)
    with (
        calling(target, compression=grpc.Compression.Deflate) as export,
        pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"),
    ):
        export(spans())


def test_its_health_is_that_of_the_service(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=30) == b"\x08\x01"


def seconds_to_wait(error: Any) -> int:
    """What both ways of saying it say."""
    trailing = dict(error.trailing_metadata())
    again, status = RetryInfo(), Status.FromString(trailing["grpc-status-details-bin"])
    assert status.code == error.code().value[0]
    assert status.details[0].Unpack(again)
    assert RetryInfo.FromString(trailing["google.rpc.retryinfo-bin"]) == again
    return int(again.retry_delay.seconds)


def test_callers_are_told_to_retry(app: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(app.state._state, "rate_limiter", RateLimiter())
        patch.setattr(auth, "_RATES", {**auth._RATES, "ingest": Rate(0.01, 1)})
        with calling(target) as export:
            export(spans())
        error = refused(target, spans())
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 90 < seconds_to_wait(error) <= 100

    async def busy(_work: object) -> None:
        raise Problem(503, "busy", "too many wait", {"Retry-After": "7"})

    with monkeypatch.context() as patch:
        patch.setattr(app.state.decoding, "do", busy)
        error = refused(target, spans())
        assert (error.code(), seconds_to_wait(error)) == (grpc.StatusCode.UNAVAILABLE, 7)
        assert "too many wait" in error.details()

    with monkeypatch.context() as patch:
        patch.setattr(otlp_grpc, "MOST", 0)
        error = refused(target, spans())
        assert (error.code(), seconds_to_wait(error)) == (grpc.StatusCode.UNAVAILABLE, 1)


def test_limits_are_by_the_address_of_whoever_calls(http: httpx.Client, target: str) -> None:
    """Strangers are counted by address, and a proxy that is believed says whose it is."""
    wrong = ("authorization", "Bearer nobody")

    def code(address: str) -> str:
        error = refused(target, b"", (wrong, ("x-forwarded-for", address)))
        return str(error.code().name)

    assert [code("192.0.2.1") for _ in range(21)][-1] == "RESOURCE_EXHAUSTED"
    assert code("192.0.2.2") == "UNAUTHENTICATED"
    headers = {"authorization": "Bearer nobody", "x-forwarded-for": "192.0.2.1"}
    over_http = http.post("/v1/traces", content=b"", headers=headers)
    assert over_http.status_code == 429  # one bucket for both ways


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("ipv4:10.1.2.3:4242", ("10.1.2.3", 4242)),
        ("ipv6:%5B2001:db8::1%5D:4242", ("2001:db8::1", 4242)),
        ("ipv6:[::1]:1", ("::1", 1)),
        ("unix:", None),
        ("", None),
        ("ipv4:nonsense", None),
    ],
)
def test_the_peer_of_a_call_is_read(peer: str, client: tuple[str, int] | None) -> None:
    assert client_of(peer) == client


def test_what_is_under_way_when_the_service_ends_is_taken_in(tmp_path: Path) -> None:
    app = service(f"sqlite:///{tmp_path / 'x.sqlite3'}", grpc_at=HERE)
    begun, ended = threading.Event(), threading.Event()
    answers: list[Any] = []

    def slowly() -> Iterator[bytes]:
        begun.set()
        assert ended.wait(60), "the service has not begun to end"
        yield spans(5)

    def export(target: str) -> None:
        with grpc.insecure_channel(target) as channel:
            answers.append(channel.stream_unary(EXPORT)(slowly(), metadata=INGEST, timeout=60))

    with http_client_of(app, GIVEN["operator"]):
        engine = app.state.engine
        over_grpc = app.state.otlp_grpc
        exporting = threading.Thread(target=export, args=(f"127.0.0.1:{over_grpc.bound}",))
        exporting.start()
        until(lambda: begun.is_set() and over_grpc._under_way == 1, 60)
        threading.Timer(0.2, ended.set).start()
    exporting.join(60)

    assert [ExportTraceServiceResponse.FromString(each) for each in answers] == [
        ExportTraceServiceResponse()
    ]
    assert engine.spans == 5
    assert over_grpc.bound == 0


def test_a_namespace_has_its_own_spans(app: Any, http: httpx.Client, target: str) -> None:
    admin = {"authorization": f"Bearer {GIVEN['admin']}"}
    made = http.post("/api/v1/namespaces", json={"name": "blue"}, headers=admin)
    if made.status_code == 409 or not app.state.namespaces.apart:
        pytest.fail(f"namespaces need a database that keeps them apart: {made.text}")
    until(lambda: app.state.namespaces.get("blue") is not None, 30)
    within = {**admin, "ldfi-namespace": "blue"}
    new = {"name": "spans", "role": "ingest"}
    token = http.post("/api/v1/tokens", json=new, headers=within).json()["token"]
    before = status(http)["spans"]

    with calling(target) as export:
        export(spans(4), metadata=(("authorization", f"Bearer {token}"),))

    until(lambda: app.state.namespaces.get("blue").state.engine is not None, 30)
    assert app.state.namespaces.get("blue").state.engine.spans == 4
    assert status(http)["spans"] == before


@pytest.mark.parametrize("missing", ["grpcio", "the port"])
def test_where_it_cannot_be_had_it_is_off_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log, missing: str
) -> None:
    caplog.set_level(logging.INFO, "ldfi")
    with socket.socket() as taken:
        taken.bind(HERE)
        taken.listen()
        monkeypatch.setattr(otlp_grpc, "PORT", taken.getsockname()[1])
        if missing == "grpcio":
            monkeypatch.setattr(otlp_grpc, "find_spec", lambda name: None)
        app = service(f"sqlite:///{tmp_path / 'x.sqlite3'}", grpc_at=("127.0.0.1", None))
        with http_client_of(app, GIVEN["operator"]) as client:
            said = status(client)

    assert (said["grpc_port"], said["grpc_exports"]) == (0, 0)
    way_out = {"grpcio": "pip install 'ldfi[grpc]'", "the port": "LDFI_GRPC_PORT"}[missing]
    assert way_out in str(said["grpc_off"])
    assert f"OTLP over gRPC is off: {said['grpc_off']}" in caplog.text
