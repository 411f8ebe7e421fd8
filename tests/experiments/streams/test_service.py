"""The whole service on a stream: spans and device metrics come in over HTTP, each counts once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from deploy.stack.kafka import Broker
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Stream, Topics
from tests.experiments.members import Member, until
from tests.kit.service import GIVEN, bearer, client_of, problem, service
from tests.kit.streams import Piece, produce, request
from tests.scenarios.replayed import TRACE, replayed

PROTOBUF = {"content-type": "application/x-protobuf"}
KEY = b"the same in every life"
VIEWER = bearer(GIVEN["viewer"])


@dataclass
class Site:
    """``ldfi serve`` again and again, on one stream and one database."""

    stream: Stream
    topics: Topics
    url: str
    sent: int = 0

    @contextmanager
    def life(self) -> Iterator[tuple[FastAPI, httpx.Client]]:
        topics: dict[str, Any] = {"stream": self.stream, "topics": self.topics, "partitions": 2}
        app = service(self.url, quiet=0.5, member_key=KEY, **topics)
        with client_of(app, GIVEN["ingest"]) as client:
            yield app, client

    def send(self, client: httpx.Client, count: int) -> None:
        """So many requests: all their spans at once, in no order of traces, then the devices."""
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        traces = [f"{number:032x}" for number in numbers]
        whole = ExportTraceServiceRequest()
        for number in range(3):  # each service sends its spans of all of them
            for trace_id in traces:
                whole.MergeFromString(request(trace_id)[number].value)
        body = whole.SerializeToString()
        taken = client.post("/v1/traces", content=body, headers=PROTOBUF)
        taken.raise_for_status()
        assert taken.content == b""
        metrics = [{"device": t, "trace_id": t, "outcome": "success"} for t in traces]
        reported = client.post("/api/v1/device-metrics", json={"metrics": metrics})
        assert reported.json() == {"accepted": len(traces), "rejected": 0}


@pytest.fixture
def site(stream: Stream, topics: Topics, tmp_path: Path) -> Site:
    return Site(stream, topics, f"sqlite:///{tmp_path / 'ldfi.sqlite3'}", sent=1)


def counted(app: FastAPI) -> int:
    engine: Engine = app.state.engine
    return sum(known.traffic.good for known in engine.catalogue.classes.values())


@pytest.mark.timeout(400)
def test_what_was_taken_counts_once_also_after_a_restart(site: Site) -> None:
    # Given requests over HTTP
    with site.life() as (app, client):
        site.send(client, 25)
        site.send(client, 25)
        until(lambda: counted(app) == 50)
        # When more are taken and the service ends at once
        site.send(client, 20)
    # Then the next life counts them, and none twice
    with site.life() as (app, client):
        until(lambda: counted(app) == 70)
        site.send(client, 10)
        until(lambda: counted(app) == 80)


def test_telemetry_is_refused_while_the_brokers_are_away(topics_in_memory: Site) -> None:
    site = topics_in_memory
    with site.life() as (_, client):
        assert isinstance(site.stream, MemoryStream)
        site.stream.down = True
        body = request(f"{7:032x}")[0].value
        refused = client.post("/v1/traces", content=body, headers=PROTOBUF)
        assert problem(refused) == "stream-unavailable"
        assert refused.headers["retry-after"] == "2"
        site.stream.down = False
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).is_success


@pytest.fixture
def topics_in_memory(tmp_path: Path) -> Site:
    return Site(MemoryStream(), Topics("test"), f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")


def test_traces_as_json_become_messages_by_trace(topics_in_memory: Site) -> None:
    site = topics_in_memory
    span = {"spanId": "eee19b7ec3c1b174", "name": "GET /", "kind": 2, "startTimeUnixNano": "1"}
    good = [{**span, "traceId": f"{number:032x}"} for number in (1, 2, 1)]
    bad = [{**span, "traceId": "zz"}, {**span, "traceId": f"{3:032x}", "spanId": ""}]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [*good, *bad]}]}]}
    with site.life() as (_, client):
        headers = {"content-type": "application/json"}
        answer = client.post("/v1/traces", content=json.dumps(document), headers=headers)
        assert answer.json()["partialSuccess"]["rejectedSpans"] == "2"
        assert isinstance(site.stream, MemoryStream)
        messages = site.stream.messages(site.topics.spans)
    keys = [message.key for message in messages]
    assert sorted(key.decode() for key in keys if key) == [f"{1:032x}", f"{2:032x}"]


def test_a_request_that_was_replayed_is_found_behind_the_stream(topics_in_memory: Site) -> None:
    # Given a request that an engineer replayed: no device will ever tell how it went
    with topics_in_memory.life() as (app, client):
        client.post("/v1/traces", json=replayed("api>http:GET:layout/")).raise_for_status()
        # When its spans have passed through a worker
        until(lambda: client.get(f"/api/v1/replays/{TRACE}", headers=VIEWER).is_success)
        # Then there is what became of it
        found = client.get(f"/api/v1/replays/{TRACE}", headers=VIEWER).json()
        assert found["fired"] == ["error@api>http:GET:layout/"]
        # And it is evidence of nothing
        engine: Engine = app.state.engine
        assert (engine.outcomes, counted(app), sum(engine.drops().values())) == (0, 0, 0)


@pytest.mark.servers
@pytest.mark.timeout(400)
def test_a_worker_says_how_far_behind_it_is_and_ends_well(broker: Broker, tmp_path: Path) -> None:
    # Given a worker by itself
    topics = Topics(broker.prefix())
    options = {
        "LDFI_KAFKA": broker.address,
        "LDFI_KAFKA_PREFIX": topics.prefix,
        "LDFI_KAFKA_PARTITIONS": "2",
        "LDFI_QUIET": "0.3",
    }
    worker = Member("ingest", tmp_path, options)
    worker.start()
    try:
        until(lambda: worker.ready() == 200)
        assert worker.ask("GET", "/metrics", "edge").status_code == 403
        # When a request and a message that is none come in
        none = Piece("spans", "no id", b"no spans")
        produce(KafkaStream([broker.address]), topics, [*request(f"{1:032x}"), none])
        # Then it says so
        until(lambda: "ldfi_ingest_observations_total 1.0" in worker.metrics())
        until(lambda: "ldfi_ingest_lag_messages 0.0" in worker.metrics())
        assert "ldfi_ingest_dead_letters_total 1.0" in worker.metrics()
        assert "ldfi_ingest_partitions 2.0" in worker.metrics()
        assert "ldfi_ingest_ready 1.0" in worker.metrics()
        # And it ends well
        assert worker.stop() == 0
    finally:
        worker.kill()
