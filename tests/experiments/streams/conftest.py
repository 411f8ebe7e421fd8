"""Streams for the tests: the same test runs in memory and on Kafka."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.stack import kafka
from deploy.stack.missing import Missing
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Stream, Topics
from ldfi.experiments.streams.worker import Worker
from tests.experiments.streams.driving import PATIENCE, Leader

Lead = Callable[[], Leader]


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


@pytest.fixture
def worker(stream: Stream, topics: Topics) -> Iterator[Worker]:
    """A worker on topics of four partitions."""
    stream.ensure(topics.partitions(4))
    worker = Worker(stream, topics, PATIENCE)
    yield worker
    worker.close()


@pytest.fixture
def lead(stream: Stream, topics: Topics, sqlite_template: Path, tmp_path: Path) -> Iterator[Lead]:
    """Begin to lead, again and again, on one database."""
    file = shutil.copy2(sqlite_template, tmp_path / "ldfi.sqlite3")
    db = Database(f"sqlite:///{file}")

    def begin() -> Leader:
        engine = Engine(db, now=time.time())
        return Leader(engine, Intake(stream, topics, db, engine))

    yield begin
    db.close()
