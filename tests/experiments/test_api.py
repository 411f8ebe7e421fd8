"""The API over its ASGI interface, with a real engine and a real SQLite file behind it."""

from __future__ import annotations

import gc
import gzip
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

from experiments.api.app import create_app
from experiments.api.auth import Tokens
from experiments.domain.observation import Outcome
from experiments.engine import Engine
from tests.fit.applications import served

ROLES = ("viewer", "operator", "admin", "ingest", "edge")
TOKENS = {role: f"{role}-0123456789abcdef" for role in ROLES}
PROTOBUF = {"content-type": "application/x-protobuf"}


def bearer(role: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[role]}"}


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    tokens = Tokens(",".join(f"{role}:{token}" for role, token in TOKENS.items()))
    return create_app(tokens, f"sqlite:///{tmp_path / 'x.sqlite3'}")


@pytest.fixture
def client(app: FastAPI) -> Iterator[httpx.Client]:
    with served(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=20) as running:
        yield running


def a_body(spans: int = 1, trace_id: bytes = b"\1" * 16, span_id: bytes = b"\2" * 8) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number in range(spans):
        span = scope.spans.add()
        span.trace_id, span.span_id, span.name = trace_id, span_id, f"s{number}"
        span.start_time_unix_nano, span.end_time_unix_nano = 1, 2
    return request.SerializeToString()


def problem(response: httpx.Response) -> dict[str, object]:
    """The answer, which must be a problem document."""
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, object] = response.json()
    assert document["status"] == response.status_code
    assert str(document["type"]).startswith("https://")
    return document


ROUTES = [
    ("POST", "/v1/traces", {"ingest"}),
    ("POST", "/api/v1/device-metrics", {"ingest"}),
    ("GET", "/api/v1/edge/rules", {"edge"}),
    ("GET", "/api/v1/status", {"viewer", "operator"}),
    ("GET", "/api/v1/classes", {"viewer", "operator"}),
    ("POST", "/api/v1/campaigns", {"operator"}),
    ("GET", "/api/v1/campaigns", {"viewer", "operator"}),
    ("GET", "/api/v1/campaigns/x", {"viewer", "operator"}),
    ("POST", "/api/v1/campaigns/x/stop", {"operator"}),
    ("GET", "/api/v1/campaigns/x/experiments", {"viewer", "operator"}),
    ("GET", "/api/v1/campaigns/x/certificates", {"viewer", "operator"}),
    ("GET", "/api/v1/findings", {"viewer", "operator"}),
    ("GET", "/api/v1/audit", {"viewer", "operator"}),
    ("POST", "/api/v1/halt", {"operator"}),
    ("POST", "/api/v1/resume", {"operator"}),
]


@pytest.mark.parametrize(("method", "path", "allowed"), ROUTES)
def test_every_route_wants_a_token_of_its_role(
    client: httpx.Client, method: str, path: str, allowed: set[str]
) -> None:
    assert problem(client.request(method, path))["title"] == "unauthorized"
    assert client.request(method, path, headers={"authorization": "Bearer x"}).status_code == 401
    for role in ROLES:
        status = client.request(method, path, headers=bearer(role)).status_code
        assert (status != 403) is (role in allowed | {"admin"}), role


def test_no_route_is_missing_from_the_table_above(app: FastAPI) -> None:
    listed = {(method, path.replace("/x", "/{campaign_id}")) for method, path, _ in ROUTES}
    paths = app.openapi()["paths"]
    served = {(method.upper(), path) for path, item in paths.items() for method in item}

    assert served - listed == {("GET", "/healthz"), ("GET", "/readyz")}


def test_health_needs_no_token(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").is_success


def test_spans_are_taken_as_protobuf_and_json_plain_and_gzipped(client: httpx.Client) -> None:
    plain, headers = a_body(), {**bearer("ingest"), **PROTOBUF}
    assert client.post("/v1/traces", content=plain, headers=headers).is_success
    zipped = {**headers, "content-encoding": "gzip"}
    assert client.post("/v1/traces", content=gzip.compress(plain), headers=zipped).is_success
    document = {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "01" * 16,
                                "spanId": "03" * 8,
                                "name": "n",
                                "startTimeUnixNano": "1",
                                "endTimeUnixNano": "2",
                            }
                        ]
                    }
                ]
            }
        ]
    }
    answer = client.post("/v1/traces", json=document, headers=bearer("ingest"))
    assert answer.json() == {}

    assert client.get("/api/v1/status", headers=bearer("viewer")).json()["spans"] == 3


