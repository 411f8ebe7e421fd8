"""SQLAlchemy 2: every statement an engine executes, and every connection it hands out.

SQLAlchemy's own events put the point between the cursor and OpenTelemetry's span, also under
asyncio. ``error`` is the database driver's OperationalError, which SQLAlchemy wraps in its own, as
for a lost server. ``sql:…`` is said by the server itself where it is PostgreSQL, and a connection
is ``refused`` as psycopg tells of it. A driver's timeouts are not to be seen from here: ``delay``
lasts its length and then lets the statement through; a cancelled task stops waiting. Over PyMySQL
statements and connections fail as :mod:`ldfi.fit.clients.pymysql` has it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from sqlalchemy import event, exc
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool
from sqlalchemy.util import await_only

from ldfi.fit import error, inject, patching
from ldfi.fit.clients import postgresql
from ldfi.fit.delay import delay
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.kinds import NAMED, FaultKind
from ldfi.fit.protocol.points import (
    Point,
    database_point,
    is_name,
    template_statement,
    template_words,
)


def patch() -> None:
    """Make every engine's statements and connections injection points."""
    for name, listener in _LISTENERS.items():
        if not event.contains(Engine, name, listener):
            event.listen(Engine, name, listener)
            patching.when_taken_out(_removal(name, listener))
    patching.put(Engine, "connect", _connect)
    if not event.contains(Pool, "connect", _connected):
        event.listen(Pool, "connect", _connected)
        patching.when_taken_out(lambda: event.remove(Pool, "connect", _connected))


def _removal(name: str, listener: Any) -> Any:
    return lambda: event.remove(Engine, name, listener)


def _execute(cursor: Any, statement: str, _parameters: Any, context: Any) -> None:
    if armed():
        _execute_alone(cursor, statement, context)


def _execute_alone(cursor: Any, statement: str, context: Any) -> None:
    if armed():
        said = _pass(_STATEMENT, getattr(context, "_otel_span", None), context, statement)
        if said is not None:
            said.on(cursor)


_LISTENERS: dict[str, Any] = {
    "do_execute": _execute,
    "do_executemany": _execute,
    "do_execute_no_params": _execute_alone,
}


def _connected(_connection: Any, record: Any) -> None:
    """Tell the driver's own points that the point of this connection's statements is here."""
    with suppress(Exception):  # not every driver's connection can be marked
        setattr(record.driver_connection, postgresql.ABOVE, True)


def _connect(original: Any) -> Any:
    def connect(engine: Any) -> Any:
        if armed():
            _pass(_CONNECTION, None, engine)
        return original(engine)

    return connect


def _pass(site: Site, span: Any, *arguments: Any) -> Any:
    """Pass a point. Under asyncio SQLAlchemy runs in a greenlet, from which one can await."""
    if arguments[0].dialect.is_async:
        fault = inject.through_async(site, span, *arguments)
        return None if fault is None else await_only(fault)
    return inject.through(site, span, *arguments)


def _name_statement(service: str, context: Any, statement: str) -> str:
    return database_point(service, statement, _peer(context.root_connection.engine))


def _name_connection(service: str, engine: Any) -> str:
    return str(Point(service, "db", "connect", _peer(engine)))


def _peer(engine: Any) -> str:
    """Name the database or, where it has no name, the kind of database."""
    named = template_words(engine.url.database or "")
    return named if named.strip("*") else str(engine.dialect.name)


def _effect_on_statement(injection: Injection, context: Any, statement: str) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=_unreachable(context.dialect))
    if context.dialect.driver == "pymysql":
        return import_module(_PYMYSQL).effect(injection, context.cursor)  # type: ignore[no-any-return]
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    verb = template_statement(statement).partition(" ")[0]
    said = postgresql.raising(injection.kind, context.dialect, verb)
    return None if said is None else Effect(failure=said)


def _effect_on_connection(injection: Injection, engine: Any) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=_connection_error(engine.dialect, _unreachable(engine.dialect)))
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    host = engine.url.host
    if injection.kind not in error.CONNECTING or not host:
        return None
    if injection.kind in NAMED and not is_name(host):
        return None
    failure = _unconnected(injection.kind, engine)
    return failure and Effect(failure=_connection_error(engine.dialect, failure))


def _connection_error(dialect: Any, original: Any) -> Any:
    """Wrap the driver's error as SQLAlchemy does."""
    base = dialect.loaded_dbapi.Error
    failure: Any = exc.DBAPIError.instance(None, None, original, base, dialect=dialect)
    return error.marked(failure, original)


def _unconnected(kind: FaultKind, engine: Any) -> Any:
    """Make what the driver says where no connection can be made; None for one that is not known."""
    host, port = engine.url.host, engine.url.port or _PORT
    if engine.dialect.driver == "pymysql":
        return import_module(_PYMYSQL).unconnected(kind, host)
    if engine.dialect.driver != "psycopg":
        return None
    said = error.CONNECTING[kind]["psycopg"].format(host=host, port=port)
    return engine.dialect.loaded_dbapi.OperationalError(said)


def _unreachable(dialect: Any) -> Any:
    return dialect.loaded_dbapi.OperationalError(f"could not reach the server: {error.TEXT}")


_PORT = 5432
_PYMYSQL = "ldfi.fit.clients.pymysql"  # imported once it is there for sure
_STATEMENT = Site(_name_statement, _effect_on_statement)
_CONNECTION = Site(_name_connection, _effect_on_connection)
