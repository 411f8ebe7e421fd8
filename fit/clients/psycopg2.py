"""psycopg2 used directly: every statement that a cursor executes, and every procedure it calls.

psycopg2's connections and cursors are made in C. So a connection is given a class of ours, and each
of its cursors one too: between the C class and whatever the application or OpenTelemetry's
instrumentation has derived from that (a DictCursor, say). ``error`` is an OperationalError.
``sql:…`` is said by the server; for a ``reset`` the connection is shut down beneath libpq, which
tells of it itself. psycopg2 has no timeout of its own for a statement: a ``delay`` lasts its
length. ``COPY``, large objects and asynchronous connections have no points, nor have connections
that SQLAlchemy made: there the point lies in SQLAlchemy.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import psycopg2
from psycopg2 import extensions

from ldfi.fit import error, inject, patching
from ldfi.fit.clients.postgresql import (
    ABOVE,
    Raising,
    Severed,
    said_by_server,
    statement_point,
    verb_of,
)
from ldfi.fit.delay import delay
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection

_CLOSE: Final = "SELECT pg_terminate_backend(pg_backend_pid())"


def patch() -> None:
    """Make every executed statement an injection point."""
    patching.put(psycopg2, "_connect", _connect)


def _connect(original: Any) -> Any:
    def connect(dsn: Any, connection_factory: Any = None, **options: Any) -> Any:
        with suppress(Exception):  # whatever goes wrong, the host gets its connection
            connection_factory = _derived(connection_factory or extensions.connection, _Connection)
        return original(dsn, connection_factory=connection_factory, **options)

    return connect


def _sync(original: Any) -> Any:
    def execute(cursor: Any, query: Any, *rest: Any, **named: Any) -> Any:
        here = cursor.connection
        if armed() and not here.async_ and not getattr(here, ABOVE, False):
            said = inject.through(_SITE, None, cursor, query)
            if isinstance(said, Severed):
                said.on()
            elif said is not None:
                _raise(cursor, said)
        return original(cursor, query, *rest, **named)

    return execute


class _Cursor(extensions.cursor):
    execute = _sync(extensions.cursor.execute)
    executemany = _sync(extensions.cursor.executemany)
    callproc = _sync(extensions.cursor.callproc)


class _Connection(extensions.connection):
    def cursor(self, name: Any = None, cursor_factory: Any = None, *rest: Any, **named: Any) -> Any:
        factory = cursor_factory or self.cursor_factory or extensions.cursor
        with suppress(Exception):
            factory = _derived(factory, _Cursor)
        return super().cursor(name, factory, *rest, **named)


@lru_cache(maxsize=64)
def _derived(factory: Any, ours: type) -> Any:
    """Put ``ours`` right above psycopg2's own class in what makes a connection or a cursor; what
    is no class stays as it is."""
    plain = ours.__mro__[1]
    if factory is plain:
        return ours
    if not isinstance(factory, type) or not issubclass(factory, plain) or issubclass(factory, ours):
        return factory
    return type(factory.__name__, (factory, ours), {"__module__": factory.__module__})


def _raise(cursor: Any, said: Raising) -> None:
    """Have the server say it. A cursor with a name declares one there, which no ``DO`` can be; and
    of a connection that is closed psycopg2 does not pass on why: it is closed for real."""
    speaking = extensions.cursor(cursor.connection) if cursor.name else cursor
    try:
        extensions.cursor.execute(speaking, _CLOSE if said.lost else said.statement)
    except psycopg2.Error as failure:
        error.marked(failure, failure.__cause__)
        raise


def _name(service: str, cursor: Any, query: Any) -> str:
    return statement_point(service, _text(query, cursor), cursor.connection.info.dbname)


def _text(query: Any, cursor: Any) -> str:
    if isinstance(query, bytes):
        return query.decode("utf-8", "replace")
    return query if isinstance(query, str) else str(query.as_string(cursor))


def _effect(injection: Injection, cursor: Any, query: Any) -> Effect | None:
    if injection.kind == "error":
        said = f"could not reach the server: {error.TEXT}"
        return Effect(failure=psycopg2.OperationalError(said))
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    if injection.kind == "reset":
        return Effect(failure=Severed(cursor.connection.fileno()))
    server_says = said_by_server(injection.kind, verb_of(_text(query, cursor)))
    return None if server_says is None else Effect(failure=server_says)


_SITE: Final = Site(_name, _effect)
