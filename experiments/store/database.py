"""The database: transactions, and the audit row that goes with every change.

SQLite (WAL) is the embedded default; PostgreSQL is for production. Both run the same code: what
differs is in this file.
"""

from __future__ import annotations

import copy
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from ldfi.checker.head import SigningKey
from ldfi.experiments.store import leaders, revisions, write_queue
from ldfi.experiments.store.compressed import parse
from ldfi.experiments.store.schema import AuditRow, FlagRow
from ldfi.experiments.telemetry.instruments import RECORDS_DROPPED
from ldfi.lineage.text import clean

_log = logging.getLogger("ldfi")

SERVICE = "ldfi"
"""Who the audit names for what the service does by itself."""

_REASON = 500
"""Characters of why a record was dropped that are kept."""

_PAGES = 2_000
"""So many pages of SQLite are given back at a time: nobody can write meanwhile."""

_PATIENCE = 5
"""Seconds to wait for a lock or an answer: the leases end soon after, so waiting longer is vain."""

_STOPPED = 60
"""Seconds until PostgreSQL cuts off whoever says nothing within a migration."""


@dataclass(frozen=True, slots=True)
class Change:
    """A transaction that changes something; ``session`` is its database session."""

    session: Session
    who: str
    now: float
    keys: tuple[SigningKey, ...] = ()
    """What the head of the chain of runs is signed with."""
    namespace: str = ""
    """Whose store it is; empty: the default one's."""

    def audit(self, what: str, subject: str = "", why: str = "") -> None:
        """Write down what is done here, in the same transaction."""
        what, subject, why = clean(what), clean(subject), clean(why)
        self.session.add(AuditRow(at=self.now, who=self.who, what=what, subject=subject, why=why))


@contextmanager
def unless_unwritable(change: Change, record: str, subject: str) -> Iterator[None]:
    """Write a record within a transaction, or drop it, where the database can never hold it.

    Then it is counted, and the log and the audit say why; the rest of the transaction goes on.
    """
    try:
        with change.session.begin_nested():
            yield
    except Exception as error:
        if not _unwritable(error):
            raise
        RECORDS_DROPPED.labels(record).inc()
        reason = clean(f"{type(error).__name__}: {error}")[:_REASON]
        _log.error("a %s cannot be put on record: %s: %s", record, clean(subject), reason)
        change.audit(f"{record} not on record", subject[:64], reason)


def _unwritable(error: Exception) -> bool:
    """Return what is wrong with a record from what is wrong with the database."""
    if isinstance(error, DBAPIError):
        return isinstance(error, DataError)
    return isinstance(error, StatementError | ValueError | TypeError)


def is_away(error: Exception) -> bool:
    """Return whether the database did not answer or ended the connection, so that the same may
    succeed later. PostgreSQL reports some ends as internal errors: whoever stood still for too long
    within a transaction meets one."""
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return lost or isinstance(error, OperationalError | PoolTimeout)


