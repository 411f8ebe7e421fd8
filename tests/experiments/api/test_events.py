"""Server-sent events over a real socket: nothing missed, nothing held up, nothing left open."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from ldfi.experiments.api import events
from ldfi.experiments.api.audit_view import AuditView
from ldfi.experiments.store import Database, audit
from ldfi.testing.live_service import live_service
from tests.experiments.api.test_as_read import BOUNDS
from tests.experiments.members import Member, until
from tests.kit.service import GIVEN, bearer, problem

PATH = "/api/v1/events"


@dataclass(frozen=True)
class Event:
    kind: str
    id: str
    data: str


@contextmanager
def listening(client: httpx.Client, last: str | None = None) -> Iterator[Iterator[Event]]:
    """The events of a stream, as they come."""
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", PATH, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer)


def _events(answer: httpx.Response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Event(fields["event"], fields.get("id", ""), fields.get("data", ""))
            fields = {}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(events, "PROGRESS_SECONDS", 0.1)


def halt(client: httpx.Client, reason: str) -> None:
    client.post("/api/v1/halt", json={"reason": reason}).raise_for_status()


def why(event: Event) -> str:
    assert event.kind == "audit"
    row = AuditView.model_validate_json(event.data)
    assert str(row.id) == event.id
    return row.why


def test_what_happens_arrives_and_after_a_break_nothing_is_missed(client: httpx.Client) -> None:
    halt(client, "before")
    with listening(client) as stream:
        first = next(stream)
        assert first.kind == "open"
        halt(client, "one")
        halt(client, "two")
        seen = [next(stream), next(stream)]
        assert [why(event) for event in seen] == ["one", "two"]
    halt(client, "meanwhile")
    with listening(client, seen[0].id) as stream:
        assert next(stream).id == seen[0].id
        assert [why(next(stream)) for _ in range(2)] == ["two", "meanwhile"]
    # also when the line was lost before anything had come
    with listening(client, first.id) as stream:
        next(stream)
        assert [why(next(stream)) for _ in range(3)] == ["one", "two", "meanwhile"]


@pytest.mark.parametrize("last", ["", "x", "-1", "1.5", "9" * 19, str(2**63), "1" * 40])
def test_what_is_no_id_of_an_event_is_refused(standing: httpx.Client, last: str) -> None:
    assert problem(standing.get(PATH, headers={"Last-Event-ID": last})) == "invalid"


def test_an_id_from_the_future_waits_for_it(standing: httpx.Client) -> None:
    with listening(standing, str(2**63 - 1)) as stream:
        assert next(stream).id == str(2**63 - 1)


def test_late_transactions_are_told_in_order(client: httpx.Client, database: Database) -> None:
    with listening(client) as stream:
        next(stream)
        with database.change(time.time()) as slow:
            slow.audit("halt", why="slow")
            slow.session.flush()
            if database.engine.dialect.name == "postgresql":  # SQLite has one writer at a time
                with database.change(time.time()) as quick:
                    quick.audit("halt", why="quick")
                time.sleep(0.3)
        if database.engine.dialect.name == "sqlite":
            with database.change(time.time()) as quick:
                quick.audit("halt", why="quick")
        assert [why(next(stream)) for _ in range(2)] == ["slow", "quick"]


def a_row(number: int, at: float) -> AuditView:
    return AuditView(id=number, at=at, who="", what="", subject="", why="")


def test_a_gap_that_is_never_filled_holds_nothing_up_for_long() -> None:
    now = 1000.0
    rows = [a_row(1, now), a_row(3, now - audit.GAP_SECONDS), a_row(4, now), a_row(6, now)]

    assert [row.id for row in audit.whole(rows, 0, now)] == [1, 3, 4]
    assert [row.id for row in audit.whole(rows[3:], 4, now + audit.GAP_SECONDS)] == [6]


def test_while_something_is_armed_its_progress_is_told(database_url: str) -> None:
    operator = bearer(GIVEN["operator"])
    with (
        live_service(database=database_url, tokens=GIVEN) as world,
        httpx.Client(base_url=world.url, headers=operator, trust_env=False, timeout=20) as client,
        listening(client) as stream,
    ):
        client.post("/api/v1/campaigns", json={"kinds": ["error"], **BOUNDS}).raise_for_status()
        progress = next(event for event in stream if event.kind == "progress")
        client.post("/api/v1/halt", json={"reason": "enough"})

    (experiment,) = json.loads(progress.data)
    assert progress.id == ""
    assert experiment["state"] in {"armed", "observing", "settling"}
    assert experiment["hypothesis"]
    assert experiment["counts"]


def test_there_are_only_so_many_streams_and_who_goes_away_frees_one(
    app: FastAPI, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 2)
    with listening(client) as one, listening(client) as two:
        next(one), next(two)
        assert problem(client.get(PATH)) == "too-many-streams"
    until(lambda: not app.state.streams)
    with listening(client) as again:
        next(again)


def test_a_stream_ends_by_itself_so_that_tokens_are_looked_at_again(
    app: FastAPI, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAM_SECONDS", 0.2)
    with listening(client) as stream:
        assert [event.kind for event in stream] == ["open"]
    until(lambda: not app.state.streams)


@pytest.mark.long
def test_the_service_ends_at_once_although_somebody_listens(tmp_path: Path) -> None:
    options = {"LDFI_DATABASE_URL": f"sqlite:///{tmp_path / 'x.sqlite3'}"}
    service = Member("all", tmp_path, options)
    service.start()
    until(lambda: service.state() == "ready")
    headers = bearer(GIVEN["operator"])
    with (
        httpx.Client(base_url=service.url, headers=headers, trust_env=False, timeout=20) as client,
        listening(client) as stream,
    ):
        next(stream)
        assert service.stop() in {0, -signal.SIGTERM}
        # Sooner than the three seconds after which uvicorn cuts whatever is still open
        assert "graceful shutdown exceeded" not in service.log
        with suppress(httpx.RemoteProtocolError):
            assert list(stream) == []
