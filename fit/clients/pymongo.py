"""PyMongo, sync and asyncio: every command that is sent on a connection of an application's pool.

The point is each attempt to send, beneath PyMongo's own retries: those of reads and writes pass it
again. Handshakes, authentication and monitors are no points, nor are the further answers of an
exhaust cursor, for which nothing is sent. OpenTelemetry's instrumentation makes none of its spans
the current one, so the call's is looked up by the id of its message.

``error``, ``reset``, ``delay`` and ``timeout`` (by the socket's timeout, or what is left of
``timeoutMS``) fail as a broken connection does, which is closed: AutoReconnect, NetworkTimeout.
``refused`` and ``unresolved`` are the ServerSelectionTimeoutError of a deployment that is gone,
after the time that selecting a server takes then; not where that is longer than faults hang by
default, as it is unless ``serverSelectionTimeoutMS`` is set.

A failure tells PyMongo that the server is gone, for all of its requests, and it clears its pool.
An injected one tells it nothing.
"""

from __future__ import annotations

import copy
import struct
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

import pymongo
from bson.raw_bson import RawBSONDocument
from opentelemetry.trace import Span
from pymongo.asynchronous import pool as asynchronous_pool
from pymongo.asynchronous import topology as asynchronous_topology
from pymongo.compression_support import decompress
from pymongo.errors import AutoReconnect, ServerSelectionTimeoutError
from pymongo.helpers_shared import _get_timeout_details
from pymongo.pool_shared import _raise_connection_failure
from pymongo.server_description import ServerDescription
from pymongo.synchronous import pool, topology
from pymongo.topology_description import updated_topology_description

from ldfi.fit import error, inject, patching
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import DEFAULT_DELAY_MS, Injection
from ldfi.fit.protocol.kinds import NAMED, FaultKind
from ldfi.fit.protocol.points import (
    Point,
    as_path,
    is_name,
    template_statement,
    template_words,
)

_HEADER: Final = struct.Struct("<iiii")
"""Of a message: its length, its id, the id that it answers, its opcode."""
_WRAPPED: Final = struct.Struct("<iiB")
"""Of a compressed one: opcode and length of what is within, and by what it is compressed."""
_COMPRESSED: Final = 2012
_FLAGS: Final = struct.Struct("<I")
_UNANSWERED: Final = 2
"""The flag of a message that asks for no answer, as of a write with ``w=0``."""
_BODY: Final = 0
"""The type of the section that holds the command itself."""


def patch() -> None:
    """Make every command an injection point. Raises ImportError before PyMongo 4.18, which sends
    most of its commands past the point."""
    if find_spec("pymongo.synchronous.command_runner") is None:
        raise ImportError(f"PyMongo is {pymongo.version}, and has points from 4.18 on")
    for connection in (pool.Connection, asynchronous_pool.AsyncConnection):
        patching.beneath(connection, "_raise_connection_failure")  # by which they are to fail
    patching.put(topology.Topology, "handle_error", _unmoved)
    patching.put(asynchronous_topology.Topology, "handle_error", _unmoved_async)
    patching.put(pool.Connection, "send_message", _sync)
    patching.put(asynchronous_pool.AsyncConnection, "send_message", _async)


def _sync(original: Any) -> Any:
    def send_message(connection: Any, message: Any, *rest: Any, **named: Any) -> Any:
        if _serves(connection) and armed(_SITE, connection, message):
            broken = inject.through(_SITE, None, connection, message)
            if broken is not None:
                with error.marking():
                    connection._raise_connection_failure(broken)
        return original(connection, message, *rest, **named)

    return send_message


def _async(original: Any) -> Any:
    async def hit(fault: Any, connection: Any, *call: Any, **named: Any) -> Any:
        broken = await fault
        if broken is not None:
            with error.marking():
                await connection._raise_connection_failure(broken)
        return await original(connection, *call, **named)

    def send_message(connection: Any, message: Any, *rest: Any, **named: Any) -> Any:
        if _serves(connection) and armed(_SITE, connection, message):
            fault = inject.through_async(_SITE, None, connection, message)
            if fault is not None:
                return hit(fault, connection, message, *rest, **named)
        return original(connection, message, *rest, **named)

    return send_message


def _serves(connection: Any) -> bool:
    """Return whether an application's commands are sent on a connection: it is past handshake and
    authentication, and no monitor's, whose pool alone never pauses."""
    options = getattr(connection, "opts", None)
    return getattr(connection, "ready", False) and getattr(options, "pause_enabled", False)


def _unmoved(original: Any) -> Any:
    def handle_error(topology: Any, address: Any, context: Any) -> Any:
        if not error.was_injected(context.error):
            original(topology, address, context)

    return handle_error


