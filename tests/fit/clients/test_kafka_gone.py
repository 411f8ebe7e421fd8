"""Producers and consumers of Kafka when no broker is left: really, and under the fault."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import aiokafka
import confluent_kafka
import kafka
import pytest
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor

from ldfi.fit.clients import aiokafka as our_aiokafka
from ldfi.fit.clients import confluent_kafka as our_confluent
from tests.fit.breaking import breaking, functions
from tests.fit.clients.brokers import TOPIC, Broker, broker
from tests.fit.clients.contract import Requests
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES

# The libraries leave sockets to the garbage collector.
pytestmark = [
    pytest.mark.usefixtures("own_spans"),
    pytest.mark.servers,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PATIENCE_MS: Final = 500
LONGER_MS: Final = 2 * PATIENCE_MS
PUBLISHED: Final = "api>message:publish:kafka/plays"
SENT: Final = "api>message:send:kafka/plays"
RECEIVED: Final = "api>message:receive:kafka/plays"
Seen = tuple[str, ...]
Meddle = Callable[[Broker], Any]
"""What happens once the topic is known: a broker that vanishes, or a fault."""


@pytest.fixture
def running() -> Iterator[Broker]:
    with broker() as running:
        yield running
    gc.collect()  # while this module's filter still holds


def vanishes(running: Broker) -> None:
    running.vanish()


def well(_running: Broker) -> None:
    """Nothing happens."""


def words(failure: BaseException) -> Seen:
    return (f"{type(failure).__module__}.{type(failure).__name__}", str(failure))


def by_aiokafka(running: Broker, meddle: Meddle) -> Seen:
    async def within() -> Seen:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=running.address, request_timeout_ms=PATIENCE_MS
        )
        await producer.start()
        try:
            await producer.send_and_wait(TOPIC, b"known")
            meddle(running)
            began, sent = time.monotonic(), 0.0
            try:
                future = await producer.send(TOPIC, b"one")
                sent = time.monotonic() - began
                await future
            except Exception as failure:  # noqa: BLE001 - whatever the caller sees
                late = time.monotonic() - began >= PATIENCE_MS / 1000
                return (*words(failure), f"at once {sent < 0.3}", f"late {late}")
            return ("delivered",)
        finally:
            await producer.stop()

    return asyncio.run(within())


def by_confluent(running: Broker, meddle: Meddle) -> Seen:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": running.address,
            "message.timeout.ms": PATIENCE_MS,
            "log_level": 0,
        }
    )
    producer.produce(TOPIC, b"known")
    producer.flush(20)
    meddle(running)
    told: list[Seen] = []

    def tell(failure: Any, message: Any) -> None:
        said = "delivered" if failure is None else f"{failure.name()} {failure.str()}"
        told.append((said, message.topic(), str(message.value())))

    began = time.monotonic()
    producer.produce(TOPIC, b"one", on_delivery=tell)
    sent = time.monotonic() - began
    assert not told
    left = producer.flush(20)
    late = time.monotonic() - began >= PATIENCE_MS / 1000
    (said,) = told
    return (*said, f"at once {sent < 0.3}", f"left {left}", f"late {late}")


def consumed_by_kafka_python(running: Broker, meddle: Meddle) -> Seen:
    consumer = kafka.KafkaConsumer(TOPIC, bootstrap_servers=running.address, api_version=(2, 0))
    try:
        meddle(running)
        return _asked(lambda: consumer.poll(timeout_ms=PATIENCE_MS))
    finally:
        consumer.close(timeout_ms=100)


def consumed_by_aiokafka(running: Broker, meddle: Meddle) -> Seen:
    async def within() -> Seen:
        consumer = aiokafka.AIOKafkaConsumer(TOPIC, bootstrap_servers=running.address)
        await consumer.start()
        try:
            meddle(running)
            began = time.monotonic()
            try:
                found = str(await consumer.getmany(timeout_ms=PATIENCE_MS))
            except Exception as failure:  # noqa: BLE001 - whatever the caller sees
                found = " ".join(words(failure))
            return (found, f"late {time.monotonic() - began >= PATIENCE_MS / 1000 - 0.05}")
        finally:
            with suppress(asyncio.CancelledError):  # its own, where no broker is left
                await consumer.stop()

    return asyncio.run(within())


def consumed_by_confluent(running: Broker, meddle: Meddle) -> Seen:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": running.address, "group.id": "g", "log_level": 0}
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0)])
    try:
        consumer.poll(0.1)
        meddle(running)
        return _asked(lambda: consumer.poll(PATIENCE_MS / 1000))
    finally:
        consumer.close()


def _asked(ask: Callable[[], Any]) -> Seen:
    began = time.monotonic()
    try:
        found = ask()
    except Exception as failure:  # noqa: BLE001 - whatever the caller sees
        return words(failure)
    if found is not None and not isinstance(found, dict):
        found = found.error().name()
    return (str(found), f"late {time.monotonic() - began >= PATIENCE_MS / 1000 - 0.05}")


USES: Final = {
    "aiokafka": (by_aiokafka, PUBLISHED),
    "confluent-kafka": (by_confluent, PUBLISHED),
    "kafka-python, consumer": (consumed_by_kafka_python, RECEIVED),
    "aiokafka, consumer": (consumed_by_aiokafka, RECEIVED),
    "confluent-kafka, consumer": (consumed_by_confluent, RECEIVED),
}


def under(
    requests: Requests, use: Callable[[Broker, Meddle], Seen], fault: str, arm: Any = "treatment"
) -> Seen:
    """A use under a fault, which begins when the topic is known."""
    armed = requests.request(fault, arm=arm, delay_ms=LONGER_MS)

    def meddle(_running: Broker) -> None:
        armed.__enter__()

    with broker() as running:
        try:
            return use(running, meddle)
        finally:
            armed.__exit__(None, None, None)


@pytest.mark.parametrize(("client", "kind"), [(name, "timeout") for name in USES])
def test_a_caller_sees_what_it_really_sees_when_kafka_is_gone(
    requests_made: Requests, running: Broker, client: str, kind: str
) -> None:
    use, point = USES[client]
    real = use(running, vanishes)

    assert "late True" in real
    assert BY_THEMSELVES[client][kind] in real[0]
    assert under(requests_made, use, f"{kind}@{point}") == real
    assert requests_made.lineage().fired == {f"{kind}@{point}"}


@pytest.mark.parametrize("name", USES)
def test_in_control_all_is_as_ever(requests_made: Requests, running: Broker, name: str) -> None:
    use, point = USES[name]
    usual = use(running, well)

    for kind in ("timeout", "error", "delay"):
        assert under(requests_made, use, f"{kind}@{point}", "control") == usual
        assert requests_made.lineage().would_fire == {f"{kind}@{point}"}


@pytest.mark.parametrize("name", USES)
def test_an_error_and_a_delay(requests_made: Requests, name: str) -> None:
    use, point = USES[name]
    failing = {
        "aiokafka": "aiokafka.errors.KafkaTimeoutError",
        "confluent-kafka": "_MSG_TIMED_OUT fault injected",
        "kafka-python, consumer": "kafka.errors.KafkaConnectionError",
        "aiokafka, consumer": "aiokafka.errors.KafkaConnectionError",
        "confluent-kafka, consumer": "_ALL_BROKERS_DOWN",
    }
    seen = under(requests_made, use, f"error@{point}")
    assert seen[0].startswith(failing[name])
    assert requests_made.lineage().fired == {f"error@{point}"}

    began = time.monotonic()
    seen = under(requests_made, use, f"delay@{point}")
    assert time.monotonic() - began >= PATIENCE_MS / 1000
    assert requests_made.lineage().fired == {f"delay@{point}"}
    assert not seen[0].startswith(failing[name])


def test_the_names_that_the_lineage_reads(requests_made: Requests, running: Broker) -> None:
    """Without a context the name is read from the span of the instrumentation."""
    for instrumentor, use in (
        (AIOKafkaInstrumentor(), by_aiokafka),
        (ConfluentKafkaInstrumentor(), by_confluent),
    ):
        instrumentor.instrument(tracer_provider=requests_made.provider)
        try:
            with requests_made.request():
                use(running, well)
            assert requests_made.lineage().called == {PUBLISHED}
            assert under(requests_made, use, f"timeout@{PUBLISHED}")[-1] == "late True"
            assert requests_made.lineage().fired == {f"timeout@{PUBLISHED}"}
            assert requests_made.lineage().called == {PUBLISHED}
        finally:
            instrumentor.uninstrument()


def test_no_message_is_given_up_before_its_time(requests_made: Requests) -> None:
    """A producer that has longer than the fault may hang has none injected."""
    for use in (by_aiokafka, by_confluent):
        fault = f"timeout@{PUBLISHED}"
        with requests_made.request(fault, delay_ms=PATIENCE_MS // 2), broker() as running:
            assert "late True" not in use(running, well)
        assert requests_made.lineage().fired == set()


@pytest.mark.parametrize(
    ("ours", "use", "point", "failures"),
    [
        (our_aiokafka, by_aiokafka, PUBLISHED, ("KafkaTimeoutError",)),
        (our_confluent, by_confluent, PUBLISHED, ("_MSG_TIMED_OUT",)),
    ],
)
def test_the_host_is_unharmed(
    requests_made: Requests, ours: Any, use: Any, point: str, failures: tuple[str, ...]
) -> None:
    telling = {"_fail", "_tell", "_telling", "_waiting", "_passed_on", "_put", "_restoring"}
    for owner, name in functions(ours):
        if owner is not ours or name in telling or name.startswith("Pointed"):
            continue
        with pytest.MonkeyPatch.context() as patched:
            breaking(owner, name, [ours], patched)
            seen = under(requests_made, use, f"error@{point}")
        assert "delivered" in seen[0] or any(each in seen[0] for each in failures), (name, seen)
