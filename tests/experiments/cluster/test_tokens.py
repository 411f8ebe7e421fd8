from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from sqlalchemy import select, text
from typer.testing import CliRunner

from ldfi.cli.token import app as cli
from ldfi.experiments.api import tokens as routes
from ldfi.experiments.api.auth import Admin as AdminCaller
from ldfi.experiments.api.auth import Devices, Edge, Ingest, Operator, Viewer
from ldfi.experiments.cluster.tokens import BELIEVED, ROLES, Tokens
from ldfi.experiments.store import tokens as stored
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow, Base
from ldfi.testing.live_service import served
from tests.kit.service import GIVEN, application, bearer, client_of, problem

GUARDS = {
    "viewer": (Viewer, {"viewer", "operator", "admin"}),
    "operator": (Operator, {"operator", "admin"}),
    "admin": (AdminCaller, {"admin"}),
    "ingest": (Ingest, {"ingest", "admin"}),
    "devices": (Devices, {"devices", "ingest", "admin"}),
    "edge": (Edge, {"edge", "admin"}),
}
"""Route → what guards it, and who may use it."""


def guarded() -> APIRouter:
    """A route for each kind of caller, which answers with the caller's name."""
    router = APIRouter()
    for route, (guard, _) in GUARDS.items():

        def name(caller: Any) -> str:
            return str(caller.name)

        name.__annotations__["caller"] = guard
        router.add_api_route(f"/{route}", name)
    return router


@pytest.fixture
def app(database: Database) -> FastAPI:
    return application(database, [routes.router, guarded()])


@pytest.fixture
def client(app: FastAPI) -> Iterator[httpx.Client]:
    with client_of(app) as running:
        yield running


def made(client: httpx.Client, role: str = "operator", **more: object) -> tuple[str, str]:
    """A new token and its id."""
    answer = client.post("/api/v1/tokens", json={"name": "kim", "role": role, **more})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()["token"], answer.json()["entry"]["id"]


@pytest.mark.parametrize("role", ROLES)
def test_roles_open_what_they_should_and_nothing_else(client: httpx.Client, role: str) -> None:
    token, _ = made(client, role)
    for route, (_, allowed) in GUARDS.items():
        for each, name in ((GIVEN[role], role), (token, "kim")):  # type: ignore[index]
            answer = client.get(f"/{route}", headers=bearer(each))
            if role in allowed:
                assert answer.json() == name
            else:
                assert problem(answer) == "forbidden"


def test_a_token_is_shown_once_and_nowhere_kept(client: httpx.Client, database: Database) -> None:
    token, token_id = made(client)

    listed = client.get("/api/v1/tokens")
    assert [item["id"] for item in listed.json()["items"]] == [token_id]
    assert token not in listed.text
    with database.read() as session:
        for table in Base.metadata.sorted_tables:
            assert token not in repr(session.execute(select(table)).all())


def test_a_revoked_token_is_dead_within_seconds_and_in_the_audit(database: Database) -> None:
    # Given a token that was used a moment ago
    now = [1000.0]
    tokens = Tokens(f"admin:{GIVEN['admin']}", database, clock=lambda: now[0])
    with client_of(application(database, [routes.router, guarded()], tokens)) as client:
        token, token_id = made(client)
        assert client.get("/operator", headers=bearer(token)).is_success
        # When it is revoked
        assert client.delete(f"/api/v1/tokens/{token_id}").json()["revoked"] is True
        assert client.delete(f"/api/v1/tokens/{token_id}").json()["revoked"] is True
        # Then it is dead as soon as what was believed of it is too old
        now[0] += BELIEVED
        assert problem(client.get("/operator", headers=bearer(token))) == "unauthorized"
    assert BELIEVED < 5
    with database.read() as session:
        rows = [(r.who, r.what, r.subject) for r in session.scalars(select(AuditRow))]
    assert rows == [("admin", "token created", token_id), ("admin", "token revoked", token_id)]


