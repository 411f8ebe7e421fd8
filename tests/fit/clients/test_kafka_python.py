"""A real producer whose broker takes the connection and never answers."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
from opentelemetry.instrumentation.kafka import KafkaInstrumentor

from ldfi.fit import clients, patching
from ldfi.fit.clients import kafka_python as ours
from tests.fit.clients.contract import Requests, unharmed

# The library leaves sockets to the garbage collector when a producer is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

POINT = "api>message:send:kafka/plays"


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(params=["instrumented first", "fit first"])
def producer(
    request: pytest.FixtureRequest, requests_made: Requests, silent: str
) -> Iterator[KafkaProducer]:
    """Whichever of the two wraps ``send`` first, the point lies within the span."""
    instrumentor = KafkaInstrumentor()
    if request.param == "instrumented first":
        patching.take_out_all()
        instrumentor.instrument(tracer_provider=requests_made.provider)
        clients.patch_all()
    else:
        instrumentor.instrument(tracer_provider=requests_made.provider)
    producer = KafkaProducer(
        bootstrap_servers=silent,
        api_version=(2, 6),
        max_block_ms=150,
    )
    yield producer
    producer._accumulator.abort_incomplete_batches()
    producer.close(timeout=1)
    producer._sender.join(5)
    instrumentor.uninstrument()
    del producer
    gc.collect()  # while this test's filter still holds


def test_an_error_is_a_future_that_fails(requests_made: Requests, producer: KafkaProducer) -> None:
    with requests_made.request(f"error@{POINT}"):
        future = producer.send("plays", b"one", key=b"k")

    assert future.is_done
    with pytest.raises(KafkaTimeoutError, match="fault injected"):
        future.get(timeout=1)
    heard: list[BaseException] = []
    future.add_errback(heard.append)
    assert isinstance(heard[0], KafkaTimeoutError)
    run = requests_made.lineage()
    assert run.called == run.failed == {POINT}
    assert run.fired == {f"error@{POINT}"}


def test_a_delay_lasts_until_it_gives_up(requests_made: Requests, producer: KafkaProducer) -> None:
    with (
        requests_made.request(f"delay@{POINT}", delay_ms=60_000),
        pytest.raises(KafkaTimeoutError, match="allocate memory"),
    ):
        producer.send("plays", b"one")

    run = requests_made.lineage()
    assert run.called == run.failed == {POINT}
    assert run.fired == {f"delay@{POINT}"}


def test_what_is_not_meant_is_produced(requests_made: Requests, producer: KafkaProducer) -> None:
    with (
        requests_made.request("error@api>message:send:kafka/other"),
        pytest.raises(KafkaTimeoutError, match="metadata"),
    ):
        producer.send("plays", b"one")


def test_without_a_context_the_name_is_read_from_the_span(
    requests_made: Requests, producer: KafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic whose partitions are known is enough for a message to be taken."""
    monkeypatch.setattr(producer._metadata, "partitions_for_topic", lambda _: {0})
    monkeypatch.setattr(producer._metadata, "available_partitions_for_topic", lambda _: {0})
    monkeypatch.setattr(producer._metadata, "topics", lambda: {"plays"})
    with requests_made.request():
        producer.send("plays", b"one", key=b"k")

    assert requests_made.lineage().support == {POINT}


def test_the_host_is_unharmed(requests_made: Requests, producer: KafkaProducer) -> None:
    def call() -> object:
        try:
            return producer.send("plays", b"one")
        except KafkaTimeoutError as silence:  # the producer's own answer to a silent broker
            return str(silence)

    unharmed(requests_made, ours, POINT, call, lambda _: False)
