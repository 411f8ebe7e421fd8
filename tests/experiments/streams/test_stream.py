"""What every stream has to keep: in memory, and on Kafka."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from contextlib import nullcontext
from itertools import pairwise

import pytest

from ldfi.errors import MessageTooLarge, StreamError
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Consumer, Message, Place, Stream, Topics
from tests.experiments.members import until

pytestmark = pytest.mark.timeout(600)

PATIENCE = 60.0
"""Seconds that brokers may take to form a group on a machine that has much else to do."""

PARTITIONS = 4


class Nothing:
    """Counts how often it is told to forget."""

    def __init__(self) -> None:
        self.told = 0

    def forget(self) -> None:
        self.told += 1


@pytest.fixture(autouse=True)
def _topics(stream: Stream, topics: Topics) -> None:
    stream.ensure(topics.partitions(PARTITIONS))


def write(stream: Stream, topic: str, keys: int, each: int = 1) -> None:
    producer = stream.producer()
    for number in range(each):
        for key in range(keys):
            producer.send(topic, f"{key:032x}".encode(), f"{number}".encode(), [("n", b"1")])
    producer.flush()
    producer.close()


def read(consumer: Consumer, wanted: int, seconds: float = PATIENCE) -> list[Message]:
    found: list[Message] = []
    end = time.monotonic() + seconds
    while len(found) < wanted and time.monotonic() < end:
        found += consumer.poll(0.1)
    assert len(found) == wanted
    return found


class Member(threading.Thread):
    """A member of a group in a thread of its own, which does other things between its polls.

    The stream in memory is made for one thread: there the members take turns.
    """

    turns = threading.Lock()

    def __init__(self, stream: Stream, topics: list[str]) -> None:
        super().__init__(daemon=True)
        self.told = Nothing()
        self.found: list[tuple[int, int]] = []
        self.places: set[Place] = set()
        self._left = threading.Event()
        self._turn = self.turns if isinstance(stream, MemoryStream) else nullcontext()
        self._consumer = stream.group("g", topics, self.told)
        self.start()

    def run(self) -> None:
        while not self._left.wait(0.2):
            with self._turn:
                self.found += [(m.partition, m.offset) for m in self._consumer.poll(0)]
                self.places = {*self._consumer.positions()}
        with self._turn:
            self._consumer.close()

    def close(self) -> None:
        self._left.set()
        self.join(PATIENCE)
        assert not self.is_alive()


def test_messages_of_one_key_stay_together_and_in_order(stream: Stream, topics: Topics) -> None:
    write(stream, topics.spans, keys=20, each=10)
    reader = stream.reader(topics.spans, {})
    by_key: defaultdict[bytes | None, list[Message]] = defaultdict(list)
    for message in read(reader, 200):
        by_key[message.key].append(message)
    for messages in by_key.values():
        assert len({message.partition for message in messages}) == 1
        assert [int(message.value) for message in messages] == list(range(10))
        assert all(a.time <= b.time for a, b in pairwise(messages))
        assert messages[0].headers == [("n", b"1")] or messages[0].headers == (("n", b"1"),)
    assert len({messages[0].partition for messages in by_key.values()}) == PARTITIONS
    assert reader.positions() == reader.ends()
    assert abs(by_key[f"{0:032x}".encode()][0].time - time.time()) < 60
    reader.close()


def test_a_key_has_the_same_partition_in_all_topics(stream: Stream, topics: Topics) -> None:
    where: defaultdict[bytes | None, set[int]] = defaultdict(set)
    for topic in (topics.spans, topics.metrics, topics.observations):
        write(stream, topic, keys=20)
        reader = stream.reader(topic, {})
        for message in read(reader, 20):
            where[message.key].add(message.partition)
        reader.close()
    assert all(len(partitions) == 1 for partitions in where.values())


def test_a_reader_begins_where_it_is_told(stream: Stream, topics: Topics) -> None:
    write(stream, topics.spans, keys=40)
    first = stream.reader(topics.spans, {})
    sizes = Counter(message.partition for message in read(first, 40))
    first.close()
    second = stream.reader(topics.spans, {number: count - 1 for number, count in sizes.items()})
    assert all(m.offset == sizes[m.partition] - 1 for m in read(second, PARTITIONS))
    second.close()


def test_a_group_shares_partitions_and_both_halves_are_with_one_member(
    stream: Stream, topics: Topics
) -> None:
    # Given two members
    both = [topics.spans, topics.metrics]
    one, two = Member(stream, both), Member(stream, both)
    until(lambda: all(len(member.places) == PARTITIONS for member in (one, two)))
    # Then each partition is with one of them, together with its counterpart
    assert not one.places & two.places
    assert {number for _, number in one.places} & {number for _, number in two.places} == set()
    # When one leaves
    before = one.told.told
    two.close()
    until(lambda: len(one.places) == 2 * PARTITIONS)
    # Then the other has everything, and was told that what it knew is void
    assert one.told.told > before
    one.close()


def test_what_is_not_committed_is_read_again_by_the_next(stream: Stream, topics: Topics) -> None:
    write(stream, topics.spans, keys=30)
    one = stream.group("g", [topics.spans], Nothing())
    seen = read(one, 30)
    committed: dict[Place, int] = {(topics.spans, seen[0].partition): seen[0].offset + 1}
    one.commit(committed)
    one.close()
    two = stream.group("g", [topics.spans], Nothing())
    again = read(two, 29)
    assert seen[0] not in again
    two.close()


def test_who_keeps_a_partition_in_a_rebalance_rereads_it(stream: Stream, topics: Topics) -> None:
    # Given a member that has read everything and committed nothing
    write(stream, topics.spans, keys=30)
    one = Member(stream, [topics.spans])
    until(lambda: len(one.found) == 30)
    before, once = one.told.told, len(one.found)
    # When another one joins, so that it is told to forget
    two = Member(stream, [topics.spans])
    until(lambda: len({*one.found[once:], *two.found}) == 30)
    # Then the two of them read everything once more
    assert one.told.told > before
    one.close()
    two.close()


def test_topics_with_other_partitions_are_refused(stream: Stream, topics: Topics) -> None:
    stream.ensure(topics.partitions(PARTITIONS))
    with pytest.raises(StreamError, match="wanted 5"):
        stream.ensure({topics.spans: 5})


@pytest.mark.servers  # memory takes everything
@pytest.mark.parametrize("stream", ["kafka"], indirect=True)
def test_what_no_broker_takes_is_said_so(stream: Stream, topics: Topics) -> None:
    producer = stream.producer()
    with pytest.raises(MessageTooLarge):
        producer.send(topics.spans, b"k", b"x" * 2_000_000)
    producer.close()
