"""Halting needs no reason, and says what it has done, whatever the database says."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from ldfi.experiments.api.halt_door import ROOM
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.fit.protocol.rules import Rule
from tests.kit.cli import ldfi
from tests.kit.service import GIVEN, bearer, client_of, service

HALT = "/api/v1/halt"
ARMED = Rule("e1", "salt", Predicate(), 0.5, 0.5, (Fault("a>b", "error"),))


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return service(f"sqlite:///{tmp_path / 'x.sqlite3'}", halt_at=("127.0.0.1", 0))


@pytest.fixture
def client(app: FastAPI) -> Iterator[httpx.Client]:
    with client_of(app, GIVEN["operator"]) as running:
        assert running.get("/healthz").is_success
        yield running


@pytest.fixture(params=["the API", "the door"])
def url(request: pytest.FixtureRequest, app: FastAPI, client: httpx.Client) -> str:
    if request.param == "the API":
        return f"{client.base_url}{HALT}"
    return f"http://127.0.0.1:{app.state.halt_door.port}{HALT}"


def halt(url: str) -> httpx.Response:
    return httpx.post(url, headers=bearer(GIVEN["operator"]), timeout=10, trust_env=False)


def test_it_needs_no_reason_and_says_what_was_disarmed(app: FastAPI, url: str) -> None:
    board, now = app.state.engine.board, time.time()
    board.renew(now + 60)
    board.put(ARMED, 10, now)

    answer = halt(url)

    assert answer.status_code == 200
    assert answer.json() == {"halted": "no reason given", "disarmed": ["e1"], "on_record": True}


def test_while_the_database_takes_no_writes_it_holds_and_is_written_later(
    app: FastAPI, client: httpx.Client, url: str
) -> None:
    with app.state.database.engine.begin() as writing:
        for what in ("INSERT", "UPDATE"):
            refuse = f"BEFORE {what} ON flag BEGIN SELECT RAISE(FAIL, 'read-only'); END"
            writing.execute(text(f"CREATE TRIGGER no_{what} {refuse}"))

    answer = halt(url)

    assert answer.status_code == 200
    assert answer.json() == {"halted": "no reason given", "disarmed": [], "on_record": False}
    assert client.get("/api/v1/status").json()["halted"] == "no reason given"


def test_requests_that_are_never_said_whole_do_not_fill_the_door(
    app: FastAPI, client: httpx.Client
) -> None:
    port = app.state.halt_door.port
    head = (
        f"POST {HALT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {GIVEN['operator']}\r\n"
        "content-type: application/json\r\ncontent-length: 20\r\n\r\n{"
    )
    slow = []
    try:
        for _ in range(ROOM + 8):
            slow.append(socket.create_connection(("127.0.0.1", port)))
            slow[-1].sendall(head.encode())

        assert halt(f"http://127.0.0.1:{port}{HALT}").status_code == 200
    finally:
        for each in slow:
            each.close()


def test_the_command_alone_halts(client: httpx.Client) -> None:
    done = ldfi("halt", "--url", str(client.base_url), LDFI_TOKEN=GIVEN["operator"])

    assert (done.returncode, done.stdout) == (
        0,
        "Halted: no reason given. `ldfi resume` ends it.\n",
    )
