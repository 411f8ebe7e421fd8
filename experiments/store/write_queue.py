"""Who asks first writes first: SQLite has one writer at a time, and no queue for the others.

SQLite's own waiting (its busy timeout) tries again after 1, 2, 5, … and at last every 100 ms: who
writes again and again keeps the others out for as long as they wait, and soonest on a slow disk.
Within a process writers queue here; the lock of another process is asked for every other
millisecond, which is no queue, but gives everybody a fair chance each time it is free.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from sqlalchemy.exc import OperationalError

_BEGIN = "BEGIN IMMEDIATE"
_LOCKED = "database is locked"
"""SQLite's own words."""

_BETWEEN = (0.0005, 0.0025)
"""Seconds between two tries for a file that another process writes to: random, so that two who
write in the same rhythm do not miss each other for ever."""


class WriteQueue:
    """The writers of this process to one file, in the order in which they asked."""

    def __init__(self) -> None:
        self._order: deque[threading.Event] = deque()
        self._changing = threading.Lock()

    @contextmanager
    def mine(self, patience: float) -> Iterator[None]:
        """Wait for one's turn, ``patience`` seconds at most, and have it until the end of the
        block. Raises SQLAlchemy's OperationalError when it did not come."""
        turn = threading.Event()
        with self._changing:
            self._order.append(turn)
            self._order[0].set()
        try:
            if not turn.wait(patience):
                raise OperationalError(_BEGIN, None, sqlite3.OperationalError(_LOCKED))
            yield
        finally:
            with self._changing:
                self._order.remove(turn)
                if self._order:
                    self._order[0].set()


_OF_FILES: WeakValueDictionary[Path, WriteQueue] = WeakValueDictionary()
_FINDING = threading.Lock()


def of_file(path: Path) -> WriteQueue:
    """Return the turns of a file, whoever in this process has opened it."""
    with _FINDING:
        return _OF_FILES.setdefault(path, WriteQueue())


def begin_writing(connection: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that writes, within ``patience`` seconds, whatever other processes do.
    Raises SQLAlchemy's OperationalError where they never let go."""
    until = time.monotonic() + patience
    usual = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while not _begun(connection, until):
            time.sleep(random.uniform(*_BETWEEN))
    except sqlite3.Error as error:
        raise OperationalError(_BEGIN, None, error) from error
    finally:
        connection.execute(f"PRAGMA busy_timeout={usual}")


def _begun(connection: sqlite3.Connection, until: float) -> bool:
    try:
        connection.execute(_BEGIN)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
            raise
        return False
    return True
