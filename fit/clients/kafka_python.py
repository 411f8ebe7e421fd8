"""kafka-python's producer and consumer.

Of the producer:
``error`` is what an outage of the brokers looks like once the topic is known: ``send`` returns its
future, and the future fails with a KafkaTimeoutError. ``delay`` is what a full buffer looks like:
``send`` blocks for ``max_block_ms`` and raises KafkaTimeoutError (which is all that a ``timeout``
is), or for the fault's length and then sends.

Where no broker is left a consumer's ``poll`` comes back with nothing when its timeout is over: so
do ``timeout`` and a longer ``delay``. ``error`` is a KafkaConnectionError.
"""

from __future__ import annotations

from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.clients.kafka import addressed, consumer_point
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import message_point

_HEADERS: Final = 2
"""Where they stand behind ``topic``: value, key, headers."""


def patch() -> None:
    """Make every produced message an injection point, and every time that some are asked for."""
    patching.put(KafkaProducer, "send", _sync)
    patching.put(KafkaConsumer, "poll", _sync_poll)


def _sync(original: Any) -> Any:
    def send(producer: Any, topic: str, *rest: Any, **named: Any) -> Any:
        if armed():
            answer = inject.through(_SITE, None, producer, topic)
            if answer is not None:
                return answer
            rest, named = hosts.guarded(_addressed, producer, rest, named) or (rest, named)
        return original(producer, topic, *rest, **named)

    return send


def _addressed(producer: Any, rest: Any, named: Any) -> Any:
    return addressed(producer.config["bootstrap_servers"], _HEADERS, rest, named)


def _sync_poll(original: Any) -> Any:
    def poll(consumer: Any, timeout_ms: float = 0, *rest: Any, **named: Any) -> Any:
        if armed():
            answer = inject.through(_RECEIVING, None, consumer, timeout_ms)
            if answer is not None:
                return answer
        return original(consumer, timeout_ms, *rest, **named)

    return poll


def _name(service: str, _producer: Any, topic: str) -> str:
    return message_point(service, "send", "kafka", topic)


def _effect(injection: Injection, producer: Any, topic: str) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=_failed(topic))
    patience = producer.config["max_block_ms"] / 1000
    message = f"Failed to allocate memory within {patience:.1f} secs."
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, lambda: KafkaTimeoutError(message))
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, lambda: KafkaTimeoutError(message))
    return None


def _failed(topic: str) -> Any:
    result = FutureProduceResult(TopicPartition(topic, -1))
    future = FutureRecordMetadata(result, -1, None, None, -1, -1, -1)
    return future.failure(KafkaTimeoutError(f"Batch for {topic} expired: {error.TEXT}"))


def _name_receiving(service: str, consumer: Any, _timeout_ms: float) -> str:
    return consumer_point(service, consumer.subscription() or ())


def _effect_on_receiving(injection: Injection, _consumer: Any, timeout_ms: float) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=KafkaConnectionError(error.TEXT))
    if injection.kind == "delay":
        return delay(injection.delay_ms, timeout_ms / 1000, dict)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, timeout_ms / 1000, dict)
    return None


_SITE = Site(_name, _effect)
_RECEIVING = Site(_name_receiving, _effect_on_receiving)
