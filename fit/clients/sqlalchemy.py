"""SQLAlchemy 2: every statement an engine executes, and every connection it hands out.

SQLAlchemy's own events put the point between the cursor and OpenTelemetry's span, also under
asyncio. ``error`` is the database driver's OperationalError, which SQLAlchemy wraps in its own, as
for a lost server. A driver's timeouts are not to be seen from here: ``delay`` lasts its length and
then lets the statement through; a cancelled task stops waiting.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import event, exc
from sqlalchemy.engine import Engine
from sqlalchemy.util import await_only

from ldfi.fit import error, passage, patching
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import Point, database_point, template_words
from ldfi.fit.strike import Strike


def patch() -> None:
    """Make every engine's statements and connections injection points."""
    for name, listener in _LISTENERS.items():
        if not event.contains(Engine, name, listener):
            event.listen(Engine, name, listener)
            patching.when_taken_out(_removal(name, listener))
    patching.put(Engine, "connect", _connect)


def _removal(name: str, listener: Any) -> Any:
    return lambda: event.remove(Engine, name, listener)


def _execute(_cursor: Any, statement: str, _parameters: Any, context: Any) -> None:
    if armed():
        _pass(_STATEMENT, getattr(context, "_otel_span", None), context, statement)


def _execute_alone(_cursor: Any, statement: str, context: Any) -> None:
    if armed():
        _pass(_STATEMENT, getattr(context, "_otel_span", None), context, statement)


_LISTENERS: dict[str, Any] = {
    "do_execute": _execute,
    "do_executemany": _execute,
    "do_execute_no_params": _execute_alone,
}


def _connect(original: Any) -> Any:
    def connect(engine: Any) -> Any:
        if armed():
            _pass(_CONNECTION, None, engine)
        return original(engine)

    return connect


def _pass(site: Site, span: Any, *arguments: Any) -> None:
    """Pass a point. Under asyncio SQLAlchemy runs in a greenlet, from which one can await."""
    if arguments[0].dialect.is_async:
        fault = passage.through_async(site, span, *arguments)
        if fault is not None:
            await_only(fault)
    else:
        passage.through(site, span, *arguments)


def _name_statement(service: str, context: Any, statement: str) -> str:
    return database_point(service, statement, _peer(context.root_connection.engine))


def _name_connection(service: str, engine: Any) -> str:
    return str(Point(service, "db", "connect", _peer(engine)))


def _peer(engine: Any) -> str:
    """Name the database or, where it has no name, the kind of database."""
    named = template_words(engine.url.database or "")
    return named if named.strip("*") else str(engine.dialect.name)


def _strike_statement(injection: Injection, context: Any, _statement: str) -> Strike:
    if injection.kind == "error":
        return Strike(failure=_operational_error(context.dialect))
    return delay(injection.delay_ms)


def _strike_connection(injection: Injection, engine: Any) -> Strike:
    if injection.kind == "error":
        dialect = engine.dialect
        failure = exc.DBAPIError.instance(
            None, None, _operational_error(dialect), dialect.loaded_dbapi.Error, dialect=dialect
        )
        return Strike(failure=failure)
    return delay(injection.delay_ms)


def _operational_error(dialect: Any) -> Any:
    return dialect.loaded_dbapi.OperationalError(f"could not reach the server: {error.TEXT}")


_STATEMENT = Site(_name_statement, _strike_statement)
_CONNECTION = Site(_name_connection, _strike_connection)
