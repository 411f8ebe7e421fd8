"""PyMySQL: every statement that a cursor executes, and every procedure it calls.

The point lies on the cursor's own methods, beneath those that OpenTelemetry's instrumentation makes
of them; each statement that ``executemany`` sends passes it. ``error``, ``reset`` and ``sql:lost``
are the OperationalError 2013 of a lost connection, which is closed then, as PyMySQL does it.
``delay`` and ``timeout`` end with it as well, when the connection's ``read_timeout`` is over.
``sql:deadlock`` and ``sql:readonly`` are said by the server; there is no ``sql:serialization``.
Connecting is no point; SQLAlchemy has both over this driver, and does what is told here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pymysql import err
from pymysql.constants import CR
from pymysql.cursors import Cursor

from ldfi.fit import error, inject, patching
from ldfi.fit.clients.postgresql import ABOVE, statement_point
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.kinds import FaultKind

_LOST: Final = "Lost connection to MySQL server during query"
_STATES: Final = {
    "sql:deadlock": (
        "ROLLBACK",  # as InnoDB does to the one that it has chosen
        "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = "
        "'Deadlock found when trying to get lock; try restarting transaction'",
    ),
    "sql:readonly": (
        "SIGNAL SQLSTATE '25006' SET MYSQL_ERRNO = 1792, MESSAGE_TEXT = "
        "'Cannot execute statement in a READ ONLY transaction'",
    ),
}
"""Kind → what is executed in the statement's place."""


def patch() -> None:
    """Make every executed statement an injection point."""
    for method in ("execute", "callproc"):
        patching.put(Cursor, method, _sync)


def _sync(original: Any) -> Any:
    def execute(cursor: Any, query: Any, *rest: Any, **named: Any) -> Any:
        if armed() and not getattr(cursor.connection, ABOVE, False):
            said = inject.through(_SITE, None, cursor, query)
            if said is not None:
                said.on(cursor)
        return original(cursor, query, *rest, **named)

    return execute


class _Lost(NamedTuple):
    """The connection is gone with the statement."""

    why: str = ""
    cause: BaseException | None = None

    def on(self, cursor: Any) -> None:
        """Close it as PyMySQL does, and raise what it raises."""
        cursor.connection._force_close()
        said = f"{_LOST} ({self.why})" if self.why else _LOST
        raise error.marked(err.OperationalError(CR.CR_SERVER_LOST, said), self.cause)


class _Said(NamedTuple):
    """The server says it."""

    statements: tuple[str, ...]

    def on(self, cursor: Any) -> None:
        """Execute these in place of the caller's, past the point."""
        try:
            for statement in self.statements:
                cursor._query(statement)
        except err.MySQLError as failure:
            error.marked(failure, failure.__cause__)
            raise


def unconnected(kind: FaultKind, host: str) -> Exception:
    """Make what PyMySQL raises where no connection can be made."""
    cause = error.connecting(kind)
    said = f"Can't connect to MySQL server on {host!r} ({cause})"
    failure: Exception = err.OperationalError(CR.CR_CONN_HOST_ERROR, said)
    failure.original_exception = cause  # type: ignore[attr-defined] # as PyMySQL does
    return error.marked(failure, cause)


def effect(injection: Injection, cursor: Any, _query: object = None) -> Effect | None:
    """Return what a fault does to a statement of this cursor; its failure is to be raised by
    ``on(cursor)``."""
    patience = cursor.connection._read_timeout
    if injection.kind == "error":
        return Effect(failure=_Lost(error.TEXT))
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, _late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, _late)
    if injection.kind == "reset":
        torn = error.reset()
        return Effect(failure=_Lost(str(torn), torn))
    if injection.kind == "sql:lost":
        return Effect(failure=_Lost())
    said = _STATES.get(injection.kind)
    return None if said is None else Effect(failure=_Said(said))


def _late() -> _Lost:
    return _Lost("timed out", TimeoutError("timed out"))


def _name(service: str, cursor: Any, query: Any) -> str:
    chosen = cursor.connection.db or ""
    database = chosen.decode(errors="ignore") if isinstance(chosen, bytes) else chosen
    return statement_point(service, _text(query), database, "mysql")


def _text(query: Any) -> str:
    return query if isinstance(query, str) else bytes(query).decode("utf-8", "replace")


_SITE: Final = Site(_name, effect)
