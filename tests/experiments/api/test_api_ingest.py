"""What comes in from services and devices, over a socket: OTLP and device metrics."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from ldfi.experiments.api.decoding import MAX_BODY
from ldfi.experiments.scheduler.engine import Engine
from ldfi.lineage.readers.compressed import zstd
from tests.experiments.members import until
from tests.kit.service import GIVEN, bearer, client_of, problem, service
from tests.kit.spans import document

INGEST, DEVICES, VIEWER = (bearer(GIVEN[role]) for role in ("ingest", "devices", "viewer"))
PROTOBUF, JSON = ({"content-type": f"application/{each}"} for each in ("x-protobuf", "json"))
GZIP, ZSTD, BROTLI = ({**PROTOBUF, "content-encoding": each} for each in ("gzip", "zstd", "br"))
TRACE = "ab" * 16
Log = pytest.LogCaptureFixture


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.sqlite3"


@pytest.fixture
def app(file: Path) -> FastAPI:
    return service(f"sqlite:///{file}", quiet=0.05)


@pytest.fixture
def client(app: FastAPI) -> Iterator[httpx.Client]:
    with client_of(app, GIVEN["ingest"]) as running:
        yield running


def spans(
    count: int = 1, trace_id: bytes = b"\1" * 16, span_id: bytes = b"\2" * 8, name: str = "s"
) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number in range(count):
        span = scope.spans.add()
        span.trace_id, span.span_id, span.name = trace_id, span_id, f"{name}{number}"
        span.start_time_unix_nano, span.end_time_unix_nano = 1, 2
        span.kind = span.SPAN_KIND_SERVER
    return request.SerializeToString()


def status(client: httpx.Client) -> dict[str, object]:
    found: dict[str, object] = client.get("/api/v1/status", headers=VIEWER).json()
    return found


def dropped(client: httpx.Client, reason: str, count: int) -> None:
    """Wait until so many were dropped for this reason."""
    until(lambda: dict(status(client)["dropped"]).get(reason, 0) == count, 20)  # type: ignore[call-overload]


def test_spans_are_taken_as_protobuf_and_json_plain_and_compressed(client: httpx.Client) -> None:
    plain = spans()
    packed = ((plain, PROTOBUF), (gzip.compress(plain), GZIP), (zstd().compress(plain), ZSTD))
    for content, headers in packed:
        assert client.post("/v1/traces", content=content, headers=headers).is_success
    span = {"traceId": "01" * 16, "spanId": "03" * 8, "name": "n"}
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    assert client.post("/v1/traces", json=document({**span, **times})).json() == {}
    assert status(client)["spans"] == 4


def test_unusable_spans_are_answered_with_partial_success(client: httpx.Client) -> None:
    response = client.post("/v1/traces", content=spans(3, span_id=b""), headers=PROTOBUF)

    answer = ExportTraceServiceResponse.FromString(response.content)
    assert (response.status_code, answer.partial_success.rejected_spans) == (200, 3)


@pytest.mark.parametrize(
    ("content", "headers", "kind"),
    [
        (b"\xff\xff\xff", PROTOBUF, "unreadable-traces"),
        (b"{", JSON, "unreadable-traces"),
        (b"[]", JSON, "unreadable-traces"),
        (b"x", {"content-type": "text/plain"}, "unsupported-media-type"),
        (b"x", BROTLI, "unsupported-encoding"),
        (b"x", GZIP, "unreadable-gzip"),
        (gzip.compress(b"x" * 100)[:-4], GZIP, "unreadable-gzip"),
        (gzip.compress(b"\0" * (MAX_BODY + 1)), GZIP, "too-large"),
        (b"x", ZSTD, "unreadable-zstd"),
        (zstd().compress(b"x" * 100)[:-4], ZSTD, "unreadable-zstd"),
        (zstd().compress(b"\0" * (MAX_BODY + 1)), ZSTD, "too-large"),
        (b"\0" * (MAX_BODY + 1), PROTOBUF, "too-large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_otlp_is_refused_in_plain_words(
    standing: httpx.Client, content: bytes, headers: dict[str, str], kind: str
) -> None:
    answer = standing.post("/v1/traces", content=content, headers={**headers, **INGEST})
    assert problem(answer) == kind


@given(st.binary(max_size=200), st.sampled_from(["application/x-protobuf", "application/json"]))
def test_no_body_breaks_the_service(standing: httpx.Client, content: bytes, kind: str) -> None:
    headers = {"content-type": kind, **INGEST}
    answer = standing.post("/v1/traces", content=content, headers=headers)

    assert answer.status_code == 200 or problem(answer) == "unreadable-traces"


def report(client: httpx.Client, *metrics: object) -> dict[str, int]:
    answer = client.post("/api/v1/device-metrics", json={"metrics": metrics}, headers=DEVICES)
    assert answer.status_code == 202
    counts: dict[str, int] = answer.json()
    return counts


def test_device_metrics_are_checked_one_by_one_and_counted(client: httpx.Client) -> None:
    good = {"device": "d1", "trace_id": TRACE, "outcome": "success"}
    whole = {"member": "m", "session": "s", "error_code": "E7", "duration_ms": 12.5, "new": 1}
    wrong: list[dict[str, object]] = [{"outcome": "maybe"}, {"device": ""}, {"duration_ms": -1}]
    wrong += [{"trace_id": "zz" * 16}, {"trace_id": TRACE + "\n"}, {"member": "x" * 201}]
    bad = [*({**good, **each} for each in wrong), {}, "text", None]
    counts = report(client, good, {**good, "trace_id": "CD" * 16, **whole}, *bad)

    assert counts == {"accepted": 2, "rejected": len(bad)}
    assert status(client)["outcomes"] == 2
    dropped(client, "metric_unreadable", len(bad))


def test_a_degraded_answer_was_accepted_and_says_so(app: FastAPI, client: httpx.Client) -> None:
    metric = {"device": "d1", "trace_id": TRACE, "outcome": "degraded"}
    assert report(client, metric) == {"accepted": 1, "rejected": 0}
    engine: Engine = app.state.engine
    (outcome,) = engine._join._outcomes.take(TRACE.lower()) or ()
    assert (outcome.success, outcome.degraded) == (True, True)


def test_reports_that_are_repeated_or_whose_trace_never_comes_are_counted(
    app: FastAPI, client: httpx.Client
) -> None:
    metric = {"device": "d1", "trace_id": TRACE, "outcome": "success"}
    report(client, metric)
    report(client, metric, {**metric, "trace_id": TRACE.upper()})
    dropped(client, "join_duplicate", 2)

    report(client, {**metric, "trace_id": "1" * 32, "outcome": "failure"})
    after = status(client)
    assert (after["outcomes"], after["went_well"]) == (4, 3)
    engine: Engine = app.state.engine
    engine._join.expire(time.time() + 3600)
    dropped(client, "join_unknown_trace", 2)


def test_the_batch_itself_must_be_one(standing: httpx.Client) -> None:
    batches: list[object] = [[], {}, {"metrics": 1}, {"metrics": [{}] * 10_001}]
    for batch in batches:
        answer = standing.post("/api/v1/device-metrics", json=batch, headers=DEVICES)
        assert problem(answer) == "invalid"


# Ids that cannot be met by chance in a file of numbers and hexadecimal.
identity = st.text(
    st.characters(categories=["L", "P", "S"], codec="utf-8"), min_size=8, max_size=40
).map(lambda text: f"~{text}~")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nobody_is_stored_or_logged_in_clear(
    app: FastAPI, client: httpx.Client, file: Path, caplog: Log, data: st.DataObject
) -> None:
    # Given devices that report on requests we have the traces of, and on others; well or badly
    caplog.set_level(logging.DEBUG)
    device, member, session = (data.draw(identity, label=what) for what in "dms")
    trace = data.draw(st.binary(min_size=16, max_size=16).filter(any))
    outcome = data.draw(st.sampled_from(["success", "failure", "nonsense"]))
    metric = {"device": device, "member": member, "session": session}
    metric |= {"trace_id": trace.hex(), "outcome": outcome}
    client.post("/v1/traces", content=spans(trace_id=trace), headers=PROTOBUF).raise_for_status()
    report(client, metric, {**metric, "trace_id": "0" * 31 + "1"}, {**metric, "device": 1})
    client.post("/api/v1/device-metrics", json={"metrics": metric}, headers=DEVICES)
    client.post("/api/v1/device-metrics", json=[metric], headers=DEVICES)
    # When everything that is known is put on record
    engine: Engine = app.state.engine
    engine.tick(time.time() + 1)
    engine.scheduler.shut_down("test", time.time())
    # Then neither the files of the database nor the log nor any answer has them
    written = b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))
    assert b"CREATE TABLE" in written
    answers = b"".join(
        client.get(f"/api/v1/{path}", headers=VIEWER).content
        for path in ("status", "classes", "audit")
    )
    for who in (device, member, session):
        for encoded in (who, who.encode("unicode_escape").decode()):
            assert encoded.encode() not in written
            assert encoded.encode() not in answers
            assert encoded not in caplog.text


def test_equal_ids_are_equal_under_one_key_and_strangers_under_another(file: Path) -> None:
    metric = {"device": "kims-phone", "member": "kim", "trace_id": TRACE, "outcome": "success"}

    def seen(key: bytes) -> tuple[str, str]:
        app = service(f"sqlite:///{file}", member_key=key)
        with client_of(app, GIVEN["devices"]) as client:
            report(client, metric)
            (outcome,) = app.state.engine._join._outcomes.take(TRACE)
        return outcome.device, outcome.member

    assert seen(b"1" * 32) == seen(b"1" * 32)
    assert not set(seen(b"1" * 32)) & set(seen(b"2" * 32))
    assert "kim" not in "".join(seen(b"1" * 32))