def test_a_token_expires_to_the_second_however_recently_it_was_used(database: Database) -> None:
    now = [1000.0]
    tokens = Tokens("", database, clock=lambda: now[0])
    with database.change(1000.0, "kim") as change:
        _, token = stored.create(change, "lee", "viewer", expires_at=1002.0)

    assert tokens.look_up(token) == tokens.known(token) is not None
    now[0] = 1001.9
    assert tokens.known(token) is not None
    now[0] = 1002.0
    assert tokens.known(token) is None
    assert tokens.look_up(token) is None


def test_given_tokens_work_while_the_database_does_not(database: Database) -> None:
    app = application(database, [guarded()])
    with database.engine.begin() as connection:
        connection.execute(text("DROP TABLE token"))
    with client_of(app) as client:
        assert client.get("/admin").json() == "admin"


def test_a_given_token_may_have_a_name() -> None:
    tokens = Tokens("kim@operator:0123456789abcdef:x, viewer:a@b:0123456789abcdef")

    kim, nobody = tokens.known("0123456789abcdef:x"), tokens.known("a@b:0123456789abcdef")
    assert kim is not None
    assert (kim.name, kim.role) == ("kim", "operator")
    assert nobody is not None
    assert (nobody.name, nobody.role) == ("viewer", "viewer")


@pytest.mark.parametrize(
    "text_",
    ["root:0123456789abcdef0", "viewer:short", "viewer", "@viewer:0123456789abcdef0", "a b@x:y"],
)
def test_given_tokens_that_cannot_be_read_are_refused_without_being_shown(text_: str) -> None:
    with pytest.raises(ValueError, match="ROLE:TOKEN") as caught:
        Tokens(text_)
    assert "0123456789abcdef0" not in str(caught.value)


@pytest.mark.parametrize("name", ["operator", "ldfi", "", "a b", "x" * 65, "\n", "kim\n"])
def test_names_that_would_mislead_the_audit_are_refused(client: httpx.Client, name: str) -> None:
    answer = client.post("/api/v1/tokens", json={"name": name, "role": "viewer"})
    assert problem(answer) == "invalid"


def test_an_unknown_token_cannot_be_revoked(client: httpx.Client) -> None:
    assert problem(client.delete("/api/v1/tokens/x")) == "not-found"


def test_tokens_from_the_command_line(app: FastAPI) -> None:
    with served(app) as url:

        def ldfi(*words: str) -> str:
            done = CliRunner().invoke(cli, [*words, "--url", url, "--token", GIVEN["admin"]])
            assert done.exit_code == 0, done.output
            return done.stdout.strip()

        token = ldfi("create", "kim", "viewer", "--expires", "12h")
        with httpx.Client(base_url=url, trust_env=False) as client:
            assert client.get("/viewer", headers=bearer(token)).json() == "kim"
        (entry,) = json.loads(ldfi("list", "--json"))
        assert entry["expires_at"] - entry["created_at"] == pytest.approx(12 * 3600)
        assert "kim" in ldfi("revoke", entry["id"])
        assert "yes" in ldfi("list")
        assert json.loads(ldfi("list", "--json"))[0]["revoked"] is True


def test_every_page_of_tokens_is_listed(app: FastAPI, database: Database) -> None:
    with database.change(1.0, "kim") as change:
        expected = {stored.create(change, f"n{number}", "viewer")[0].id for number in range(201)}
    with served(app) as url:
        words = ["list", "--json", "--url", url, "--token", GIVEN["admin"]]
        listed = json.loads(CliRunner().invoke(cli, words).stdout)

    assert {entry["id"] for entry in listed} == expected


def test_a_length_of_time_that_is_none_is_usage() -> None:
    words = ["create", "kim", "viewer", "--expires", "soon", "--token", "x"]
    assert CliRunner().invoke(cli, words).exit_code == 2
