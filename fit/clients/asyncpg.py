"""asyncpg used directly: every statement that a connection executes, also one of a pool.

``error``, ``reset`` and ``sql:lost`` are asyncpg's ConnectionDoesNotExistError: it does not pass on
what the server says as it closes the connection. Other kinds of ``sql:`` are said by the server.
Where the call's ``timeout`` or the connection's ``command_timeout`` is over, a ``delay`` or
``timeout`` ends with it: the server sleeps in the statement's place until asyncpg gives up, and so
cancels it and aborts the transaction as ever. Prepared statements and cursors have no points.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

from asyncpg.connection import Connection
from asyncpg.exceptions import AdminShutdownError, ConnectionDoesNotExistError

from ldfi.fit import error, inject, patching
from ldfi.fit.clients.postgresql import Raising, said_by_server, statement_point, verb_of
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.kinds import FaultKind

_GONE: Final = ("reset", "sql:lost")
_METHODS: Final = ("execute", "executemany", "fetch", "fetchval", "fetchrow")


def patch() -> None:
    """Make every executed statement an injection point."""
    plain = patching.beneath(Connection, "execute")
    for method in _METHODS:
        patching.put(Connection, method, lambda original: _async(original, plain))


def _async(original: Any, plain: Any) -> Any:
    async def hit(fault: Any, connection: Any, *call: Any, **named: Any) -> Any:
        said = await fault
        if isinstance(said, Raising):
            await plain(connection, said.statement)
        if isinstance(said, _Sleeping):
            await plain(connection, f"SELECT pg_sleep({said.patience} + 60)", timeout=said.patience)
        if isinstance(said, _Torn):
            connection.terminate()
            raise said.failure
        return await original(connection, *call, **named)

    def execute(connection: Any, query: Any, *rest: Any, **named: Any) -> Any:
        if armed():
            patience = named.get("timeout")
            fault = inject.through_async(_SITE, None, connection, query, patience)
            if fault is not None:
                return hit(fault, connection, query, *rest, **named)
        return original(connection, query, *rest, **named)

    return execute


class _Sleeping(NamedTuple):
    """The server sleeps for longer than its caller has ``patience`` (seconds)."""

    patience: float


class _Torn:
    """The connection is gone with the statement."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure


def _name(service: str, connection: Any, query: str, _patience: Any) -> str:
    return statement_point(service, query, connection._params.database or "")


def _effect(injection: Injection, connection: Any, query: str, patience: Any) -> Effect | None:
    if injection.kind == "error":
        said = f"could not reach the server: {error.TEXT}"
        return Effect(failure=ConnectionDoesNotExistError(said))
    waits = connection._config.command_timeout if patience is None else patience
    late = functools.partial(_Sleeping, waits)
    if injection.kind == "delay":
        return _by_server(delay(injection.delay_ms, waits, late))
    if injection.kind == "timeout":
        return _by_server(timeout(injection.delay_ms, waits, late))
    if injection.kind in _GONE:
        return Effect(failure=_Torn(_gone(injection.kind)))
    server_says = said_by_server(injection.kind, verb_of(query))
    return None if server_says is None else Effect(failure=server_says)


def _gone(kind: FaultKind) -> Any:
    said = "connection was closed in the middle of operation"
    if kind == "reset":
        return error.marked(ConnectionDoesNotExistError(said), error.reset())
    words = "terminating connection due to administrator command"
    return error.marked(ConnectionDoesNotExistError(f"{said}: {words}"), AdminShutdownError(words))


def _by_server(late: Effect | None) -> Effect | None:
    return late if late is None or late.failure is None else Effect(failure=late.failure)


_SITE: Final = Site(_name, _effect)
