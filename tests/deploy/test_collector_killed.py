"""SIGKILL to a Collector whose destination is away: what it had judged arrives all the same."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from kafka import KafkaConsumer

from deploy.stack import kafka
from deploy.stack.collector import FOLDER, ONLY_KAFKA, Collector
from deploy.stack.collector import running as collecting
from deploy.stack.missing import Missing
from ldfi.cli.ports import free_port
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.stream import Topics
from ldfi.lineage.readers.otlp import decode_protobuf
from tests.deploy.collectors import send, traces
from tests.deploy.programs import collector
from tests.deploy.sink import Sink, listening, until
from tests.kit import needs

pytestmark = pytest.mark.servers

ONLY_LDFI = "yaml:service::pipelines::traces::exporters: [otlp_http/ldfi]"
KEPT = re.compile(r"^otelcol_processor_tail_sampling_global_count_traces_sampled\S*\{(.*)\} (\S+)$")
SENT = traces(9, 200)


def kept(started: Collector) -> float:
    """How many traces it has decided to keep since its start."""
    text = httpx.get(f"http://127.0.0.1:{started.metrics}/metrics", trust_env=False).text
    found = [KEPT.match(line) for line in text.splitlines()]
    return sum(float(each[2]) for each in found if each and 'sampled="true"' in each[1])


def judge_and_die(started: Collector) -> None:
    """It takes traces, judges them, can send them nowhere, and is killed."""
    send(started.url, SENT, fit_experiment="e1", fit_arm="treatment")
    until(lambda: kept(started) == len(SENT), 30)
    time.sleep(0.5)  # from its judgement into the queue
    started.kill()


def test_what_waits_for_the_service_outlives_the_collector(tmp_path: Path) -> None:
    # Given a Collector whose service is away, with traces in its queue
    collector()
    sink, port = Sink(), free_port()
    overlay = str(FOLDER / "without-kafka.yaml")
    variables = {
        "LDFI_ENDPOINT": f"http://127.0.0.1:{port}",
        "LDFI_INGEST_TOKEN": "ingest-0123456789abcdef",
        "DECISION_WAIT": "1s",
    }
    with collecting(tmp_path / "log", overlay, ONLY_LDFI, **variables) as started:
        # When it is killed, twice, and the service comes back
        judge_and_die(started)
        started.start()
        started.ready()
        started.kill()
        started.start()
        with listening(sink, port):
            # Then it gets every span that the first Collector had taken
            until(lambda: len(sink.spans) == len(SENT), 30)
    assert dict(sink.spans) == dict.fromkeys(SENT, 3)


@contextmanager
def broker_to_be() -> Iterator[kafka.Broker]:
    """A broker that nobody has started yet; skipped where there can be none, but never in CI."""
    folder = Path(tempfile.mkdtemp(prefix="ldfi-kafka-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            broker = kafka.Broker(kafka.installed(), folder)
        except Missing as error:
            needs.lacking(str(error))
        broker.prepare()
        stack.callback(broker.kill)
        yield broker


@pytest.mark.timeout(400)
def test_what_waits_for_kafka_outlives_the_collector(tmp_path: Path) -> None:
    # Given a Collector whose Kafka is away, with traces in its queue
    collector()
    topics = Topics("killed")
    found = Counter[str]()
    with broker_to_be() as broker:
        variables = {
            "KAFKA_BROKERS": broker.address,
            "KAFKA_TOPIC": topics.spans,
            "DECISION_WAIT": "1s",
        }
        with collecting(tmp_path / "log", ONLY_KAFKA, **variables) as started:
            # When it is killed and both come back
            judge_and_die(started)
            broker.start()
            broker.ready()
            KafkaStream([broker.address]).ensure(topics.partitions(2))
            started.start()
            consumer = KafkaConsumer(
                topics.spans, bootstrap_servers=[broker.address], auto_offset_reset="earliest"
            )
            end = time.monotonic() + 60
            while len(found) < len(SENT) and time.monotonic() < end:
                for message in (m for batch in consumer.poll(500).values() for m in batch):
                    spans = decode_protobuf(message.value).spans
                    found.update(span.trace_id for span in spans)
            consumer.close()
    # Then Kafka holds every span that the first Collector had taken
    assert found == dict.fromkeys(SENT, 3)
