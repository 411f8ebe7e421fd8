"""The door for halting: open while the other one is not. At either of them halting needs no reason,
and says what it has done, whatever the database says."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, text

from ldfi.experiments.api.halt_door import ROOM, HaltConnection, HaltDoor
from ldfi.experiments.cluster.relay import EdgeRelay
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.store import halts
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.fit.protocol.rules import Rule
from tests.experiments.members import until
from tests.kit.cli import ldfi
from tests.kit.service import GIVEN, bearer, problem, service

SECONDS = 15.0
"""How soon whoever halts is answered, and edges that can be reached have heard of it, however busy
the machine is: others stand at the door, and the engine is at one thing, for longer."""
SOON = 1.5
"""The same in processes, which have the machine to themselves."""
WHY = {"reason": "release"}
OPERATOR = bearer(GIVEN["operator"])


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return service(f"sqlite:///{tmp_path / 'x.sqlite3'}", halt_at=("127.0.0.1", 0))


@pytest.fixture
def door(app: FastAPI, client: httpx.Client) -> str:
    assert client.get("/healthz").is_success
    return f"http://127.0.0.1:{app.state.halt_door.port}"


def halted(door: str, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.post(
            f"{door}/api/v1/halt", json=WHY, headers=headers or OPERATOR, timeout=SECONDS
        )


def on_record(database: Database) -> tuple[str | None, list[tuple[str, str, str]]]:
    with database.read() as session:
        rows = session.scalars(select(AuditRow).where(AuditRow.what == "halt"))
        return halts.halted(session), [(row.what, row.who, row.why) for row in rows]


def test_a_halt_at_the_door_is_in_the_audit(app: FastAPI, client: httpx.Client, door: str) -> None:
    assert halted(door).json()["halted"] == "release"
    assert client.get("/api/v1/status").json()["halted"] == "release"
    # And after the engine has looked at what is on record
    looked(app)
    assert client.get("/api/v1/status").json()["halted"] == "release"
    assert on_record(app.state.database) == ("release", [("halt", "operator", "release")])
    # Until somebody resumes, for good
    client.post("/api/v1/resume")
    looked(app)
    assert client.get("/api/v1/status").json()["halted"] is None


def looked(app: FastAPI) -> None:
    """Wait until the engine has looked at the record, as it does each second."""
    switch, seen = app.state.engine.scheduler.switch, threading.Event()
    loop = app.state.halt_door._engines_loop
    loop.call_soon_threadsafe(lambda: switch.sync(time.time()))
    loop.call_soon_threadsafe(seen.set)
    assert seen.wait(20), "the engine did nothing for 20 s"


def a_relay() -> EdgeRelay:
    async def nowhere() -> str:
        return ""

    return EdgeRelay(nowhere, 10.0)


def test_a_door_that_is_closed_as_soon_as_it_opens_ends_in_peace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite3'}")

    async def opened_and_closed() -> None:
        for _ in range(10):
            HaltDoor(("127.0.0.1", 0), Tokens(""), database, lambda: None, a_relay()).close()

    asyncio.run(opened_and_closed())

    assert raised == []
    assert [each.name for each in threading.enumerate() if each.name == "halt"] == []
    database.close()


def test_the_door_opens_without_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong in there: only a door that is open can tell of it."""

    class Odd(Tokens):
        def beside(self, _database: Database) -> Tokens:
            return self

        def look_up(self, _token: str) -> NoReturn:
            raise TypeError("what nobody has thought of")

    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite3'}")

    async def asked() -> httpx.Response:
        door = HaltDoor(("127.0.0.1", 0), Odd(""), database, lambda: None, a_relay())
        try:
            return await asyncio.to_thread(halted, f"http://127.0.0.1:{door.port}")
        finally:
            await asyncio.to_thread(door.close)

    assert asyncio.run(asked()).status_code == 500
    assert raised == []
    database.close()


def test_the_door_asks_for_the_same_roles(door: str) -> None:
    for token in (GIVEN["viewer"], GIVEN["edge"]):
        assert problem(halted(door, **bearer(token))) == "forbidden"
    assert problem(halted(door, **bearer("nobody-0123456789abcdef"))) == "unauthorized"
    assert halted(door).is_success
    with httpx.Client(base_url=door, headers=OPERATOR, trust_env=False) as client:
        assert client.get("/api/v1/status").status_code == 404
        assert client.post("/api/v1/halt", json={"reason": ""}).status_code == 422


