"""kombu, and with it Celery: every message that is published, and every attempt at it.

The point lies beneath kombu's own retries and within the span of OpenTelemetry's instrumentation of
Celery. ``error`` is a broker at which nothing listens: what the transport says of that, for this
message and for each connection that kombu opens meanwhile. So the retry policy runs as it really
does, and ends in a ``kombu.exceptions.OperationalError``. A ``delay`` lasts its length: what time
the transport gives its sockets is not to be seen from here.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any, Final

from kombu.connection import Connection
from kombu.messaging import Producer

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.delay import delay
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import message_point
from ldfi.fit.protocol.urls import split_url

_HEADERS: Final = 4
_ROUTING_KEY: Final = 6
"""Where they stand among the arguments of ``Producer._publish``."""

_sending: Final[ContextVar[str | None]] = ContextVar("fit-kombu-sending", default=None)
"""Where the message goes for which kombu opens a connection: its broker is asked by that."""


def patch() -> None:
    """Make every attempt to publish a message an injection point."""
    patching.put(Producer, "publish", _whole)
    patching.put(Producer, "_publish", _attempt)
    patching.put(Connection, "_establish_connection", _establish)


def _whole(original: Any) -> Any:
    def publish(producer: Any, *call: Any, **options: Any) -> Any:
        if not armed():
            return original(producer, *call, **options)
        token = _sending.set(None)
        try:
            return original(producer, *call, **options)
        finally:
            _sending.reset(token)

    return publish


def _attempt(original: Any) -> Any:
    def publish(producer: Any, *call: Any, **options: Any) -> Any:
        if armed():
            connection, routing_key = producer.connection, str(call[_ROUTING_KEY])
            if not connection.connected:
                _sending.set(routing_key)
            else:
                try:
                    inject.through(_SITE, None, connection, routing_key)
                except Exception:
                    _sending.set(routing_key)
                    raise
            call = hosts.guarded(_addressed, connection, call) or call
        return original(producer, *call, **options)

    return publish


def _establish(original: Any) -> Any:
    def establish(connection: Any, *rest: Any, **named: Any) -> Any:
        routing_key = _sending.get()
        if routing_key is not None and armed():
            inject.through(_SITE, None, connection, routing_key)
            _sending.set(None)  # that was this attempt; the message is sent by it
        return original(connection, *rest, **named)

    return establish


def _addressed(connection: Any, call: tuple[Any, ...]) -> tuple[Any, ...] | None:
    onward = hosts.addressed((call[_HEADERS] or {}).items(), *_brokers(connection))
    return None if onward is None else (*call[:_HEADERS], dict(onward), *call[_HEADERS + 1 :])


def _brokers(connection: Any) -> list[str]:
    named = connection.alt or [connection.hostname or "localhost"]
    return [split_url(each).host if "://" in each else each for each in named]


def _name(service: str, _connection: Any, routing_key: str) -> str:
    """Name the point. OpenTelemetry's spans do not say through which broker a message went."""
    return message_point(service, "send", "", routing_key)


def _effect(injection: Injection, connection: Any, _routing_key: str) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=_nobody(connection))
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    return None


def _nobody(connection: Any) -> Any:
    refused = error.connecting("refused")
    if connection.transport.driver_type != "redis":
        return refused
    port = connection.port or connection.transport.default_port
    return refused_by_redis(f"{connection.hostname}:{port}", refused)


def refused_by_redis(where: str, refused: OSError) -> BaseException:
    """Make what redis-py says where nothing listens at ``where``."""
    redis = sys.modules["redis"]
    said = f"Error {refused.errno} connecting to {where}. {refused.strerror}."
    failure: BaseException = redis.exceptions.ConnectionError(said)
    return error.marked(failure, refused)


_SITE: Final = Site(_name, _effect)
