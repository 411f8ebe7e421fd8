"""Who waits to write gets to write, whatever others do."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from ldfi.experiments.store.database import Database
from ldfi.experiments.store.write_queue import WriteQueue, begin_writing, of_file

HELD = 0.05
"""Seconds for which each transaction keeps the file: a slow disk."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    Database(url).close()
    return url


def write(db: Database, what: str) -> None:
    with db.change(1.0, what) as change:
        change.session.connection()  # the lock is taken here
        time.sleep(HELD)


def test_the_writers_of_a_process_write_in_the_order_in_which_they_asked(url: str) -> None:
    # Given five who write again and again, as fast as they can
    over = threading.Event()
    served: list[int] = []

    def hammer(number: int) -> None:
        db = Database(url)
        while not over.is_set():
            write(db, str(number))
            served.append(number)
        db.close()

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    # When a sixth wants to write
    db, between = Database(url), []
    try:
        for _ in range(5):
            before = len(served)
            write(db, "sixth")
            between.append(len(served) - before)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        db.close()
    # Then those alone come first who asked before (one may have written and not yet said so)
    assert max(between) <= 6


def test_a_process_that_writes_again_and_again_keeps_no_other_out(url: str, tmp_path: Path) -> None:
    # Given somebody with a connection of its own, who has no part in our queue, as a process
    over, begun = threading.Event(), threading.Event()

    def hammer() -> None:
        other = sqlite3.connect(tmp_path / "ldfi.sqlite3", isolation_level=None)
        while not over.is_set():
            begin_writing(other, 60.0)
            begun.set()
            time.sleep(HELD)
            other.execute("COMMIT")
        other.close()

    thread, db = threading.Thread(target=hammer), Database(url)
    thread.start()
    try:
        assert begun.wait(60)
        for _ in range(10):
            write(db, "us")  # would raise after a minute
        assert thread.is_alive()
    finally:
        over.set()
        thread.join()
        db.close()


def test_a_turn_that_does_not_come_is_said_as_sqlite_says_it() -> None:
    turns = WriteQueue()
    with turns.mine(1.0), pytest.raises(OperationalError, match="locked"), turns.mine(0.01):
        pass
    with turns.mine(0.0):  # whoever gave up holds up nobody
        pass


def test_the_lock_of_a_process_that_never_lets_go_is_waited_for_and_named(tmp_path: Path) -> None:
    holder, other = (sqlite3.connect(tmp_path / "x", isolation_level=None) for _ in range(2))
    other.execute("PRAGMA busy_timeout=1234")
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="locked"):
        begin_writing(other, 0.05)
    assert other.execute("PRAGMA busy_timeout").fetchone() == (1234,)
    holder.execute("ROLLBACK")
    begin_writing(other, 0.05)
    assert other.in_transaction
    other.close()
    holder.close()


def test_a_file_has_one_queue_whoever_opens_it(tmp_path: Path) -> None:
    one = of_file(tmp_path / "a")
    assert of_file(tmp_path / "a") is one
    assert of_file(tmp_path / "b") is not one
