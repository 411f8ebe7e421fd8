"""Brokers that are away for longer than a producer waits for them."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from deploy.stack.kafka import Broker
from ldfi.errors import StreamError
from ldfi.experiments.streams import kafka
from ldfi.experiments.streams.stream import Topics
from tests.experiments.members import until

pytestmark = pytest.mark.servers


@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # of those given up
def test_writing_goes_on_after_an_outage(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given somebody who writes to several partitions all the time, and waits for two seconds
    monkeypatch.setattr(kafka, "REQUEST_MS", 1_000)
    monkeypatch.setattr(kafka, "DELIVERY_MS", 2_000)
    topics, stream = Topics(broker.prefix()), kafka.KafkaStream([broker.address])
    stream.ensure(topics.partitions(4))
    stopped, written, refused = threading.Event(), [0.0], [0.0]

    def write() -> None:
        producer = stream.producer()
        while not stopped.is_set():
            try:
                for number in range(50):
                    producer.send(topics.spans, b"%d" % number, b"x")
                producer.flush()
                written[0] = time.monotonic()
            except StreamError:
                refused[0] = time.monotonic()
                time.sleep(0.1)
        producer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until(lambda: written[0] > 0.0)
        # When the brokers are away until what is written is refused
        broker.kill()
        killed = time.monotonic()
        until(lambda: refused[0] > killed)
        broker.start()
        broker.ready()
        back = time.monotonic()
        # Then what is written is taken again
        until(lambda: written[0] > back)
    finally:
        stopped.set()
        thread.join(60)
    assert not thread.is_alive()
    gc.collect()
