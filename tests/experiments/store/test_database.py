from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect, select
from sqlalchemy.exc import IntegrityError

from deploy.stack import postgresql
from ldfi.experiments.store import idempotency
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow, Base, FlagRow


def test_a_change_leaves_its_audit_row_or_nothing_at_all(database: Database) -> None:
    with database.change(1.0, "kim") as change:
        change.session.add(FlagRow(name="halted", value={"why": "release"}))
        change.audit("halt", "everything", "release")
    with pytest.raises(IntegrityError), database.change(2.0, "eve") as change:
        change.audit("halt")
        change.session.add(FlagRow(name="halted", value={}))
        change.session.flush()

    with database.read() as session:
        (row,) = session.scalars(select(AuditRow))
        assert (row.who, row.what, row.subject) == ("kim", "halt", "everything")
        assert (row.why, row.at) == ("release", 1.0)


def test_one_lock_at_a_time(database: Database) -> None:
    """Read, add one, write back, by four at once: no step may be lost."""
    with database.change(0.0) as change:
        change.session.add(FlagRow(name="halted", value={"n": 0}))

    def add(_: int) -> None:
        for _ in range(5):
            with database.change(1.0) as change:
                database.lock(change)
                row = change.session.get_one(FlagRow, "halted")
                row.value = {"n": row.value["n"] + 1}

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    with database.read() as session:
        assert session.get_one(FlagRow, "halted").value == {"n": 20}


def test_a_number_is_used_up_once_by_however_many_processes(database_url: str) -> None:
    stores = [Database(database_url) for _ in range(6)]

    def spend(store: Database) -> bool:
        with store.change(1_000.0) as change:
            return idempotency.spend(change, "number")

    with ThreadPoolExecutor(len(stores)) as threads:
        used = list(threads.map(spend, stores))
    assert sum(used) == 1
    with stores[0].change(1_000.0 + idempotency.KEPT - 1) as change:
        idempotency.forget(change)
        assert idempotency.is_spent(change.session, "number")
        assert not idempotency.is_spent(change.session, "another")
    for store in stores:
        store.close()


def test_whoever_connects_waits_for_nobody_who_writes(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite3'}")
    database.engine.dispose()  # so that the next to read connects
    with closing(sqlite3.connect(tmp_path / "x.sqlite3", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with database.read() as session:
            assert not session.scalars(select(AuditRow)).all()
    database.close()


@pytest.mark.servers
def test_several_processes_may_make_the_tables_at_once(
    postgresql_server: postgresql.Server,
) -> None:
    name = postgresql_server.create()
    url = postgresql_server.url(name)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: Database(url).close(), range(4)))
    with closing(Database(url)) as database:
        tables = set(inspect(database.engine).get_table_names())
    postgresql_server.drop(name)
    assert tables == set(Base.metadata.tables) | {"alembic_version"}


def test_nobody_else_may_read_a_new_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        opened = Database(f"sqlite:///{tmp_path / 'new.sqlite3'}")
        with opened.change(1.0) as change:
            change.audit("something")
            modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
        opened.close()
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}, modes