def armed(app: FastAPI) -> None:
    """Have a rule in force, as an experiment has."""
    board, now = app.state.engine.board, time.time()
    rule = Rule("e1", "salt", Predicate(), 0.5, 0.5, (Fault("a>b", "error"),))
    board.renew(now + 60)
    board.put(rule, 10, now)


def test_waiting_edges_hear_of_it_in_time(app: FastAPI, client: httpx.Client, door: str) -> None:
    app.state.halt_door._engines_loop.call_soon_threadsafe(armed, app)

    def ask(version: str, wait: float) -> dict[str, Any]:
        query: dict[str, Any] = {"edge": "e", "version": version, "wait": wait}
        headers = bearer(GIVEN["edge"])
        answer = client.get("/api/v1/edge/rules", params=query, headers=headers)
        document: dict[str, Any] = answer.raise_for_status().json()
        return document

    held = ask("", 0)
    while not held["rules"]:
        held = ask(held["version"], 1)
    # Given an edge that holds a rule, and waits for news
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(ask, held["version"], 30.0)
        time.sleep(0.2)
        # When somebody halts
        assert halted(door).is_success
        # Then it holds none
        assert waiting.result(SECONDS)["rules"] == []


def test_the_door_is_open_while_the_engine_is_busy(
    app: FastAPI, client: httpx.Client, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an engine that is at one thing for seconds, in the loop of the other door
    tick, began, done = app.state.engine.tick, threading.Event(), threading.Event()

    def slow(now: float, most: int) -> bool:
        began.set()
        done.wait(60)
        return bool(tick(now, most))

    monkeypatch.setattr(app.state.engine, "tick", slow)
    app.state.halt_door._engines_loop.call_soon_threadsafe(armed, app)
    assert began.wait(5)
    with pytest.raises(httpx.ReadTimeout):
        client.get("/healthz", timeout=0.3)
    # When somebody halts, Then it is on record at once, and the engine hears of it first thing
    assert halted(door).is_success
    assert on_record(app.state.database)[0] == "release"
    done.set()
    assert client.get("/api/v1/status").json()["armed"] == []


def test_silence_does_not_close_the_door(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HaltConnection, "seconds", 120.0)  # they give way, and are not cut off
    host, port = "127.0.0.1", int(door.rpartition(":")[2])
    silent = [socket.create_connection((host, port)) for _ in range(3 * ROOM)]
    assert halted(door).is_success
    for each in silent:
        each.close()


@pytest.mark.long
@pytest.mark.skipif(
    sys.platform != "linux", reason="only there has another process's limit a setter"
)
@pytest.mark.parametrize("at_the_door", [0, 3 * ROOM])
def test_halt_goes_through_while_no_descriptor_is_left(tmp_path: Path, at_the_door: int) -> None:
    # Given a service with few descriptors
    with running_service(tmp_path, descriptors=150) as (url, door):
        silent: list[socket.socket] = []
        try:
            # When strangers take all of them, and say nothing
            where = ("127.0.0.1", int(url.rpartition(":")[2]))
            silent += [socket.create_connection(where) for _ in range(300)]
            with pytest.raises(httpx.TransportError), httpx.Client(trust_env=False) as client:
                client.get(f"{url}/healthz", timeout=1.0)
            # And others stand at the door itself, and say nothing either
            where = ("127.0.0.1", int(door.rpartition(":")[2]))
            silent += [socket.create_connection(where) for _ in range(at_the_door)]
            # Then halting goes through all the same
            began = time.monotonic()
            assert halted(door).json()["halted"] == "release"
            assert time.monotonic() - began < SOON
        finally:
            for each in silent:
                each.close()
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite3'}")
    assert on_record(database) == ("release", [("halt", "operator", "release")])
    database.close()


def test_the_command_tries_the_door_then_api(client: httpx.Client, app: FastAPI, door: str) -> None:
    told = {"LDFI_TOKEN": GIVEN["operator"], "LDFI_HALT_URL": door}
    # Given an API that nobody answers at
    done = ldfi("halt", "one", "--url", "http://127.0.0.1:9", **told)
    assert done.returncode == 0, done.stderr
    # And a door that nobody answers at
    there = str(client.base_url)
    done = ldfi("halt", "two", "--url", there, "--door", "http://127.0.0.1:9", **told)
    assert (done.returncode, "trying the API" in done.stderr) == (0, True)
    assert [why for _, _, why in on_record(app.state.database)[1]] == ["one", "two"]
    # What the door refuses is not asked of the API
    told["LDFI_TOKEN"] = GIVEN["viewer"]
    assert ldfi("halt", "three", "--url", there, **told).returncode == 2


@pytest.fixture(params=["the API", "the door"])
def url(request: pytest.FixtureRequest, client: httpx.Client, door: str) -> str:
    return f"{client.base_url if request.param == 'the API' else door}/api/v1/halt"


def halt(url: str) -> httpx.Response:
    return httpx.post(url, headers=OPERATOR, timeout=10, trust_env=False)


def test_it_needs_no_reason_and_says_what_was_disarmed(app: FastAPI, url: str) -> None:
    armed(app)
    answer = halt(url)
    assert answer.status_code == 200
    assert answer.json() == {"halted": "no reason given", "disarmed": ["e1"], "on_record": True}


def test_a_halt_holds_without_the_database(app: FastAPI, client: httpx.Client, url: str) -> None:
    """While it takes no writes; it is written later."""
    with app.state.database.engine.begin() as writing:
        for what in ("INSERT", "UPDATE"):
            refuse = f"BEFORE {what} ON flag BEGIN SELECT RAISE(FAIL, 'read-only'); END"
            writing.execute(text(f"CREATE TRIGGER no_{what} {refuse}"))
    answer = halt(url)
    assert answer.status_code == 200
    assert answer.json() == {"halted": "no reason given", "disarmed": [], "on_record": False}
    assert client.get("/api/v1/status").json()["halted"] == "no reason given"


def test_unfinished_requests_do_not_fill_the_door(door: str) -> None:
    host, _, port = door.removeprefix("http://").partition(":")
    head = (
        f"POST /api/v1/halt HTTP/1.1\r\nhost: x\r\nauthorization: {OPERATOR['authorization']}\r\n"
        "content-type: application/json\r\ncontent-length: 20\r\n\r\n{"
    )
    with ExitStack() as slow:
        for _ in range(ROOM + 8):
            stranger = slow.enter_context(socket.create_connection((host, int(port))))
            stranger.sendall(head.encode())
        assert halt(f"{door}/api/v1/halt").status_code == 200


def test_the_command_alone_halts(client: httpx.Client) -> None:
    done = ldfi("halt", "--url", str(client.base_url), LDFI_TOKEN=GIVEN["operator"])
    assert done.returncode == 0
    assert done.stdout == "Halted: no reason given. `ldfi resume` ends it.\n"


@contextmanager
def running_service(home: Path, descriptors: int) -> Iterator[tuple[str, str]]:
    """``ldfi serve`` in a process that may have so many descriptors; gives both its doors."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    variables = {name: value for name, value in os.environ.items() if "LDFI" not in name}
    variables |= {"LDFI_PORT": str(ports[0]), "LDFI_HALT_PORT": str(ports[1])}
    variables["LDFI_DATABASE_URL"] = f"sqlite:///{home / 'x.sqlite3'}"
    variables["LDFI_TOKENS"] = f"operator:{GIVEN['operator']}"
    command = [sys.executable, "-m", "ldfi.cli", "serve"]
    process = subprocess.Popen(command, cwd=home, env=variables, stderr=subprocess.DEVNULL)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))
    url, door = (f"http://127.0.0.1:{port}" for port in ports)
    try:
        until(lambda: _ready(url))
        yield url, door
    finally:
        process.terminate()
        process.wait(30)


def _ready(url: str) -> bool:
    with suppress(httpx.HTTPError), httpx.Client(trust_env=False) as client:
        return client.get(f"{url}/readyz").is_success
    return False