def _unmoved_async(original: Any) -> Any:
    async def handle_error(topology: Any, address: Any, context: Any) -> Any:
        if not error.was_injected(context.error):
            await original(topology, address, context)

    return handle_error


def _span(connection: Any, message: Any) -> Span | None:
    """Find the span that OpenTelemetry's listener has begun for a command."""
    listeners = getattr(connection.listeners, "_EventListeners__command_listeners", ())
    number = _HEADER.unpack_from(message)[1]
    for listener in listeners:
        begun = getattr(listener, "_span_dict", {})
        span: Span | None = begun.get((number, connection.address)) or begun.get(number)
        if span is not None:
            return span
    return None


def _name(service: str, _connection: Any, message: Any) -> str:
    command = _command(_unwrapped(message))
    verb = next(iter(command))
    collection = command[verb]
    return _named(service, verb, command["$db"], collection if isinstance(collection, str) else "")


@lru_cache(maxsize=8192)
def _named(service: str, verb: str, database: str, collection: str) -> str:
    named = template_words(database)
    peer = named if named.strip("*") else "mongodb"
    table = as_path(template_words(collection))
    return str(Point(service, "db", template_statement(verb), peer, table))


def _unwrapped(message: Any) -> bytes:
    """Return flags and sections of a message."""
    inside = bytes(message[_HEADER.size :])
    if _HEADER.unpack_from(message)[3] != _COMPRESSED:
        return inside
    _, size, compressor = _WRAPPED.unpack_from(inside)
    return bytes(decompress(inside[_WRAPPED.size :], compressor, size))


def _command(inside: bytes) -> RawBSONDocument:
    """Read the command, which PyMongo always writes first. Raises ValueError where it is not."""
    if inside[_FLAGS.size] != _BODY:
        raise ValueError("a message that does not begin with its command")
    begin = _FLAGS.size + 1
    length = int.from_bytes(inside[begin : begin + 4], "little")
    return RawBSONDocument(inside[begin : begin + length])


def _effect(injection: Injection, connection: Any, message: Any) -> Effect | None:
    kind = injection.kind
    if kind == "error":
        return Effect(failure=OSError(error.TEXT), returned=True)
    answered = not _FLAGS.unpack_from(_unwrapped(message))[0] & _UNANSWERED
    patience = connection.last_timeout if answered else None
    if kind == "delay":
        return delay(injection.delay_ms, patience, _late)._replace(returned=True)
    if kind in error.CONNECTING:
        return _unselected(kind, connection)
    if kind == "timeout":
        late = timeout(injection.delay_ms, patience, _late)
        return None if late is None else late._replace(returned=True)
    if kind == "reset" and answered:
        return Effect(failure=error.reset(), returned=True)
    return None


def _late() -> TimeoutError:
    return TimeoutError("timed out")


def _unselected(kind: FaultKind, connection: Any) -> Effect | None:
    """Find no server, as when none answers any more."""
    host, port = connection.address
    if kind in NAMED and (port is None or not is_name(host)):
        return None
    deployment = _deployment(connection)
    if deployment is None:
        return None
    patience = deployment.get_server_selection_timeout()
    return timeout(DEFAULT_DELAY_MS, patience, lambda: _unselectable(kind, deployment, patience))


def _deployment(connection: Any) -> Any:
    """Find the topology that a connection belongs to; None if its client has gone."""
    for kind in (pymongo.MongoClient, pymongo.AsyncMongoClient):
        for client in list(kind._clients.values()):
            server = client._topology.get_server_by_address(connection.address)
            if server is not None and server.pool.gen is connection.pool_gen:
                return client._topology
    return None


def _unselectable(kind: FaultKind, deployment: Any, patience: float) -> Exception:
    """Make what PyMongo raises when its monitors have found every server of it gone."""
    gone = copy.copy(deployment)  # what it is told stays in the copy
    for address in gone._description.server_descriptions():
        described = ServerDescription(address, error=_unconnected(kind, deployment, address))
        gone._description = updated_topology_description(gone._description, described)
    said = f"{gone._error_message(None)}, Timeout: {patience}s"
    return error.marked(
        ServerSelectionTimeoutError(f"{said}, Topology Description: {gone._description!r}")
    )


def _unconnected(kind: FaultKind, deployment: Any, address: Any) -> Exception:
    """Make what a server's monitor learns when it cannot connect."""
    monitors = deployment.get_server_by_address(address)._monitor._pool
    if isinstance(monitors, asynchronous_pool.Pool):
        cause = error.connecting_at(kind, address)
    else:
        cause = error.connecting(kind)
    try:
        details = _get_timeout_details(monitors.opts)
        _raise_connection_failure(address, cause, timeout_details=details)
    except AutoReconnect as failure:
        return failure


_SITE: Final = Site(_name, _effect, _span)
