"""redis-py: single commands and pipelines, sync and async.

The point is each attempt to send, beneath redis-py's own retries and OpenTelemetry's
instrumentation. ``error`` is redis.exceptions.ConnectionError; ``delay`` and ``timeout`` end with
redis.exceptions.TimeoutError after the socket's timeout; the other kinds are what redis-py raises
for a server that is gone, or that says what is the matter. A pipeline is one call, named by its
first command. Clusters have no points.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from redis import Redis, exceptions
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.client import Pipeline

from ldfi.fit import error, inject, patching
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.kinds import NAMED, FaultKind
from ldfi.fit.protocol.points import address, database_point


def patch() -> None:
    """Make commands and pipelines injection points."""
    patching.put(Redis, "_send_command_parse_response", _sync)
    patching.put(AsyncRedis, "_send_command_parse_response", _async)
    for method in ("_execute_pipeline", "_execute_transaction"):
        patching.put(Pipeline, method, _sync)
        patching.put(AsyncPipeline, method, _async)


def _sync(original: Any) -> Any:
    # The arguments (client, connection, what, …) pass as they came: to take them apart and put
    # them together again costs half as much as everything else does without a context.
    def attempt(*call: Any, **options: Any) -> Any:
        if armed():
            inject.through(_SITE, None, *call[:3])
        return original(*call, **options)

    return attempt


def _async(original: Any) -> Any:
    async def hit(fault: Any, *call: Any, **options: Any) -> Any:
        await fault
        return await original(*call, **options)

    def attempt(*call: Any, **options: Any) -> Any:
        if armed():
            fault = inject.through_async(_SITE, None, *call[:3])
            if fault is not None:
                return hit(fault, *call, **options)
        return original(*call, **options)

    return attempt


def _name(service: str, client: Any, _connection: Any, what: Any) -> str:
    """Name the point of a call. ``what`` is a command's name, or a pipeline's list of commands."""
    command = what if isinstance(what, str) else _first_command(what)
    given = client.connection_pool.connection_kwargs
    if "path" in given:
        return database_point(service, command, address(given["path"], None))
    peer = address(given.get("host", "localhost"), given.get("port", 6379))
    return database_point(service, command, peer)


def _first_command(what: Any) -> str:
    command = what if isinstance(what, bytes) else what[0][0][0]
    return command.decode() if isinstance(command, bytes) else str(command)


def _effect(injection: Injection, client: Any, connection: Any, what: Any) -> Effect | None:
    if injection.kind == "error":
        return Effect(
            failure=exceptions.ConnectionError(f"Error 111 connecting to server: {error.TEXT}")
        )
    late = functools.partial(_late, client, connection)
    if injection.kind == "delay":
        return delay(injection.delay_ms, connection.socket_timeout, late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, connection.socket_timeout, late)
    failure = _failure(injection.kind, client, connection, single=isinstance(what, str))
    return None if failure is None else Effect(failure=failure)


def _late(client: Any, connection: Any) -> Any:
    under_asyncio = isinstance(client, AsyncRedis)
    peer = _address(connection) if under_asyncio else "socket"
    cause = TimeoutError() if under_asyncio else TimeoutError("timed out")
    return error.marked(exceptions.TimeoutError(f"Timeout reading from {peer}"), cause)


def _failure(kind: FaultKind, client: Any, connection: Any, *, single: bool) -> Any:
    """Make what redis-py raises; None for what it does not.

    In a pipeline a server that is read-only refuses command by command, and tells which.
    """
    if kind in error.CONNECTING:
        return _unconnected(kind, client, connection)
    if kind == "reset":
        torn = error.reset()
        said = f"Error while reading from {_address(connection)} : {torn.args}"
        return error.marked(exceptions.ConnectionError(said), torn)
    if kind == "redis:readonly" and not single:
        return None
    made = _SAID.get(kind)
    return None if made is None else error.marked(made[0](made[1]))


def _unconnected(kind: FaultKind, client: Any, connection: Any) -> Any:
    if kind in NAMED and not _host(connection):
        return None
    cause = error.connecting(kind)
    if isinstance(client, AsyncRedis):
        cause = error.connecting_at(kind, (_host(connection), _port(connection)))
    said = f"Error {cause.errno} connecting to {_address(connection)}. {cause.strerror}."
    return error.marked(exceptions.ConnectionError(said), cause)


def _address(connection: Any) -> str:
    return f"{_host(connection)}:{_port(connection)}" if _host(connection) else connection.path


def _host(connection: Any) -> str:
    return getattr(connection, "host", "")


def _port(connection: Any) -> int:
    return getattr(connection, "port", 0)


_SAID: Final = {
    "redis:loading": (exceptions.BusyLoadingError, "Redis is loading the dataset in memory"),
    "redis:readonly": (exceptions.ReadOnlyError, "You can't write against a read only replica."),
    "redis:lost": (exceptions.ConnectionError, "Connection closed by server."),
}
_SITE = Site(_name, _effect)
