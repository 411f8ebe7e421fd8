"""What is dropped from rows, and whole rows that go, leave an SQLite file that is smaller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select, text

from ldfi.experiments.store.database import Database
from ldfi.experiments.store.rewrite_rows import put_anew
from ldfi.experiments.store.schema import AuditRow, MaintenanceRow, SnapshotRow

ROWS = 2_000
LONG = "because " * 200
"""A page of SQLite holds two such rows."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ldfi.sqlite3"


def filled(file: Path) -> Database:
    database = Database(f"sqlite:///{file}")
    with database.change(1.0) as change:
        for number in range(ROWS):
            change.audit("said", f"{number}", LONG)
    return database


def pages(database: Database) -> int:
    with database.read() as session:
        return int(session.scalar(text("PRAGMA page_count")) or 0)


def test_rows_that_are_put_anew_leave_no_page_almost_empty(file: Path) -> None:
    database = filled(file)
    before = pages(database)
    with database.read() as session:
        ids = session.scalars(select(AuditRow.id).order_by(AuditRow.id)).all()
    for start in range(0, len(ids), 100):  # a few at a time, as a prune does
        with database.change(2.0) as change:
            small = {each: {"why": ""} for each in ids[start : start + 100]}
            put_anew(change.session, AuditRow.id, small)
    database.shrink()
    assert pages(database) < before / 5
    with database.read() as session:
        kept = session.scalars(select(AuditRow).order_by(AuditRow.id)).all()
        assert [(each.id, each.subject, each.why) for each in kept] == [
            (identity, f"{number}", "") for number, identity in enumerate(ids)
        ]
    database.close()


def test_what_else_a_row_holds_stays_as_it_is(database: Database) -> None:
    windows = []
    for each in range(3):
        said = {
            "reason": "it's \x7f é 漢 \U0001f4a5",
            "down": ["a", {"1": [None, True, 0.1]}, f"{each}"],
        }
        times = {"opened_at": 1e9 / 3 + each, "until": 2.0**53 + each}
        windows.append(MaintenanceRow(id=f"w{each}", owner="ann", **said, **times))
    table = MaintenanceRow.__table__
    with database.change(1.0) as change:
        change.session.add_all(windows)
        change.session.flush()
        before = change.session.execute(select(table).order_by(MaintenanceRow.id)).mappings().all()
    new: list[dict[str, Any]] = [{"down": [], "closed_at": 5.0}, {"down": ["1"], "closed_at": None}]
    with database.change(2.0) as change:
        put_anew(change.session, MaintenanceRow.id, {"w0": new[0], "w2": new[1], "w7": new[0]})
    with database.read() as session:
        after = session.execute(select(table).order_by(MaintenanceRow.id)).mappings().all()
    assert [*map(dict, after)] == [{**before[0], **new[0]}, {**before[1]}, {**before[2], **new[1]}]


def test_what_is_compressed_stays_so(file: Path) -> None:
    database = Database(f"sqlite:///{file}")
    columns = text("SELECT typeof(experience), experience, document FROM balance")
    with database.change(1.0) as change:
        stored = {"tried": {"a": 1}}
        of = {"campaign_id": "c", "request_class": "GET /", "version": 1, "run": 1, "until": 0.0}
        change.session.add(SnapshotRow(experience=stored, document=stored, **of))
        change.session.flush()
        before = change.session.execute(columns).one()
    with database.change(2.0) as change:
        put_anew(change.session, SnapshotRow.campaign_id, {"c": {"document": {"b": 2}}})
    with database.read() as session:
        assert session.execute(columns).one()[:2] == before[:2]
        assert session.scalars(select(SnapshotRow)).one().document == {"b": 2}
    database.close()


def test_a_row_that_is_not_there_is_not_put_anew(file: Path) -> None:
    database = Database(f"sqlite:///{file}")
    with database.change(1.0) as change:
        put_anew(change.session, AuditRow.id, {7: {"why": ""}})
    with database.read() as session:
        assert session.get(AuditRow, 7) is None
    database.close()


def test_what_is_free_goes_back_to_the_disk(file: Path) -> None:
    database = filled(file)
    with database.change(2.0) as change:
        change.session.execute(text("DELETE FROM audit"))
    before = pages(database)
    database.shrink()
    assert pages(database) < before / 5
    database.close()
    assert file.stat().st_size < before * 4096 / 5


def test_a_file_from_before_gives_nothing_back_and_is_left_as_it_is(file: Path) -> None:
    other = create_engine(f"sqlite:///{file}")
    with other.begin() as connection:  # a table is there before we say how to keep what is free
        connection.execute(text("CREATE TABLE theirs (id INTEGER)"))
    other.dispose()
    database = filled(file)
    with database.change(2.0) as change:
        change.session.execute(text("DELETE FROM audit"))
    before = pages(database)
    database.shrink()
    assert pages(database) == before
    database.close()
