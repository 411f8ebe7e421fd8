"""What kafka-python does not do by itself when the partitions of a group are dealt."""

from __future__ import annotations

import time

import pytest

from deploy.stack.kafka import Broker
from ldfi.experiments.streams import kafka
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.stream import Topics


class Nothing:
    def forget(self) -> None:
        pass


@pytest.mark.timeout(200)
def test_who_joined_before_the_topics_were_known_gets_their_partitions(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "JOIN_MS", 1)  # no poll lasts until the group has formed
    # Given a member of a group whose leader, itself, knows nothing of the topics yet
    topics = Topics(broker.prefix())
    stream = KafkaStream([broker.address])
    member = stream.group("late", [topics.spans, topics.metrics], Nothing())
    end = time.monotonic() + 3
    while time.monotonic() < end:
        member.poll(0.001)
    assert not member.positions()
    # When they are made
    stream.ensure(topics.partitions(2))
    # Then it soon has all of them
    end = time.monotonic() + 60
    while len(member.positions()) < 4:
        assert time.monotonic() < end, "it was dealt nothing"
        member.poll(0.001)
    member.close()
