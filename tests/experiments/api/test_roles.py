"""Who may do what: every route, every role, every kind of token that opens nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from ldfi.experiments.api.rate_limit import RateLimiter
from ldfi.experiments.process.tokens import BELIEVED, ROLES
from ldfi.experiments.store import tokens
from ldfi.experiments.store.database import Database
from tests.experiments.applications import GIVEN, bearer, client_of, problem, service

LOOK = {"viewer", "operator", "admin"}
ACT = {"operator", "admin"}
RULE = {"admin"}

ALLOWED: dict[tuple[str, str], set[str]] = {
    ("GET", "/healthz"): set(ROLES),
    ("GET", "/readyz"): set(ROLES),
    ("GET", "/metrics"): {*LOOK, "metrics"},
    ("POST", "/v1/traces"): {"ingest", "admin"},
    ("POST", "/api/v1/device-metrics"): {"ingest", "devices", "admin"},
    ("GET", "/api/v1/edge/rules"): {"edge", "admin"},
    ("POST", "/api/v1/edge/asks"): {"edge", "admin"},
    ("GET", "/api/v1/openapi.json"): LOOK,
    ("GET", "/api/v1/status"): LOOK,
    ("GET", "/api/v1/classes"): LOOK,
    ("GET", "/api/v1/classes/called"): LOOK,
    ("GET", "/api/v1/audit"): LOOK,
    ("GET", "/api/v1/was-it-us"): LOOK,
    ("GET", "/api/v1/ids"): LOOK,
    ("GET", "/api/v1/whatif"): LOOK,
    ("POST", "/api/v1/forecast"): LOOK,
    ("GET", "/api/v1/events"): LOOK,
    ("GET", "/api/v1/campaigns"): LOOK,
    ("GET", "/api/v1/campaigns/{campaign_id}"): LOOK,
    ("GET", "/api/v1/campaigns/{campaign_id}/experiments"): LOOK,
    ("GET", "/api/v1/campaigns/{campaign_id}/certificates"): LOOK,
    ("GET", "/api/v1/campaigns/{campaign_id}/evidence"): LOOK,
    ("GET", "/api/v1/head"): LOOK,
    ("GET", "/api/v1/experiments"): LOOK,
    ("GET", "/api/v1/experiments/{experiment_id}"): LOOK,
    ("GET", "/api/v1/findings"): LOOK,
    ("GET", "/api/v1/findings/{finding_id}"): LOOK,
    ("GET", "/api/v1/findings/{finding_id}/scenario"): LOOK,
    ("GET", "/api/v1/findings/{finding_id}/issue"): LOOK,
    ("GET", "/api/v1/replays/runs"): LOOK,
    ("GET", "/api/v1/replays/runs/{replay_id}"): LOOK,
    ("POST", "/api/v1/replays/runs"): ACT,
    ("GET", "/api/v1/replays/{trace_id}"): LOOK,
    ("GET", "/api/v1/maintenance"): LOOK,
    ("GET", "/api/v1/maintenance/gate"): LOOK,
    ("GET", "/api/v1/maintenance/{window_id}/watch"): LOOK,
    ("POST", "/api/v1/halt"): ACT,
    ("POST", "/api/v1/resume"): ACT,
    ("POST", "/api/v1/campaigns"): ACT,
    ("POST", "/api/v1/campaigns/{campaign_id}/stop"): ACT,
    ("POST", "/api/v1/campaigns/{campaign_id}/pause"): ACT,
    ("POST", "/api/v1/campaigns/{campaign_id}/resume"): ACT,
    ("POST", "/api/v1/campaigns/{campaign_id}/release"): ACT,
    ("POST", "/api/v1/experiments"): ACT,
    ("POST", "/api/v1/experiments/{experiment_id}/approve"): ACT,
    ("POST", "/api/v1/experiments/{experiment_id}/reject"): ACT,
    ("POST", "/api/v1/experiments/{experiment_id}/abort"): ACT,
    ("POST", "/api/v1/findings/{finding_id}/acknowledge"): ACT,
    ("POST", "/api/v1/findings/{finding_id}/link"): ACT,
    ("POST", "/api/v1/findings/{finding_id}/verify"): ACT,
    ("POST", "/api/v1/maintenance"): ACT,
    ("POST", "/api/v1/maintenance/{window_id}/close"): ACT,
    ("POST", "/api/v1/tokens"): RULE,
    ("GET", "/api/v1/tokens"): RULE,
    ("DELETE", "/api/v1/tokens/{token_id}"): RULE,
    ("GET", "/api/v1/namespaces"): RULE,
    ("POST", "/api/v1/namespaces"): RULE,
}
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}
ENDLESS = ("GET", "/api/v1/events")

BODIES: list[dict[str, Any]] = [
    {},
    {"json": {}},
    {"content": b"{", "headers": {"content-type": "application/json"}},
    {"content": b"x", "headers": {"content-type": "text/plain"}},
    {"json": {}, "headers": {"idempotency-key": "k"}},
    {"json": {}, "headers": {"idempotency-key": ""}},
]
"""What somebody may send along who may not call: none of it is looked at."""


class Unlimited(RateLimiter):
    """Nobody can call 2,000 times within a second and not be told so, but for this test."""

    def take(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    app = service(f"sqlite:///{tmp_path_factory.mktemp('roles') / 'x.sqlite3'}")
    app.state.rate_limiter = Unlimited()
    return app


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[httpx.Client]:
    with client_of(app, None) as running:
        yield running


def served(app: FastAPI) -> set[tuple[str, str]]:
    paths = app.openapi()["paths"]
    return {(method.upper(), path) for path, item in paths.items() for method in item}


def called(client: httpx.Client, route: tuple[str, str], token: str | None) -> Iterator[str]:
    """What became of calling it with all sorts of bodies: a problem, or ``passed``."""
    method, path = route
    for body in BODIES:
        headers = {**body.get("headers", {}), **(bearer(token) if token else {})}
        url = path.replace("{", "").replace("}", "")
        request = client.build_request(method, url, **{**body, "headers": headers})
        answer = client.send(request, stream=True)  # the stream of events never ends
        if answer.status_code in {401, 403}:
            answer.read()
            yield problem(answer)
        else:
            yield "passed"
        answer.close()


def test_the_table_has_every_route_and_no_other(app: FastAPI) -> None:
    assert served(app) == set(ALLOWED)


def test_the_document_says_who_may(app: FastAPI) -> None:
    for path, item in app.openapi()["paths"].items():
        for method, operation in item.items():
            role, allowed = operation.get("x-role"), ALLOWED[method.upper(), path]
            if (method.upper(), path) in OPEN:
                assert role is None
                assert "security" not in operation
            else:
                assert role in allowed
                assert operation["security"]


@pytest.mark.parametrize("route", ALLOWED, ids=" ".join)
def test_exactly_the_roles_of_a_route_pass(client: httpx.Client, route: tuple[str, str]) -> None:
    for role in ROLES:
        expected = "passed" if role in ALLOWED[route] else "forbidden"
        assert set(called(client, route, GIVEN[role])) == {expected}, role


@pytest.fixture(scope="module")
def useless(app: FastAPI, client: httpx.Client) -> dict[str, str | None]:
    """Tokens that open nothing: none, a made-up one, and of each role one revoked, one expired."""
    database: Database = app.state.database
    found: dict[str, str | None] = {"none": None, "wrong": "nobody-ever-made-this-token"}
    for role in ROLES:
        with database.change(time.time(), "test") as change:
            gone, found[f"revoked {role}"] = tokens.create(change, "gone", role)
            tokens.revoke(change, gone.id)
            _, found[f"expired {role}"] = tokens.create(change, "old", role, time.time() - 1)
    return found


@pytest.mark.parametrize("route", sorted(set(ALLOWED) - OPEN), ids=" ".join)
def test_nothing_opens_without_a_token_that_is_good(
    client: httpx.Client, route: tuple[str, str], useless: dict[str, str | None]
) -> None:
    for what, token in useless.items():
        assert set(called(client, route, token)) == {"unauthorized"}, what


@pytest.mark.parametrize("header", ["", "Bearer", "bearer", "Basic YTpi", "Token x", "Bearer x y"])
def test_what_is_no_bearer_token_opens_nothing(client: httpx.Client, header: str) -> None:
    answer = client.get("/api/v1/status", headers={"authorization": header})

    assert problem(answer) == "unauthorized"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_in_the_url_opens_nothing(client: httpx.Client) -> None:
    for name in ("token", "access_token", "authorization"):
        answer = client.get("/api/v1/status", params={name: GIVEN["admin"]})
        assert problem(answer) == "unauthorized"


def test_a_revoked_token_dies_within_seconds(client: httpx.Client) -> None:
    admin = bearer(GIVEN["admin"])
    made = client.post(
        "/api/v1/tokens", json={"name": "kim", "role": "viewer"}, headers=admin
    ).json()
    mine = bearer(made["token"])
    assert client.get("/api/v1/status", headers=mine).is_success

    client.delete(f"/api/v1/tokens/{made['entry']['id']}", headers=admin)
    time.sleep(BELIEVED + 0.1)
    assert problem(client.get("/api/v1/status", headers=mine)) == "unauthorized"
