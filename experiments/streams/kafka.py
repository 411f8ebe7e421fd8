"""A stream in Kafka, by kafka-python.

What is asked of the broker, and why:

- Producers are idempotent and wait for all replicas: a message sent again after a lost answer is
  there once, and one that is acknowledged is not lost with a broker.
- Partitions are dealt by *range*: alone of the strategies it gives the partitions of the same
  number, of topics with as many partitions, to the same member.
- Spans, metrics and observations carry the broker's time (``LogAppendTime``): one clock for all
  producers, and time never runs backwards within a partition.
- Nothing is committed by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError, MessageSizeTooLargeError, TopicAlreadyExistsError

from ldfi.errors import MessageTooLarge, StreamError
from ldfi.experiments.streams.stream import Header, Listener, Message, Place

SESSION_MS: Final = 6_000
"""Without a heartbeat for so long, a member's partitions go to the others."""

ANSWER_MS: Final = 5_000
"""How long we wait for an answer before we do something else, and then ask again."""

JOIN_MS: Final = 100
"""How long we look whether partitions have been dealt, before we look at the clock."""

REQUEST_MS: Final = 10_000
DELIVERY_MS: Final = 20_000
"""How long a producer tries again by itself; then whoever wrote has to write it once more."""

LARGEST: Final = 1_000_000
"""Bytes of a message: what a broker takes unless it is told otherwise."""

_RECONNECT: Final = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 500}
"""A broker that comes back is noticed within half a second: while it is away no log's time passes,
and afterwards everybody has to write what is left before a trace is taken for whole."""


@dataclass(frozen=True, slots=True)
class Security:
    """How to reach brokers that do not speak to everybody. ``password`` is never shown."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def options(self) -> dict[str, Any]:
        """Name the options as kafka-python does."""
        given = {
            "security_protocol": self.protocol,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
            "ssl_cafile": self.ca_file,
            "ssl_certfile": self.cert_file,
            "ssl_keyfile": self.key_file,
        }
        return {name: value for name, value in given.items() if value is not None}


class KafkaStream:
    """``bootstrap``: addresses of brokers. ``replicas``: of each topic that is made here; -1 leaves
    that to the brokers. ``retention``: for how many seconds topics that are made here keep what is
    written to them; the brokers say it for those that are not named."""

    def __init__(
        self,
        bootstrap: Sequence[str],
        security: Security | None = None,
        *,
        client: str = "ldfi",
        replicas: int = -1,
        retention: Mapping[str, float] | None = None,
    ) -> None:
        self._replicas = replicas
        self._retention = retention or {}
        self.options = {
            "bootstrap_servers": list(bootstrap),
            "client_id": client,
            **_RECONNECT,
            **(security or Security()).options(),
        }

    def ensure(self, topics: Mapping[str, int]) -> None:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        with failing("topics cannot be made"):
            admin = KafkaAdminClient(**self.options)
            try:
                there = set(admin.list_topics())
                new = {
                    topic: {
                        "num_partitions": count,
                        "replication_factor": self._replicas,
                        "configs": self._configs(topic),
                    }
                    for topic, count in topics.items()
                    if topic not in there
                }
                if new:
                    with suppress(TopicAlreadyExistsError):  # another process was faster
                        admin.create_topics(new, wait_for_metadata=True)
                known = admin.describe_topics(list(topics))
            finally:
                admin.close()
        for each in known:
            topic, count = described(each)
            if count != topics[topic]:
                raise StreamError(
                    f"topic {topic} has {count} partitions, wanted {topics[topic]}: spans, metrics "
                    "and observations must have the same number. LDFI_KAFKA_PARTITIONS says it, "
                    "and `ldfi streams grow` adds some"
                )

    def _configs(self, topic: str) -> dict[str, str]:
        configs = {"message.timestamp.type": "LogAppendTime"}
        if topic in self._retention:
            configs["retention.ms"] = str(int(self._retention[topic] * 1000))
        return configs

    def producer(self) -> KafkaWriter:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        with failing("no producer"):
            return KafkaWriter(self._producer)

    def _producer(self) -> Any:
        return KafkaProducer(
            **self.options,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            batch_size=256 * 1024,
            max_request_size=LARGEST,
            request_timeout_ms=REQUEST_MS,
            delivery_timeout_ms=DELIVERY_MS,
            metrics_enabled=False,
        )

    def group(self, name: str, topics: Sequence[str], listener: Listener) -> KafkaReader:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        with failing("no consumer"):
            consumer = self._consumer(
                group_id=name,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=SESSION_MS // 4,
                partition_assignment_strategy=(RangePartitionAssignor,),
            )
            reader = KafkaReader(consumer)
            consumer.subscribe(topics=list(topics), listener=_Listener(listener, reader))
            return reader

    def reader(self, topic: str, starts: Mapping[int, int]) -> KafkaReader:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        with failing("no consumer"):
            consumer = self._consumer(group_id=None)
            numbers = consumer.partitions_for_topic(topic)
            if not numbers:
                consumer.close()
                raise StreamError(f"there is no topic {topic!r}")
            consumer.assign([TopicPartition(topic, number) for number in sorted(numbers)])
            for number in numbers & starts.keys():
                consumer.seek(TopicPartition(topic, number), starts[number])
            return KafkaReader(consumer)

    def _consumer(self, **options: Any) -> Any:
        return KafkaConsumer(
            **self.options,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=2_000,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=5_000,  # or a topic just made might be overlooked for minutes
            metrics_enabled=False,
            **options,
        )


class KafkaWriter:
    """Writes.

    When something was not acknowledged in time, kafka-python (3.0) waits for the rest of it for
    ever, also when the brokers are there again. So such a producer is given up for a new one.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._producer: Any = make()
        self._sent: list[Any] = []

    def send(
        self, topic: str, key: bytes | None, value: bytes, headers: Sequence[Header] = ()
    ) -> None:
        """See :class:`ldfi.experiments.streams.stream.Producer`."""
        with failing(f"{topic} cannot be written to"):
            if self._producer is None:
                self._producer = self._make()
            self._sent.append(self._producer.send(topic, value, key, list(headers)))

    def flush(self) -> None:
        """See :class:`ldfi.experiments.streams.stream.Producer`."""
        if not self._sent:
            return
        sent, self._sent = self._sent, []
        with failing("not everything was acknowledged"):
            try:
                self._producer.flush(timeout=DELIVERY_MS / 1000 + 2)
                for future in sent:
                    if future.failed():
                        raise future.exception
            except KafkaError:
                self._give_up(0)
                raise

    def close(self) -> None:
        """See :class:`ldfi.experiments.streams.stream.Producer`."""
        self._give_up(1)

    def _give_up(self, seconds: float) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.close(timeout=seconds)
        except KafkaError:  # it waits for what is not acknowledged, and goes no further
            producer._sender.force_close()


