"""A database as it is found: looked at, never made, changed or brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from ldfi.errors import Invalid
from ldfi.experiments.store import revisions
from ldfi.experiments.store.database_errors import explained

_WRITES_NOTHING: Final = {"postgresql_readonly": True}


def must_be_there(url: str) -> None:
    """Raise Invalid where a SQLite file is meant that is not there: to open one would make it."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and not _file(url).is_file():
        raise Invalid(f"there is no database at {parsed.database or 'this address'}")


@contextmanager
def as_it_is(url: str, schema: str | None = None) -> Iterator[Session]:
    """Open a session for looking things up, which cannot write; ``schema``: where the tables are,
    on PostgreSQL. Raises Invalid where no database is there, or one with tables of another
    version; and what :func:`explained` does."""
    must_be_there(url)
    engine = _read_only(url, schema)
    try:
        with explained(url), engine.connect().execution_options(**_WRITES_NOTHING) as connection:
            _check(connection)
            with Session(connection) as session:
                yield session
    finally:
        engine.dispose()


def _read_only(url: str, schema: str | None) -> Engine:
    if make_url(url).get_backend_name() != "sqlite":
        searched = {} if schema is None else {"options": f"-c search_path={schema}"}
        return create_engine(url, connect_args=searched)

    def opened() -> sqlite3.Connection:
        uri = f"{_file(url).absolute().as_uri()}?mode=rw"  # and not ro: it would leave its log
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        connection.execute("PRAGMA query_only=ON")
        return connection

    return create_engine("sqlite://", creator=opened)


def _file(url: str) -> Path:
    return Path(make_url(url).database or "")


def _check(connection: Connection) -> None:
    """Hold the revision of its tables against ours. Raises Invalid."""
    ours, found = revisions.newest(), revisions.of(connection)
    if found is None:
        raise Invalid("that is not a database of ldfi: it has no revision")
    revisions.check_known(found)
    if found != ours:
        raise Invalid(
            f"its tables are of revision {found}, not {ours}: a service of this version, or a prune"
            " without --dry-run, brings older ones up to date"
        )
