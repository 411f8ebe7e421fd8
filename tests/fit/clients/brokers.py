"""A Kafka of one broker that speaks the protocol over real sockets, and can be made to vanish.

It is the one that librdkafka brings along for its own tests; other clients connect to it as to any.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka.cimpl import Producer

TOPIC: Final = "plays"
"""What there is to talk about."""


class Broker:
    """A broker: its ``address``, and its end."""

    def __init__(self) -> None:
        self._held: Producer | None = Producer(
            {"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0}
        )
        self._held.produce(TOPIC, b"first")
        self._held.flush(20)
        (found,) = self._held.list_topics(timeout=20).brokers.values()
        self.address = f"{found.host}:{found.port}"

    def vanish(self) -> None:
        """Be gone, with all connections."""
        self._held = None
        gc.collect()


@contextmanager
def broker() -> Iterator[Broker]:
    """A broker for as long as the block lasts, or until it vanishes."""
    running = Broker()
    try:
        yield running
    finally:
        running.vanish()
