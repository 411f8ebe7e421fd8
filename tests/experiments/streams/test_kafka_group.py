"""What kafka-python does not do by itself when the partitions of a group are dealt, and how topics
are made and grow."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from typer.testing import CliRunner

from deploy.stack.kafka import Broker
from ldfi.cli.main import app
from ldfi.errors import StreamError
from ldfi.experiments.cluster.config import Config
from ldfi.experiments.cluster.stream_from_config import stream_of
from ldfi.experiments.streams import kafka
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.stream import Message, Topics
from ldfi.experiments.streams.worker import GROUP
from tests.experiments.streams.test_stream import Nothing

pytestmark = pytest.mark.servers


@pytest.mark.timeout(200)
def test_an_early_member_gets_partitions(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def config(broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Config:
    """Of a service at the broker, as the environment says."""
    for name in [name for name in os.environ if name.startswith("LDFI_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDFI_KAFKA", broker.address)
    monkeypatch.setenv("LDFI_KAFKA_PREFIX", broker.prefix())
    monkeypatch.setenv("LDFI_KAFKA_KEEP_TRAFFIC_HOURS", "6")
    return Config.load()


def asked(*words: str) -> tuple[int, str]:
    """What ``ldfi streams grow`` says: its exit code, and its output or its error."""
    done = CliRunner().invoke(app, ["streams", "grow", *words])
    return done.exit_code, str(done.exception) if done.exception else done.stdout


def test_topics_keep_messages_for_as_long_as_configured(broker: Broker, config: Config) -> None:
    topics = Topics(config.kafka_prefix)
    stream_of(config).ensure(topics.partitions(2))
    hour, day = 3_600_000, 86_400_000
    kept = dict.fromkeys((topics.spans, topics.metrics, topics.observations), str(6 * hour))
    kept |= {topics.events: str(30 * day), topics.dead_letters: str(14 * day)}
    assert retained(broker, topics) == kept


def test_topics_grow_when_nothing_is_in_flight(config: Config) -> None:
    topics, stream = Topics(config.kafka_prefix), stream_of(config)
    assert "there is no topic" in asked("4")[1]
    # Given topics, with one message that a worker has read and not finished
    stream.ensure(topics.partitions(2))
    producer = stream.producer()
    producer.send(topics.spans, b"key", b"value")
    producer.flush()
    member = stream.group(topics.group(GROUP), [topics.spans, topics.metrics], Nothing())
    end = time.monotonic() + 60
    found: list[Message] = []
    while not found:
        assert time.monotonic() < end, "nothing came"
        found = member.poll(0.1)
    # Then nothing grows, neither while it is there nor when it has gone
    assert "1 ingest workers still read" in asked("4")[1]
    member.close()
    assert "1 messages are not finished" in asked("4")[1]
    # When it has finished everything
    member = stream.group(topics.group(GROUP), [topics.spans, topics.metrics], Nothing())
    while len(member.positions()) < 4:
        assert time.monotonic() < end, "it was dealt nothing"
        member.poll(0.1)
    member.commit({(topics.spans, found[0].partition): found[0].offset + 1})
    member.close()
    # Then they grow, once
    code, said = asked("4", "--json")
    assert code == 0, said
    keyed = (topics.observations, topics.metrics, topics.spans)
    grown = [{"topic": name, "before": 2, "after": 4} for name in keyed]
    assert json.loads(said) == {"dry_run": False, "grown": grown, "written_meanwhile": 0}
    assert json.loads(asked("4", "--json")[1])["grown"] == []
    assert "never shrink" in asked("3")[1]
    # And whoever has the new number goes on, whoever has the old one is told
    stream.ensure(topics.partitions(4))
    with pytest.raises(StreamError, match="has 4 partitions, wanted 2"):
        stream.ensure(topics.partitions(2))
    producer.close()


def retained(broker: Broker, topics: Topics) -> dict[str, str]:
    """What the broker says for how long topics keep what is written to them."""
    admin = KafkaAdminClient(bootstrap_servers=[broker.address])
    asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics.partitions(1)]
    found = admin.describe_configs(asked)
    admin.close()
    kept = (each for names in found.values() for each in names.items())
    return {name: each["retention.ms"]["value"] for name, each in kept}
