"""A record that no database takes is dropped, with its reason, and holds nothing up."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler import engine as engine_module
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import audit, classes
from ldfi.experiments.store.database import Database, unless_unwritable
from ldfi.experiments.telemetry.instruments import RECORDS_DROPPED
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Trace
from ldfi.testing.spans import span


def dropped(what: str) -> float:
    value: float = RECORDS_DROPPED.labels(what)._value.get()
    return value


@pytest.mark.parametrize("name", ["GET /n\ud800x", "GET /n\0x"])
def test_a_class_that_cannot_be_written_is_dropped_alone(database: Database, name: str) -> None:
    # Given a name that a database refuses
    before = dropped("class")
    # When it is kept among others
    with database.change(1.0) as change:
        classes.save(change, "GET /good", 1, {"name": "GET /good"})
        classes.save(change, name, 1, {"name": name})
        classes.save(change, "GET /better", 1, {"name": "GET /better"})
    # Then the others are, and what was dropped is on record with its reason and counted
    with database.read() as session:
        kept = [each["name"] for each in classes.load(session)]
        entries = list(audit.after(session, 0, 10))
    if len(kept) == 2:  # SQLite takes a NUL
        assert kept == ["GET /better", "GET /good"]
        assert dropped("class") == before + 1
        [entry] = entries
        assert (entry.what, entry.subject) == ("class not on record", "GET /n\ufffdx")
        assert entry.why
    else:
        assert name in kept
        assert "\0" in name


def test_a_database_that_is_away_is_no_unwritable_record(database: Database) -> None:
    away = OperationalError("SELECT", {}, Exception("gone"))
    with (
        pytest.raises(OperationalError),
        database.change(1.0) as change,
        unless_unwritable(change, "class", "any"),
    ):
        raise away


@pytest.mark.parametrize(("path", "name"), [("/n\0x", "GET /n\ufffdx"), ("/n\ud800x", "GET /*")])
def test_hostile_paths_leave_the_service_alive(database: Database, path: str, name: str) -> None:
    # Given good requests for a path that no database takes as it is
    now = 1_000.0
    engine = Engine(database, now=now)
    for number in range(30):
        trace = f"{number:032x}"
        root = span("GET", kind="server", trace=trace, at=(1, 9), method="GET", target=path)
        engine.receive_spans([root, span("call", "GET", trace=trace)], now)
        engine.receive_outcomes([Outcome(trace, f"d{number}", "m", True)], now)
    # When the service goes on
    for _ in range(30):
        now += 0.5
        engine.tick(now)
    # Then it knows the class by a name that can be written, also after a restart
    assert list(engine.catalogue.classes) == [name]
    assert list(Engine(database, now=now).catalogue.classes) == [name]


def test_a_trace_that_nobody_can_learn_from_does_not_stop_a_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given one trace among others that makes learning fail
    database = Database(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")
    engine = Engine(database, now=1_000.0)

    def learned(trace: Trace) -> Lineage | None:
        if trace.trace_id == f"{3:032x}":
            raise RecursionError("too deep")
        return learn(trace)

    monkeypatch.setattr(engine_module, "learn", learned)
    for number in range(30):
        trace = f"{number:032x}"
        root = span("GET", kind="server", trace=trace, at=(1, 9), method="GET", target="/n")
        engine.receive_spans([root, span("call", "GET", trace=trace)], 1_000.0)
        engine.receive_outcomes([Outcome(trace, f"d{number}", "m", True)], 1_000.0)
    # When it is whole
    engine.tick(1_010.0)
    # Then the others are learned from, and it is counted
    assert engine.drops()["trace_unreadable"] == 1
    assert list(engine.catalogue.classes) == ["GET /n"]
    database.close()
