"""Events out: everything that happens to experiments and findings, in order, crash or not."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ldfi.errors import Deposed, StreamError
from ldfi.experiments.store import audit, leaders
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.events import Events
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Topics
from tests.experiments.members import until
from tests.experiments.streams.test_service import Site

TOPICS = Topics("test")


def happen(db: Database, what: str, subject: str, at: float) -> None:
    with db.change(at, "kim") as change:
        change.audit(what, subject, "because")


def told(stream: MemoryStream) -> list[dict[str, Any]]:
    messages = stream.messages(TOPICS.events)
    documents = [json.loads(message.value) for message in messages]
    keys = [message.key for message in messages]
    assert keys == [document["subject"].encode() for document in documents]
    return documents


def as_readers_do(documents: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Whoever reads leaves out ids that are not above the last one."""
    seen, last = [], 0
    for each in documents:
        if each["id"] > last:
            last = each["id"]
            seen.append((each["what"], each["subject"]))
    return seen


def test_experiments_and_findings_are_told_and_nothing_else(database: Database) -> None:
    stream = MemoryStream()
    wanted = [("experiment armed", "e1"), ("finding open", "f1"), ("experiment harmful", "e1")]
    for at, (what, subject) in enumerate([("halt", ""), *wanted, ("token created", "t1")]):
        happen(database, what, subject, float(at))

    events = Events(stream, TOPICS, 2, database)
    assert events.tell(100.0) == 5
    assert events.tell(100.0) == 0

    assert [(each["what"], each["subject"]) for each in told(stream)] == wanted
    said = {"what": "experiment armed", "subject": "e1", "who": "kim", "why": "because"}
    assert told(stream)[0] == {"id": 2, "at": 1.0, **said}


def test_brokers_away_crashes_and_new_leaders_neither_lose_nor_reorder(database: Database) -> None:
    chance, stream = random.Random(1), MemoryStream()
    happened: list[tuple[str, str]] = []
    with database.change(0.0) as change:
        epoch = leaders.enter(change.session, "")
    events, now = Events(stream, TOPICS, 2, database.fenced(epoch)), 0.0
    for number in range(150):
        now += 20.0
        happened.append((f"experiment {number}", f"e{number % 3}"))
        happen(database, *happened[-1], now)
        if chance.random() < 0.2:  # an id is taken by what is then undone
            with pytest.raises(ZeroDivisionError), database.change(now) as change:
                change.audit("experiment never", "e")
                change.session.flush()
                raise ZeroDivisionError
        match chance.choice(["tell", "later", "away", "replaced"]):
            case "tell":
                events.tell(now)
            case "away":  # with a gap before it, it has nothing to tell that could fail
                stream.down = True
                with suppress(StreamError):
                    assert events.tell(now) == 0
                stream.down = False
            case "replaced":  # the old one does not know yet, and tells once more
                with database.change(now) as change:
                    epoch = leaders.enter(change.session, "")
                with suppress(Deposed):
                    assert events.tell(now) == 0
                events = Events(stream, TOPICS, 2, database.fenced(epoch))
    while events.tell(now + audit.GAP_SECONDS + 1):
        pass

    assert as_readers_do(told(stream)) == happened
    assert len(told(stream)) > len(happened)  # or nothing was tried here


def test_the_service_tells(tmp_path: Path) -> None:
    stream = MemoryStream()
    site = Site(stream, TOPICS, f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")
    stream.ensure(TOPICS.partitions(2))
    with site.life() as (app, _):
        for at, subject in enumerate("abc"):
            happen(app.state.database, "finding open", subject, float(at))
        until(lambda: len(told(stream)) == 3)
    assert [each["subject"] for each in told(stream)] == ["a", "b", "c"]
