"""psycopg 3 used directly, sync and asyncio: every statement that a cursor executes.

The point lies on the cursor's own methods, beneath those that OpenTelemetry's instrumentation makes
of them. ``error`` is an OperationalError. ``sql:…`` is said by the server; for a ``reset`` the
connection is shut down beneath libpq, which tells of it itself. psycopg has no timeout of its own
for a statement: a ``delay`` lasts its length. Cursors on the server's side and pipelines have no
points, nor have connections that SQLAlchemy made: there the point lies in SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import psycopg

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


def patch() -> None:
    """Make every executed statement an injection point."""
    for cursor, wrap in ((psycopg.Cursor, _sync), (psycopg.AsyncCursor, _async)):
        plain = patching.beneath(cursor, "execute")
        patching.put(cursor, "execute", wrap(plain))
        patching.put(cursor, "executemany", wrap(plain))


def _sync(plain: Any) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        def execute(cursor: Any, query: Any, *rest: Any, **named: Any) -> Any:
            if armed() and not getattr(cursor.connection, ABOVE, False):
                said = inject.through(_SITE, None, cursor, query)
                if isinstance(said, Severed):
                    said.on()
                elif said is not None:
                    _raise(plain, cursor, said)
            return original(cursor, query, *rest, **named)

        return execute

    return wrap


def _raise(plain: Any, cursor: Any, said: Raising) -> None:
    try:
        plain(cursor, said.statement)
    finally:
        if said.lost:
            cursor.connection.close()


def _async(plain: Any) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        async def hit(fault: Any, cursor: Any, *call: Any, **named: Any) -> Any:
            said = await fault
            if isinstance(said, Severed):
                said.on()
            elif said is not None:
                await _raise_async(plain, cursor, said)
            return await original(cursor, *call, **named)

        def execute(cursor: Any, query: Any, *rest: Any, **named: Any) -> Any:
            if armed() and not getattr(cursor.connection, ABOVE, False):
                fault = inject.through_async(_SITE, None, cursor, query)
                if fault is not None:
                    return hit(fault, cursor, query, *rest, **named)
            return original(cursor, query, *rest, **named)

        return execute

    return wrap


async def _raise_async(plain: Any, cursor: Any, said: Raising) -> None:
    try:
        await plain(cursor, said.statement)
    finally:
        if said.lost:
            await cursor.connection.close()


def _name(service: str, cursor: Any, query: Any) -> str:
    return statement_point(service, _text(query, cursor), cursor.connection.info.dbname)


def _text(query: Any, cursor: Any) -> str:
    if isinstance(query, str):
        return query
    return query.decode("utf-8", "replace") if isinstance(query, bytes) else query.as_string(cursor)


def _effect(injection: Injection, cursor: Any, query: Any) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=psycopg.OperationalError(f"could not reach the server: {error.TEXT}"))
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    if cursor.connection._pipeline is not None:
        return None
    if injection.kind == "reset":
        return Effect(failure=Severed(cursor.connection.fileno()))
    said = said_by_server(injection.kind, verb_of(_text(query, cursor)))
    return None if said is None else Effect(failure=said)


_SITE: Final = Site(_name, _effect)
