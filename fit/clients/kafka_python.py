"""kafka-python's producer.

``error`` is what an outage of the brokers looks like once the topic is known: ``send`` returns its
future, and the future fails with a KafkaTimeoutError. ``delay`` is what a full buffer looks like:
``send`` blocks for ``max_block_ms`` and raises KafkaTimeoutError (which is all that a ``timeout``
is), or for the fault's length and then sends.
"""

from __future__ import annotations

from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata

from ldfi.fit import error, passage, patching
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay, timeout
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import message_point
from ldfi.fit.strike import Strike


def patch() -> None:
    """Make every produced message an injection point."""
    patching.put(KafkaProducer, "send", _sync)


def _sync(original: Any) -> Any:
    def send(producer: Any, topic: str, *rest: Any, **named: Any) -> Any:
        if armed():
            answer = passage.through(_SITE, None, producer, topic)
            if answer is not None:
                return answer
        return original(producer, topic, *rest, **named)

    return send


def _name(service: str, _producer: Any, topic: str) -> str:
    return message_point(service, "send", "kafka", topic)


def _strike(injection: Injection, producer: Any, topic: str) -> Strike | None:
    if injection.kind == "error":
        return Strike(failure=_failed(topic))
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


_SITE = Site(_name, _strike)
