"""redis-py: single commands and pipelines, sync and async.

The point is each attempt to send, beneath redis-py's own retries and OpenTelemetry's
instrumentation. ``error`` is redis.exceptions.ConnectionError; ``delay`` ends with
redis.exceptions.TimeoutError after the socket's timeout. A pipeline is one call, named by its
first command. Clusters have no points.
"""

from __future__ import annotations

from typing import Any

from redis import Redis, exceptions
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.client import Pipeline

from ldfi.fit import error, passage, patching
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import address, database_point
from ldfi.fit.strike import Strike


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
            passage.through(_SITE, None, *call[:3])
        return original(*call, **options)

    return attempt


def _async(original: Any) -> Any:
    async def hit(fault: Any, *call: Any, **options: Any) -> Any:
        await fault
        return await original(*call, **options)

    def attempt(*call: Any, **options: Any) -> Any:
        if armed():
            fault = passage.through_async(_SITE, None, *call[:3])
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


def _strike(injection: Injection, _client: Any, connection: Any, _what: Any) -> Strike:
    if injection.kind == "error":
        return Strike(
            failure=exceptions.ConnectionError(f"Error 111 connecting to server: {error.TEXT}")
        )
    return delay(
        injection.delay_ms,
        connection.socket_timeout,
        lambda: exceptions.TimeoutError("Timeout reading from socket"),
    )


_SITE = Site(_name, _strike)