class KafkaReader:
    """Reads.

    kafka-python keeps the position of a partition that is ours before and after a rebalance. Our
    listeners forget what they had read, so after each one everything begins at what is committed:
    ``moved`` says that this has still to be seen to.

    It also throws away an answer to its request to join that comes while nobody polls, and asks
    again, which makes all others join again as well: of members that do other things between short
    polls none might ever be dealt a partition. So a member that is ``joining`` does nothing else.
    And one that joins again for news of a topic forgets, when a poll ends in between, that it was
    about to; so it is told so (:meth:`join`).
    """

    def __init__(self, consumer: Any) -> None:
        self.moved = self.joining = False
        self._consumer = consumer

    def poll(self, seconds: float) -> list[Message]:
        """See :class:`ldfi.experiments.streams.stream.Consumer`. While the partitions are dealt
        anew it takes up to ``ANSWER_MS`` longer."""
        with failing("nothing can be read"):
            batches = self._consumer.poll(timeout_ms=int(seconds * 1000))
            end = time.monotonic() + ANSWER_MS / 1000
            while self.joining and time.monotonic() < end:
                batches = self._consumer.poll(timeout_ms=JOIN_MS)
            if self.joining:
                return []
            if self.moved:
                self._begin_at_committed()
                return []
        return [
            Message(
                each.topic,
                each.partition,
                each.offset,
                each.key,
                each.value or b"",  # null: somebody's tombstone
                each.timestamp / 1000,
                each.headers,
            )
            for batch in batches.values()
            for each in batch
        ]

    def join(self) -> None:
        """Note that partitions are being assigned again; until then nothing is read."""
        self.moved = self.joining = True
        self._consumer._coordinator.request_rejoin()  # it takes this back when it has joined

    def positions(self) -> dict[Place, int]:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        found: dict[Place, int] = {}
        if self.moved:
            return found
        with failing("positions are not known"):
            for place in self._consumer.assignment():
                at = self._consumer.position(place, timeout_ms=ANSWER_MS)
                if at is not None:
                    found[place.topic, place.partition] = at
        return found

    def ends(self) -> dict[Place, int]:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        places = list(self._consumer.assignment())
        if not places or self.moved:
            return {}
        with failing("the broker does not say how far its partitions go"):
            ends = self._consumer.end_offsets(places, timeout_ms=ANSWER_MS)
        return {(place.topic, place.partition): end for place, end in ends.items()}

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        if self.moved:
            raise StreamError("not committed: the partitions have changed hands")
        with failing("not committed"):
            self._consumer.commit(
                {
                    TopicPartition(*place): OffsetAndMetadata(offset, "", -1)
                    for place, offset in offsets.items()
                },
                timeout_ms=ANSWER_MS,
            )

    def close(self) -> None:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        with failing("the group was not left"):
            self._consumer.close(autocommit=False, timeout_ms=ANSWER_MS)

    def _begin_at_committed(self) -> None:
        self.moved = False
        try:
            for place in self._consumer.assignment():
                offset = self._consumer.committed(place, timeout_ms=ANSWER_MS)
                if offset is None:
                    self._consumer.seek_to_beginning(place)
                else:
                    self._consumer.seek(place, offset)
        except BaseException:
            self.moved = True
            raise


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python has no types
    def __init__(self, listener: Listener, reader: KafkaReader) -> None:
        self._listener = listener
        self._reader = reader

    def on_partitions_revoked(self, _revoked: Collection[Any]) -> None:
        self._reader.join()
        self._listener.forget()

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self.on_partitions_revoked(lost)

    def on_partitions_assigned(self, _assigned: Collection[Any]) -> None:
        self._reader.moved, self._reader.joining = True, False
        self._listener.forget()


def described(topic: Any) -> tuple[str, int]:
    """Read of a topic's description its name and how many partitions it has."""
    name = topic["name"] if isinstance(topic, dict) else topic.name
    partitions = topic["partitions"] if isinstance(topic, dict) else topic.partitions
    return str(name), len(partitions)


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Turn errors of kafka-python into ours."""
    try:
        yield
    except MessageSizeTooLargeError as error:
        raise MessageTooLarge(f"{what}: {error}") from error
    except (KafkaError, OSError, ValueError, TypeError) as error:
        raise StreamError(f"{what}: {type(error).__name__}: {error}") from error
