"""confluent-kafka's producer and consumer.

Its classes are written in C and cannot be changed: what a program finds in the module ``Producer``
and ``Consumer`` are subclasses of them, OpenTelemetry's where that instruments, else ours.

``produce`` only takes a message: that it was not delivered is told to the caller's callback by a
later ``poll`` or ``flush``, as a message with the error ``_MSG_TIMED_OUT``. ``error`` has that told
at the next of these, ``timeout`` when the producer's ``message.timeout.ms`` are over, as when no
broker is left. A ``delay`` lasts its length. A consumer's ``poll`` then comes back with nothing
when its timeout is over; ``error`` is a message with the error ``_ALL_BROKERS_DOWN``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import confluent_kafka
from confluent_kafka import KafkaError, Message, cimpl

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.clients.kafka import addressed, consumer_point
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import message_point

_OTEL: Final = "opentelemetry.instrumentation.confluent_kafka"
_LONGEST: Final = 300_000
"""librdkafka's ``message.timeout.ms`` where nobody sets it."""


class _Report(NamedTuple):
    """What will be said of a message that is not delivered."""

    due: float
    message: Any
    callback: Callable[[Any, Any], Any] | None

    def tell(self) -> None:
        """Say it to whoever produced the message."""
        if self.callback is not None:
            self.callback(self.message.error(), self.message)


_reports: WeakKeyDictionary[Any, list[_Report]] = WeakKeyDictionary()


