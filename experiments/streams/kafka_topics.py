"""Topics of Kafka, seen from outside: how they stand, and how they grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from ldfi.experiments.streams.kafka import ANSWER_MS, KafkaStream, described, failing
from ldfi.experiments.streams.partition_growth import TopicsSeen
from ldfi.experiments.streams.stream import Place, Topics
from ldfi.experiments.streams.worker import GROUP


class KafkaTopics:
    """The topics of the brokers that ``stream`` is at."""

    def __init__(self, stream: KafkaStream) -> None:
        self._options = stream.options

    def standing(self, topics: Topics) -> TopicsSeen:
        """See :class:`ldfi.experiments.streams.partition_growth.TopicKeeper`."""
        group = topics.group(GROUP)
        with failing("topics cannot be looked at"), self._open(KafkaAdminClient) as admin:
            there = {*admin.list_topics()} & topics.partitions(1).keys()
            if not there:
                return TopicsSeen({}, 0, {}, {})
            partitions = dict(map(described, admin.describe_topics(sorted(there))))
            read = {name: partitions.get(name, 0) for name in (topics.spans, topics.metrics)}
            ends, committed = self._offsets(group, read)  # a consumer waits for a coordinator
            return TopicsSeen(partitions, _members(admin, group), ends, committed)

    def _offsets(
        self, group: str, partitions: Mapping[str, int]
    ) -> tuple[dict[Place, int], dict[Place, int]]:
        ends: dict[Place, int] = {}
        committed: dict[Place, int] = {}
        places = [
            TopicPartition(name, number)
            for name, count in partitions.items()
            for number in range(count)
        ]
        with self._open(KafkaConsumer, group_id=group) as consumer:
            for place, end in consumer.end_offsets(places, timeout_ms=ANSWER_MS).items():
                ends[place.topic, place.partition] = end
            for place in places:
                offset = consumer.committed(place, timeout_ms=ANSWER_MS)
                if offset is not None:
                    committed[place.topic, place.partition] = offset
        return ends, committed

    def grow(self, topic: str, partitions: int) -> None:
        """See :class:`ldfi.experiments.streams.partition_growth.TopicKeeper`."""
        with failing(f"{topic} cannot grow"), self._open(KafkaAdminClient) as admin:
            admin.create_partitions({topic: partitions})

    @contextmanager
    def _open(self, client: Callable[..., Any], **more: Any) -> Iterator[Any]:
        opened = client(**self._options, **more)
        try:
            yield opened
        finally:
            opened.close()


def _members(admin: Any, group: str) -> int:
    found = admin.describe_groups([group])
    return sum(len(each.get("members") or ()) for each in found.values())
