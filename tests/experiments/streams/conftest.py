"""Streams for the tests: the same test runs in memory and on Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from deploy.stack import kafka
from deploy.stack.missing import Missing
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Stream, Topics


@pytest.fixture(scope="session")
def broker() -> Iterator[kafka.Broker]:
    """One broker for all tests: skipped where there can be none, but never in CI."""
    try:
        with kafka.running() as broker:
            yield broker
    except Missing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(
    params=["memory", pytest.param("kafka", marks=[pytest.mark.servers, pytest.mark.timeout(400)])]
)
def stream(request: pytest.FixtureRequest) -> Stream:
    """A stream, once in memory and once on Kafka."""
    if request.param == "memory":
        return MemoryStream()
    broker: kafka.Broker = request.getfixturevalue("broker")
    return KafkaStream([broker.address])


@pytest.fixture
def topics(stream: Stream, request: pytest.FixtureRequest) -> Topics:
    """Topics of the test's own."""
    if isinstance(stream, MemoryStream):
        return Topics("test")
    broker: kafka.Broker = request.getfixturevalue("broker")
    return Topics(broker.prefix())
