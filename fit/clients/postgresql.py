"""What PostgreSQL says in a bad state, said by PostgreSQL itself.

In place of the caller's statement the server executes one that raises the error. So the exception
is the driver's own with all that it knows of the error, and the transaction is aborted, as it is
when that really happens. Of a connection that is ``lost`` the near end is then closed, too.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ldfi.fit import error
from ldfi.fit.protocol.kinds import FaultKind
from ldfi.fit.protocol.points import database_point, template_statement, template_words

_STATES: Final = {
    "sql:deadlock": ("40P01", "deadlock detected"),
    "sql:serialization": ("40001", "could not serialize access due to concurrent update"),
    "sql:lost": ("57P01", "terminating connection due to administrator command"),
    "sql:readonly": ("25006", "cannot execute {verb} in a read-only transaction"),
}
"""Kind → SQLSTATE and message."""

_CLOSABLE: Final = frozenset({"psycopg", "psycopg2"})
"""Drivers whose connections a cursor knows and closes."""

ABOVE: Final = "_fit_above"
"""On a connection whose statements have their point above the driver."""


class Raising(NamedTuple):
    """A statement that raises an error in the server; whether the connection ends with it."""

    statement: str
    lost: bool

    def on(self, cursor: Any) -> None:
        """Raise what the driver makes of the error."""
        try:
            cursor.execute(self.statement)
        finally:
            if self.lost:
                with suppress(Exception):
                    cursor.connection.close()


class Severed(NamedTuple):
    """The connection is torn down; libpq notices as the statement is sent."""

    descriptor: int

    def on(self) -> None:
        """Shut the connection down, for both ends."""
        with suppress(OSError), socket.socket(fileno=os.dup(self.descriptor)) as shared:
            shared.shutdown(socket.SHUT_RDWR)


def raising(kind: FaultKind, dialect: Any, verb: str) -> Raising | None:
    """Make the statement for a kind; None where dialect and driver cannot have it."""
    if dialect.name != "postgresql":
        return None
    said = said_by_server(kind, verb)
    if said is not None and said.lost and (dialect.is_async or dialect.driver not in _CLOSABLE):
        return None
    return said


def said_by_server(kind: FaultKind, verb: str) -> Raising | None:
    """Make the statement for a kind; None for one that is no state of the server."""
    if kind not in _STATES:
        return None
    state, message = _STATES[kind]
    said = message.format(verb=verb)
    return Raising(
        f"DO $fit$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = '{said}', "
        f"HINT = '{error.TEXT}'; END $fit$",
        kind == "sql:lost",
    )


def verb_of(statement: str) -> str:
    """Return what a statement begins with, as the server's own messages have it."""
    return template_statement(statement).partition(" ")[0]


def statement_point(service: str, statement: str, database: str, system: str = "postgresql") -> str:
    """Name the point of a statement sent past SQLAlchemy; where the database's name has nothing in
    it, by the ``system``."""
    named = template_words(database)
    return database_point(service, statement, named if named.strip("*") else system)
