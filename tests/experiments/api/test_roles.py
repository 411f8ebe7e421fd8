"""Who may do what: every route, every role, every kind of token that opens nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from ldfi.experiments.cluster.tokens import ROLES
from ldfi.experiments.store import tokens
from ldfi.experiments.store.database import Database
from tests.kit.service import GIVEN, problem

LOOK = {"viewer", "operator", "admin"}
ACT = {"operator", "admin"}
RULE = {"admin"}

_API = {
    "GET": {
        "viewer": """openapi.json status classes classes/called loose-calls audit was-it-us ids
            whatif events campaigns campaigns/{campaign_id} campaigns/{campaign_id}/experiments
            campaigns/{campaign_id}/certificates campaigns/{campaign_id}/evidence head
            experiments experiments/{experiment_id} findings findings/{finding_id}
            findings/{finding_id}/scenario findings/{finding_id}/issue
            replays/runs replays/runs/{replay_id} replays/{trace_id}
            maintenance maintenance/gate maintenance/{window_id}/watch""",
        "admin": "tokens namespaces",
    },
    "POST": {
        "viewer": "forecast",
        "operator": """halt resume campaigns campaigns/{campaign_id}/stop
            campaigns/{campaign_id}/pause campaigns/{campaign_id}/resume
            campaigns/{campaign_id}/release experiments experiments/{experiment_id}/approve
            experiments/{experiment_id}/reject experiments/{experiment_id}/abort
            findings/{finding_id}/acknowledge findings/{finding_id}/link
            findings/{finding_id}/verify maintenance maintenance/{window_id}/close replays/runs
            loose-calls""",
        "admin": "tokens namespaces",
    },
    "DELETE": {"admin": "tokens/{token_id}"},
}
"""Method → the least of the people who may → paths below ``/api/v1/``."""
PEOPLE = {"viewer": LOOK, "operator": ACT, "admin": RULE}

ALLOWED: dict[tuple[str, str], set[str]] = {
    ("GET", "/healthz"): set(ROLES),
    ("GET", "/readyz"): set(ROLES),
    ("GET", "/metrics"): {*LOOK, "metrics"},
    ("POST", "/v1/traces"): {"ingest", "admin"},
    ("POST", "/api/v1/device-metrics"): {"ingest", "devices", "admin"},
    ("GET", "/api/v1/edge/rules"): {"edge", "admin"},
    ("POST", "/api/v1/edge/asks"): {"edge", "admin"},
    **{
        (method, f"/api/v1/{path}"): PEOPLE[least]
        for method, routes in _API.items()
        for least, paths in routes.items()
        for path in paths.split()
    },
}
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}
ENDLESS = ("GET", "/api/v1/events")

KINDS = {b"{": "application/json", b"x": "text/plain"}
BODIES: list[dict[str, Any]] = [
    *({}, {"json": {}}),
    *({"content": body, "headers": {"content-type": kind}} for body, kind in KINDS.items()),
    *({"json": {}, "headers": {"idempotency-key": key}} for key in ("k", "")),
]
"""What somebody may send along who may not call: none of it is looked at."""


def served(app: FastAPI) -> set[tuple[str, str]]:
    paths = app.openapi()["paths"]
    return {(method.upper(), path) for path, item in paths.items() for method in item}


def called(
    client: httpx.Client, route: tuple[str, str], token: str | None, bodies: list[dict[str, Any]]
) -> Iterator[str]:
    """What became of calling it with these bodies: a problem, or ``passed``."""
    method, path = route
    for body in bodies:
        headers = {**body.get("headers", {}), "authorization": f"Bearer {token}" if token else ""}
        url = path.replace("{", "").replace("}", "")
        request = client.build_request(method, url, **{**body, "headers": headers})
        answer = client.send(request, stream=True)  # the stream of events never ends
        if answer.status_code in {401, 403}:
            answer.read()
            yield problem(answer)
        else:
            yield "passed"
        answer.close()


def test_the_table_has_every_route_and_no_other(standing_app: FastAPI) -> None:
    assert served(standing_app) == set(ALLOWED)


def test_the_document_says_who_may(standing_app: FastAPI) -> None:
    for path, item in standing_app.openapi()["paths"].items():
        for method, operation in item.items():
            role, allowed = operation.get("x-role"), ALLOWED[method.upper(), path]
            if (method.upper(), path) in OPEN:
                assert role is None
                assert "security" not in operation
            else:
                assert role in allowed
                assert operation["security"]


@pytest.mark.parametrize("route", ALLOWED, ids=" ".join)
def test_exactly_the_roles_of_a_route_pass(standing: httpx.Client, route: tuple[str, str]) -> None:
    outside = sorted(set(ROLES) - ALLOWED[route])
    for role in ROLES:
        expected = "passed" if role in ALLOWED[route] else "forbidden"
        bodies = BODIES if role in outside[:1] else BODIES[:1]
        assert set(called(standing, route, GIVEN[role], bodies)) == {expected}, role


@pytest.fixture(scope="module")
def useless(standing_app: FastAPI, standing: httpx.Client) -> dict[str, str | None]:
    """Tokens that open nothing: none, a made-up one, and one revoked and one expired that would
    have opened everything."""
    database: Database = standing_app.state.database
    with database.change(time.time(), "test") as change:
        gone, revoked = tokens.create(change, "gone", "admin")
        tokens.revoke(change, gone.id)
        _, expired = tokens.create(change, "old", "admin", time.time() - 1)
    made_up = "nobody-ever-made-this-token"
    return {"none": None, "wrong": made_up, "revoked": revoked, "expired": expired}


@pytest.mark.parametrize("route", sorted(set(ALLOWED) - OPEN), ids=" ".join)
def test_nothing_opens_without_a_token_that_is_good(
    standing: httpx.Client, route: tuple[str, str], useless: dict[str, str | None]
) -> None:
    for what, token in useless.items():
        bodies = BODIES if what == "none" else BODIES[:1]
        assert set(called(standing, route, token, bodies)) == {"unauthorized"}, what


LONG = b"Bearer " + b"x" * 5000


@pytest.mark.parametrize(
    "header",
    [b"", b"Bearer", b"Basic YTpi", b"Token x", b"Bearer x y", b"Bearer \xff\xfe", LONG],
)
def test_what_is_no_bearer_token_opens_nothing(standing: httpx.Client, header: bytes) -> None:
    answer = standing.get("/api/v1/status", headers={b"authorization": header})

    assert problem(answer) == "unauthorized"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_in_the_url_opens_nothing(standing: httpx.Client) -> None:
    for name in ("token", "access_token", "authorization"):
        url = f"/api/v1/status?{name}={GIVEN['admin']}"
        assert problem(standing.get(url, headers={"authorization": ""})) == "unauthorized"
