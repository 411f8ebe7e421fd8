"""From messages to observations: in memory, and on Kafka."""

from __future__ import annotations

import json
from dataclasses import replace

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.stream import Stream, Topics
from ldfi.experiments.streams.wire import ObservationReader
from ldfi.experiments.streams.worker import Worker
from ldfi.testing.world import World
from tests.experiments.streams.driving import PATIENCE, drive, work
from tests.kit.streams import Piece, produce, request, traffic


def test_both_halves_become_an_observation(stream: Stream, topics: Topics, worker: Worker) -> None:
    # Given requests in several messages, some with the device's report first
    many = [pieces for pieces, _ in zip(traffic(), range(50), strict=False)]
    mixed = [piece for number, pieces in enumerate(many) for piece in pieces[:: (-1) ** number]]
    produce(stream, topics, mixed)
    # When a worker reads them
    found = work(worker, stream.reader(topics.observations, {}), 50)
    # Then each has become one observation with all there is to know of it
    read = ObservationReader()
    observations = [read.read(message.value).observation for message in found]
    assert {o.lineage.trace_id for o in observations} == {each[0].trace_id for each in many}
    points = {f"api>http:GET:{callee}/{callee}" for callee in ("ratings", "titles")}
    assert all(o.lineage.support == points for o in observations)
    assert all(o.outcome.device == f"device of {o.lineage.trace_id}" for o in observations)
    assert worker.seen.spans == 50 * 5
    assert worker.seen.observations == 50


def test_unfinished_requests_are_read_again(stream: Stream, topics: Topics, worker: Worker) -> None:
    # Given finished requests around one whose device has not reported
    many = [pieces for pieces, _ in zip(traffic(), range(30), strict=False)]
    waiting = many[10].pop()
    produce(stream, topics, [piece for pieces in many for piece in pieces])
    work(worker, stream.reader(topics.observations, {}), 29)
    # When that worker is gone and another one begins
    worker.close()
    other = Worker(stream, topics, PATIENCE)
    produce(stream, topics, [waiting])
    # Then it finds the spans of that request again
    ids: set[str] = set()
    reader, read = stream.reader(topics.observations, {}), ObservationReader()

    def step() -> None:
        other.step(0.05)
        ids.update(
            read.read(message.value).observation.lineage.trace_id for message in reader.poll(0.05)
        )

    drive(step, lambda: waiting.trace_id in ids, "the request that was not finished")
    reader.close()
    other.close()


def test_the_unreadable_are_dead_letters(stream: Stream, topics: Topics, worker: Worker) -> None:
    # Given two requests among rubbish
    [*spans, metric] = request("ab" * 16)
    key = spans[0].key
    other = request("cd" * 16)[0]
    producer = stream.producer()
    producer.send(topics.spans, key, b"\xffrubbish")
    producer.send(topics.metrics, key, b"{}")
    producer.send(topics.metrics, key, json.dumps([1]).encode())
    producer.send(topics.spans, None, spans[0].value)
    producer.send(topics.spans, key, spans[0].value + other.value)  # merges: two traces in one
    producer.flush()
    producer.close()
    produce(stream, topics, [*spans, metric])
    # When they are read
    work(worker, stream.reader(topics.observations, {}), 1)
    # Then the good one gets through, and the rest says why it does not
    letters = work(worker, stream.reader(topics.dead_letters, {}), 5)
    reasons = sorted(dict(letter.headers)["reason"].decode() for letter in letters)
    others = ("its key is None", "no device metric", "no device metric", "spans of several traces")
    assert [each[:12] for each in reasons] == sorted(each[:12] for each in (reasons[0], *others))
    assert worker.seen.dead_letters == 5
    assert all(dict(letter.headers)["from"].startswith(b"test") for letter in letters)


def test_a_cut_trace_is_told_to_the_leader(stream: Stream, topics: Topics, worker: Worker) -> None:
    # Given a treated request whose root is lost, and an experiment that is running
    with World.in_memory() as world:
        world.start(Settings(kinds=("error",), min_traffic=50, follow=0.0))
        experiment_id = world.until_armed()
        _, experiment = world.engine.scheduler.state.experiment(experiment_id)
        [_, inner, *_] = request("ab" * 16, experiment=experiment_id)
        whole = request("cd" * 16)
        produce(stream, topics, [_under(inner, experiment_id), *whole])
        # When a worker gives it up
        intake = Intake(stream, topics, world.database, world.engine)

        def step() -> None:
            worker.step(0.05)
            intake.take(intake.read(0.05), world.now)

        drive(step, lambda: bool(experiment.cut), "a trace that was cut")
        intake.close()
    # Then the experiment knows, once
    assert experiment.cut == 1
    assert worker.drops()["trace_without_root"] == 1


def _under(piece: Piece, experiment: str) -> Piece:
    """The same spans, marked as a service does that a request under experiment enters."""
    body = ExportTraceServiceRequest.FromString(piece.value)
    for span in body.resource_spans[0].scope_spans[0].spans:
        for key, value in {"fit.experiment": experiment, "fit.arm": "treatment"}.items():
            span.attributes.add(key=key).value.string_value = value
    return replace(piece, value=body.SerializeToString())
