"""Epochs and locks: what keeps a leader that was replaced from doing harm."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from ldfi.cli.serve_processes import check_role
from ldfi.errors import Conflict, Deposed, InvalidConfig
from ldfi.experiments.cluster.advisory_lock import AdvisoryLock
from ldfi.experiments.cluster.config import Config
from ldfi.experiments.cluster.election import FileLock, election_of
from ldfi.experiments.store import halts, leaders
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow
from tests.kit.service import client_of, service


def enter(db: Database, url: str = "") -> int:
    with db.change(time.time()) as change:
        return leaders.enter(change.session, url)


def audited(db: Database) -> int:

    with db.read() as session:
        return session.scalar(select(func.count()).select_from(AuditRow)) or 0


def test_only_the_last_leader_writes(database: Database) -> None:
    first = database.fenced(enter(database, "http://first"))
    with first.change(1.0) as change:
        change.audit("one")
    second = database.fenced(enter(database, "http://second"))

    with pytest.raises(Deposed), first.change(2.0) as change:
        change.audit("never")
    with second.change(3.0) as change:
        change.audit("two")
    with database.change(4.0, "kim") as change:  # people are asked by nobody who leads
        halts.set_halted(change, "all the same")

    assert audited(database) == 3
    with database.read() as session:
        assert leaders.current(session) == leaders.Office(2, "http://second")


@given(doings=st.lists(st.sampled_from(["enter", "write", "leave"]), max_size=30), data=st.data())
def test_whatever_they_do_no_write_follows_that_of_a_later_leader(
    in_memory: Database, doings: list[str], data: st.DataObject
) -> None:
    db = in_memory  # whoever led in the example before is just one more who has gone
    epochs: list[int] = []
    written: list[int] = []
    for doing in doings:
        if doing == "enter" or not epochs:
            epochs.append(enter(db, "somewhere"))
            continue
        epoch = data.draw(st.sampled_from(epochs), label="who")
        try:
            with db.fenced(epoch).change(0.0) as change:
                if doing == "leave":
                    leaders.leave(change.session, epoch)
                written.append(epoch)
        except Deposed:
            assert epoch != epochs[-1]
    assert epochs == sorted(set(epochs))
    assert written == sorted(written)


@pytest.mark.servers
def test_a_new_leader_waits_for_what_the_old_one_is_doing(postgresql_url: str) -> None:
    db = Database(postgresql_url)
    old = db.fenced(enter(db))
    entered: list[int] = []
    successor = threading.Thread(target=lambda: entered.append(enter(db)))
    with old.change(1.0) as change:
        change.audit("in the old leader's time")
        change.session.flush()
        successor.start()
        successor.join(0.5)
        assert not entered
    successor.join(10)
    assert entered == [2]
    assert audited(db) == 1
    db.close()


@pytest.mark.servers
def test_one_holds_the_lock_until_its_connection_ends(postgresql_url: str) -> None:
    async def vie() -> None:
        first, second = election_of(postgresql_url), election_of(postgresql_url)
        assert isinstance(first, AdvisoryLock)
        assert not await first.holds()
        assert await first.win()
        assert not await second.win()
        assert await first.holds()
        assert not await second.holds()
        assert first._connection is not None
        await first._connection.close()  # as a crash does
        async with asyncio.timeout(10):  # PostgreSQL has to see it first
            while not await second.win():
                await asyncio.sleep(0.01)
        assert not await first.holds()
        await second.give_up()
        assert await first.win()
        await first.give_up()

    asyncio.run(vie())


def test_nobody_leads_without_a_database() -> None:
    lock = AdvisoryLock("postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert not asyncio.run(lock.win())


def test_a_second_process_on_one_file_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    app = service(url)

    async def start_another() -> None:
        second = service(url)
        with pytest.raises(Conflict, match=r"another process holds .*ldfi\.sqlite3\.lock"):
            async with second.router.lifespan_context(second):
                pass

    with client_of(app) as client:
        asyncio.run(start_another())
        assert client.get("/readyz").json() == {"status": "ready"}
    lock = election_of(url)
    assert isinstance(lock, FileLock)
    assert asyncio.run(lock.win())  # it was let go of
    asyncio.run(lock.give_up())


def test_a_link_to_a_database_is_locked_as_the_database_itself(tmp_path: Path) -> None:
    file, link = tmp_path / "ldfi.sqlite3", tmp_path / "link.sqlite3"
    file.touch()
    link.symlink_to(file)
    one, other = election_of(f"sqlite:///{file}"), election_of(f"sqlite:///{link}")
    assert asyncio.run(one.win())
    assert not asyncio.run(other.win())
    asyncio.run(one.give_up())
    assert asyncio.run(other.win())
    asyncio.run(other.give_up())


SHARED = {"database_url": "postgresql+psycopg://h/d"}


@pytest.mark.parametrize(
    ("role", "given", "lacking"),
    [
        ("api", {}, "LDFI_DATABASE_URL"),
        ("scheduler", SHARED, "LDFI_TOKENS"),
        ("api", {**SHARED, "tokens": "admin:0123456789abcdef"}, "LDFI_MEMBER_KEY"),
        ("ingest", {}, "LDFI_KAFKA"),
    ],
)
def test_a_role_without_what_it_shares_does_not_start(
    role: str, given: dict[str, str], lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfig, match=lacking):
        check_role(role, Config.load(**given))  # type: ignore[arg-type]