def test_unusable_spans_are_answered_with_partial_success(client: httpx.Client) -> None:
    headers = {**bearer("ingest"), **PROTOBUF}
    response = client.post("/v1/traces", content=a_body(3, span_id=b""), headers=headers)

    answer = ExportTraceServiceResponse.FromString(response.content)
    assert (response.status_code, answer.partial_success.rejected_spans) == (200, 3)


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"\xff\xff\xff", PROTOBUF, 400),
        (b"{", {"content-type": "application/json"}, 400),
        (b"[]", {"content-type": "application/json"}, 400),
        (b"x", {"content-type": "text/plain"}, 415),
        (b"x", {**PROTOBUF, "content-encoding": "gzip"}, 400),
        (b"x", {**PROTOBUF, "content-encoding": "br"}, 415),
        (gzip.compress(b"x" * 100)[:-4], {**PROTOBUF, "content-encoding": "gzip"}, 400),
        (gzip.compress(b"\0" * 20_000_000), {**PROTOBUF, "content-encoding": "gzip"}, 413),
        (b"\0" * 17_000_000, PROTOBUF, 413),
    ],
)
def test_what_is_no_otlp_is_refused_in_plain_words(
    client: httpx.Client, content: bytes, headers: dict[str, str], status: int
) -> None:
    response = client.post("/v1/traces", content=content, headers={**bearer("ingest"), **headers})

    assert response.status_code == status
    assert problem(response)["detail"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["application/x-protobuf", "application/json"]))
def test_no_body_breaks_the_service(client: httpx.Client, content: bytes, kind: str) -> None:
    headers = {**bearer("ingest"), "content-type": kind}
    assert client.post("/v1/traces", content=content, headers=headers).status_code in {200, 400}


def test_device_metrics_are_checked_one_by_one_and_counted(client: httpx.Client) -> None:
    good = {"device": "d1", "trace_id": "ab" * 16, "outcome": "success"}
    batch = [
        good,
        {**good, "outcome": "maybe"},
        {**good, "trace_id": "zz" * 16},
        {**good, "device": ""},
        {**good, "duration_ms": -1},
        {},
    ]
    answer = client.post(
        "/api/v1/device-metrics", json={"metrics": batch}, headers=bearer("ingest")
    )

    assert answer.json() == {"accepted": 1, "rejected": 5}
    status = client.get("/api/v1/status", headers=bearer("viewer")).json()
    assert (status["outcomes"], status["dropped"]["metric_unreadable"]) == (1, 5)


def test_halt_stays_until_resume_and_is_in_the_audit(client: httpx.Client) -> None:
    halted = client.post("/api/v1/halt", json={"reason": "release"}, headers=bearer("operator"))
    refused = client.post("/api/v1/campaigns", json={}, headers=bearer("operator"))

    assert halted.json() == {"halted": "release"}
    assert problem(refused)["title"] == "halted"
    client.post("/api/v1/resume", headers=bearer("operator"))
    assert client.post("/api/v1/campaigns", json={}, headers=bearer("operator")).status_code == 201
    done = [row["what"] for row in client.get("/api/v1/audit", headers=bearer("viewer")).json()]
    assert done == ["campaign started", "resume", "halt"]


def test_a_second_campaign_has_to_wait_for_the_first(client: httpx.Client) -> None:
    first = client.post("/api/v1/campaigns", json={}, headers=bearer("operator")).json()
    second = client.post("/api/v1/campaigns", json={}, headers=bearer("operator"))
    assert problem(second)["title"] == "conflict"

    stopped = client.post(
        f"/api/v1/campaigns/{first['id']}/stop", json={"reason": "x"}, headers=bearer("operator")
    )
    assert stopped.json()["state"] == "stopped"


@pytest.mark.parametrize(
    "settings_",
    [{"max_size": 0}, {"treatment": 0.9}, {"kinds": ["fire"]}, {"colour": 1}, {"strategy": "x"}],
)
def test_bounds_that_make_no_sense_are_refused(
    client: httpx.Client, settings_: dict[str, object]
) -> None:
    response = client.post("/api/v1/campaigns", json=settings_, headers=bearer("operator"))

    assert response.status_code == 422
    assert problem(response)["errors"]


def test_an_unknown_campaign_is_not_found(client: httpx.Client) -> None:
    assert problem(client.get("/api/v1/campaigns/x", headers=bearer("viewer")))["status"] == 404


def test_the_edge_waits_for_news_no_longer_than_it_asked_to(client: httpx.Client) -> None:
    first = client.get("/api/v1/edge/rules", headers=bearer("edge")).json()
    started = time.monotonic()
    query = {"version": first["version"], "wait": "0.2"}
    again = client.get("/api/v1/edge/rules", params=query, headers=bearer("edge")).json()

    assert first["rules"] == []
    assert again == first
    assert time.monotonic() - started >= 0.2


def test_identities_are_hashed_at_the_door(client: httpx.Client, app: FastAPI) -> None:
    metric = {"device": "kims-phone", "member": "kim@example.org", "trace_id": "ab" * 16}
    batch = {"metrics": [{**metric, "outcome": "success"}]}
    client.post("/api/v1/device-metrics", json=batch, headers=bearer("ingest"))

    engine: Engine = app.state.engine
    assert engine.outcomes == 1
    assert not [
        found
        for found in gc.get_objects()
        if isinstance(found, Outcome) and ("kim" in found.device + found.member)
    ]


@pytest.mark.parametrize("text", ["root:0123456789abcdef0", "viewer:short", "viewer"])
def test_tokens_that_cannot_be_read_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match="ROLE:TOKEN") as caught:
        Tokens(text)
    assert "0123456789abcdef0" not in str(caught.value)