class Database:
    """``url`` is SQLAlchemy's: ``sqlite:///ldfi.sqlite3``, ``postgresql+psycopg://user@host/db``.

    Opening it brings its tables up to date (Alembic). ``keys``: what the head of the chain of runs
    is signed with. ``namespace``: whose it is; ``schema``: where its tables are on PostgreSQL, and
    no others are seen.
    """

    def __init__(
        self,
        url: str,
        keys: tuple[SigningKey, ...] = (),
        *,
        namespace: str = "",
        schema: str | None = None,
    ) -> None:
        parsed = make_url(url)
        self.keys = keys
        self.namespace = namespace
        self._schema = schema
        self._sqlite = parsed.get_backend_name() == "sqlite"
        self._turns = write_queue.WriteQueue()
        if self._sqlite and parsed.database not in {None, "", ":memory:"}:
            file = Path(str(parsed.database)).resolve()
            _make_ours(file)
            self._turns = write_queue.of_file(file)
        self._epoch: int | None = None
        self._connect(parsed)
        try:
            migrate(self.engine, self._turn)
        except BaseException:
            self.engine.dispose()  # nobody else can: there is no database to close
            raise

    def fenced(self, epoch: int) -> Database:
        """Return the same database for the leader of this epoch: :meth:`change` raises Deposed
        as soon as another leader has come, and what it changes is done before any can come."""
        fenced = copy.copy(self)
        fenced._epoch = epoch
        return fenced

    def reserved(self) -> Database:
        """Return the same database with one connection of its own, which is open already: it
        works while all others are in use, and while no descriptor is left for another one."""
        mine = copy.copy(self)
        mine._connect(self.engine.url, pool_size=1, max_overflow=0, pool_timeout=_PATIENCE)
        with mine.change(0.0) as change:  # SQLite opens its log when it first writes
            leaders.current(change.session)
        return mine

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def shrink(self) -> None:
        """Give what is free within an SQLite file back to the disk, a little at a time. A file of
        before version 0.2 gives nothing back until somebody has run ``VACUUM`` in it."""
        free = 1 if self._sqlite else 0
        while free:
            with self._turn(), closing(self.engine.raw_connection()) as connection:
                before = _free(connection)
                cast(sqlite3.Connection, connection.driver_connection).executescript(
                    f"PRAGMA incremental_vacuum({_PAGES})"
                )
                free = _free(connection)
            if free == before:
                break

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for looking things up. All that it sees is of one moment."""
        with Session(self._reading) as session:
            yield session

    @contextmanager
    def change(self, now: float, who: str = SERVICE) -> Iterator[Change]:
        """Open one transaction: all of it happens, or none. Raises Deposed, see :meth:`fenced`."""
        with self._turn(), Session(self._writing) as session, session.begin():
            if self._epoch is not None:
                leaders.check(session, self._epoch)
            yield Change(session, who, now, self.keys, self.namespace)

    def lock(self, change: Change) -> None:
        """Let no other transaction that locks go on before this one has ended.

        SQLite has one writer at a time anyway, and it is this one.
        """
        change.session.execute(
            select(FlagRow.name).where(FlagRow.name == "arming").with_for_update()
        )

    def _turn(self) -> AbstractContextManager[None]:
        """Wait for our turn to write, where the database keeps no queue itself."""
        return self._turns.mine(_PATIENCE) if self._sqlite else nullcontext()

    def _connect(self, url: URL, **pool: int) -> None:
        self.engine = create_engine(
            url,
            pool_pre_ping=not self._sqlite,
            json_deserializer=parse,
            connect_args={} if self._sqlite else _postgresql(self._schema),
            **{**_OF_NAMESPACES, **pool} if self._schema is not None else pool,
        )
        if self._sqlite:
            event.listen(self.engine, "connect", _tune_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._reading = self.engine
        if not self._sqlite:  # where a transaction sees one moment anyway
            self._reading = self.engine.execution_options(isolation_level="REPEATABLE READ")
        self._writing = self.engine.execution_options(writing=True)


def migrate(engine: Engine, turn: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Bring the tables up to date, in our ``turn``, however long that takes. Several processes may
    do this at once: they wait for the first. Where they are up to date nothing is locked. Raises
    Invalid for tables of a later version, and of one before the baseline."""
    from alembic import command

    newest = revisions.newest()
    with engine.connect() as connection:
        if revisions.of(connection) == newest:
            return
    with turn(), engine.execution_options(writing=True).begin() as connection:
        if connection.dialect.name == "postgresql":
            _take_time(connection)
        config = revisions.alembic()
        config.attributes["connection"] = connection
        before = revisions.of(connection)
        revisions.check_known(before)
        command.upgrade(config, "head")
    if before is None:
        _log.info("the database is new, made as of revision %s", newest)
    elif before != newest:
        _log.info("the database was brought from revision %s to %s", before, newest)


def _take_time(connection: Connection) -> None:
    """Wait until nobody else migrates, and then for what tables of years need; but whoever reads
    or writes one meanwhile is not held up for longer than others are, and whoever is stopped within
    a migration not for ever."""
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
    connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{_STOPPED}s'")
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7215031)")
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_PATIENCE}s'")


_OF_NAMESPACES = {"pool_size": 1, "max_overflow": 4}
"""There are many of them, and PostgreSQL has a hundred connections by default."""


def _postgresql(schema: str | None) -> dict[str, Any]:
    """Return how to connect; ``schema``: the only one whose tables are found, None: as by
    default."""
    settings = {
        name: str(_PATIENCE * 1000)
        # the last: whoever is cut off within a transaction must not hold up the next leader
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    }
    if schema is not None:
        settings["search_path"] = schema
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return {"connect_timeout": _PATIENCE, "options": options}


def _make_ours(file: Path) -> None:
    """Let nobody else read a file that is new: it holds digests of tokens, and who was exposed."""
    with suppress(OSError):  # SQLite says what is wrong, and in better words
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _tune_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, see below
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={_PATIENCE * 1000}")
    if not cursor.execute("PRAGMA page_count").fetchone()[0]:
        # counts only where there is no table yet, and asks for the lock of writers even elsewhere
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _free(connection: Any) -> int:
    """Count the pages that hold nothing."""
    return int(connection.cursor().execute("PRAGMA freelist_count").fetchone()[0])


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction; one that will write takes the lock at once: taking it later can only
    fail."""
    if connection.get_execution_options().get("writing"):
        write_queue.begin_writing(
            cast(sqlite3.Connection, connection.connection.driver_connection), _PATIENCE
        )
    else:
        connection.exec_driver_sql("BEGIN")
