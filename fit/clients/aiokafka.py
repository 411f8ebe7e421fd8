"""aiokafka's producer and consumer.

``error`` is a future that has failed with a KafkaTimeoutError. Once a topic is known, ``send``
notices nothing of an outage: it is the future that fails, when ``request_timeout_ms`` are over,
with the last thing that went wrong, a NodeNotReadyError. So it does for a ``timeout``; a ``delay``
lasts its length before the message is taken.

A consumer without brokers hears nothing: ``getmany`` comes back with nothing when its timeout is
over, as for ``timeout`` and a longer ``delay``; ``getone`` has none. ``error`` is a
KafkaConnectionError.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.clients.kafka import addressed, consumer_point
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import message_point

_HEADERS: Final = 4
"""Where they stand behind ``topic``: value, key, partition, time, headers."""


def patch() -> None:
    """Make every produced message an injection point, and every time that some are asked for."""
    patching.put(AIOKafkaProducer, "send", _async)
    patching.put(AIOKafkaConsumer, "getone", _async_receiving)
    patching.put(AIOKafkaConsumer, "getmany", _async_receiving)


def _async(original: Any) -> Any:
    async def hit(fault: Any, producer: Any, *call: Any, **named: Any) -> Any:
        answer = await fault
        return await original(producer, *call, **named) if answer is None else answer

    def send(producer: Any, topic: str, *rest: Any, **named: Any) -> Any:
        if armed():
            rest, named = hosts.guarded(_addressed, producer, rest, named) or (rest, named)
            fault = inject.through_async(_SITE, None, producer, topic)
            if fault is not None:
                return hit(fault, producer, topic, *rest, **named)
        return original(producer, topic, *rest, **named)

    return send


def _addressed(producer: Any, rest: Any, named: Any) -> Any:
    return addressed(producer.client._bootstrap_servers, _HEADERS, rest, named)


def _async_receiving(original: Any) -> Any:
    async def hit(fault: Any, consumer: Any, *call: Any, **named: Any) -> Any:
        answer = await fault
        return await original(consumer, *call, **named) if answer is None else answer

    def get(consumer: Any, *partitions: Any, **named: Any) -> Any:
        if armed():
            waits = named.get("timeout_ms", 0) if original.__name__ == "getmany" else None
            fault = inject.through_async(_RECEIVING, None, consumer, waits)
            if fault is not None:
                return hit(fault, consumer, *partitions, **named)
        return original(consumer, *partitions, **named)

    return get


def _name(service: str, _producer: Any, topic: str) -> str:
    return message_point(service, "publish", "kafka", topic)


def _effect(injection: Injection, producer: Any, topic: str) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=_failing(KafkaTimeoutError(error.TEXT)))
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    patience = producer._request_timeout_ms / 1000
    if injection.kind == "timeout" and patience * 1000 <= injection.delay_ms:
        return Effect(failure=_failing(_not_ready(producer, topic), patience))
    return None


def _not_ready(producer: Any, topic: str) -> Exception:
    """Make what aiokafka raises for the node that leads the topic; of several, the first."""
    cluster = producer.client.cluster
    first = min(cluster.partitions_for_topic(topic))
    node = cluster.leader_for_partition(TopicPartition(topic, first))
    said = f"Attempt to send a request to node which is not ready (node id {node})."
    failure: Exception = error.marked(NodeNotReadyError(said))
    return failure


def _failing(failure: Exception, after: float = 0.0) -> asyncio.Future[Any]:
    """Make the future of a message that is not delivered."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_later(after, _fail, future, failure)
    return future


def _fail(future: asyncio.Future[Any], failure: Exception) -> None:
    if not future.done():
        future.set_exception(failure)
        future.exception()  # not everyone looks at what became of a message


def _name_receiving(service: str, consumer: Any, _waits: float | None) -> str:
    return consumer_point(service, consumer.subscription())


def _effect_on_receiving(
    injection: Injection, _consumer: Any, waits: float | None
) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=KafkaConnectionError(error.TEXT))
    patience = None if waits is None else waits / 1000
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, dict)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, dict)
    return None


_SITE: Final = Site(_name, _effect)
_RECEIVING: Final = Site(_name_receiving, _effect_on_receiving)