class PointedProducer(cimpl.Producer):
    """A producer whose messages are injection points."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """Take what a producer takes, and remember it."""
        super().__init__(*given, **named)
        self.config = given[0] if given else named

    def produce(self, topic: str, *rest: Any, **named: Any) -> Any:
        """Produce a message."""
        return super().produce(topic, *rest, **named)

    def poll(self, *given: Any, **named: Any) -> Any:
        """Return what became of messages."""
        return super().poll(*given, **named)

    def flush(self, *given: Any, **named: Any) -> Any:
        """Wait until nothing is left to tell."""
        return super().flush(*given, **named)


class PointedConsumer(cimpl.Consumer):
    """A consumer of which each asking for a message is an injection point."""

    def poll(self, *given: Any, **named: Any) -> Any:
        """Ask for a message."""
        return super().poll(*given, **named)


def patch() -> None:
    """Make every produced message an injection point, and every time that one is asked for."""
    _put(PointedProducer, PointedConsumer)
    for name, ours in (("Producer", PointedProducer), ("Consumer", PointedConsumer)):
        if getattr(confluent_kafka, name) is getattr(cimpl, name):
            setattr(confluent_kafka, name, ours)
            patching.when_taken_out(_restoring(name, ours))
    patching.when_imported(_OTEL, _patch_instrumented)


def _restoring(name: str, ours: Any) -> Callable[[], None]:
    def restore() -> None:
        if getattr(confluent_kafka, name) is ours:
            setattr(confluent_kafka, name, getattr(cimpl, name))

    return restore


def _patch_instrumented() -> None:
    theirs: Any = import_module(_OTEL)
    producer, consumer = theirs.AutoInstrumentedProducer, theirs.AutoInstrumentedConsumer
    if issubclass(producer, PointedProducer):
        return  # it found our classes, and the points lie in these
    for method in ("poll", "flush"):
        if method not in vars(producer):
            setattr(producer, method, _passed_on(method))
    _put(producer, consumer)


def _passed_on(method: str) -> Any:
    def call(producer: Any, *given: Any, **named: Any) -> Any:
        return getattr(cimpl.Producer, method)(producer, *given, **named)

    return call


def _put(producer: Any, consumer: Any) -> None:
    patching.put(producer, "produce", _sync)
    patching.put(producer, "poll", _telling)
    patching.put(producer, "flush", _waiting)
    patching.put(consumer, "poll", _sync_poll)


def _sync(original: Any) -> Any:
    def produce(producer: Any, topic: str, *rest: Any, **named: Any) -> Any:
        if armed():
            report = inject.through(_SITE, None, producer, topic, rest, named)
            if report is not None:
                _reports.setdefault(producer, []).append(report)
                return None
            rest, named = hosts.guarded(_addressed, producer, rest, named) or (rest, named)
        return original(producer, topic, *rest, **named)

    return produce


def _addressed(producer: Any, rest: Any, named: Any) -> Any:
    config = producer.config or {}
    servers = config.get("bootstrap.servers") or config.get("metadata.broker.list") or ""
    return addressed(str(servers), _HEADERS, rest, named)


def _telling(original: Any) -> Any:
    def poll(producer: Any, *given: Any, **named: Any) -> Any:
        told = original(producer, *given, **named)
        return told + _tell(producer) if producer in _reports else told

    return poll


def _waiting(original: Any) -> Any:
    def flush(producer: Any, timeout: float = -1, **named: Any) -> Any:
        left = original(producer, timeout, **named)
        if producer not in _reports:
            return left
        end = time.monotonic() + (timeout if timeout >= 0 else _LONGEST)
        while (waiting := _reports.get(producer)) and time.monotonic() < end:
            time.sleep(max(0.0, min(*(each.due for each in waiting), end) - time.monotonic()))
            _tell(producer)
        return left + len(_reports.get(producer, ()))

    return flush


def _tell(producer: Any) -> int:
    """Return what became of the messages that are due; how many they were."""
    waiting, now = _reports.pop(producer, []), time.monotonic()
    due = [each for each in waiting if each.due <= now]
    left = [each for each in waiting if each.due > now]
    if left:
        _reports[producer] = left
    for each in due:
        each.tell()
    return len(due)


def _sync_poll(original: Any) -> Any:
    def poll(consumer: Any, timeout: float = -1, **named: Any) -> Any:
        if armed():
            answer = inject.through(_RECEIVING, None, consumer, timeout)
            if answer is not None:
                return None if answer is _NOTHING else answer
        return original(consumer, timeout, **named)

    return poll


def _name(service: str, _producer: Any, topic: str, _rest: Any, _named: Any) -> str:
    return message_point(service, "publish", "kafka", topic)


def _effect(
    injection: Injection, producer: Any, topic: str, rest: Any, named: Any
) -> Effect | None:
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    given = {**dict(zip(_ARGUMENTS, rest, strict=False)), **named}
    if injection.kind == "error":
        return Effect(failure=_report(topic, given, 0.0, error.TEXT))
    patience = _patience(producer.config or {})
    if injection.kind == "timeout" and patience <= injection.delay_ms:
        return Effect(failure=_report(topic, given, patience / 1000))
    return None


def _patience(config: Any) -> float:
    """Return the milliseconds after which the producer gives a message up."""
    return float(
        config.get("message.timeout.ms", config.get("delivery.timeout.ms", _LONGEST)) or _LONGEST
    )


def _report(topic: str, given: Any, after: float, why: str | None = None) -> _Report:
    code = KafkaError._MSG_TIMED_OUT
    said = KafkaError(code) if why is None else KafkaError(code, why)
    message = Message(
        topic=topic, value=given.get("value"), key=given.get("key"), error=said, partition=-1
    )
    callback = given.get("on_delivery") or given.get("callback")
    return _Report(time.monotonic() + after, message, callback)


def _name_receiving(service: str, consumer: Any, _timeout: float) -> str:
    return consumer_point(service, {each.topic for each in consumer.assignment()})


def _effect_on_receiving(injection: Injection, _consumer: Any, waits: float) -> Effect | None:
    if injection.kind == "error":
        said = KafkaError(KafkaError._ALL_BROKERS_DOWN, error.TEXT)
        return Effect(failure=Message(error=said))
    patience = waits if waits >= 0 else None
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, lambda: _NOTHING)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, lambda: _NOTHING)
    return None


_ARGUMENTS: Final = ("value", "key", "partition", "callback", "on_delivery", "timestamp", "headers")
_HEADERS: Final = _ARGUMENTS.index("headers")
_NOTHING: Final = object()
_SITE: Final = Site(_name, _effect)
_RECEIVING: Final = Site(_name_receiving, _effect_on_receiving)
