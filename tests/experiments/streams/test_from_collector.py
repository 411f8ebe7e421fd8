"""What the Collector writes to Kafka is what an ingest worker takes it for."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.partitioner import murmur2

from deploy.stack import kafka
from deploy.stack.collector import ONLY_KAFKA
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.stream import Topics
from ldfi.lineage.readers.otlp import decode_protobuf
from tests.deploy.collectors import running, send, traces

pytestmark = pytest.mark.servers

PARTITIONS = 5


@pytest.mark.timeout(400)
def test_spans_are_keyed_and_placed_by_their_trace(broker: kafka.Broker, tmp_path: Path) -> None:
    # Given the topics as the service makes them, and a Collector that writes to them
    topics, sent = Topics(broker.prefix()), traces(7, 30)
    KafkaStream([broker.address]).ensure(topics.partitions(PARTITIONS))
    variables = {"KAFKA_BROKERS": broker.address, "KAFKA_TOPIC": topics.spans}
    found, placed, marked = Counter[str](), dict[str, int](), Counter[str]()
    with running(tmp_path / "log", ONLY_KAFKA, DECISION_WAIT="1s", **variables) as url:
        # When requests under experiment come in
        send(url, sent, fit_experiment="e1", fit_arm="treatment")
        consumer = KafkaConsumer(
            topics.spans, bootstrap_servers=[broker.address], auto_offset_reset="earliest"
        )
        end = time.monotonic() + 60
        while sum(found.values()) < 3 * len(sent) and time.monotonic() < end:
            for message in (m for batch in consumer.poll(500).values() for m in batch):
                key = message.key.decode()
                # Then every message is of one trace, its key is the trace's id in hexadecimal
                spans = decode_protobuf(message.value).spans
                assert {span.trace_id for span in spans} == {key}
                found[key] += len(spans)
                marked.update(key for span in spans if span.operation.experiment == "e1")
                placed[key] = message.partition
        consumer.close()
    # And its partition is the one that Kafka's own hash of the key says
    assert found == dict.fromkeys(sent, 3)
    assert marked == dict.fromkeys(sent, 1), "what stands on spans is not understood"
    assert placed == {key: (murmur2(key.encode()) & 0x7FFFFFFF) % PARTITIONS for key in sent}
    assert len(set(placed.values())) == PARTITIONS
