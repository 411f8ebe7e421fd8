"""Messages that nobody can read, and workers that fail: the rest goes on."""

from __future__ import annotations

import json

import pytest

from ldfi.experiments.cluster.ingest import Ingest
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Message, Stream, Topics
from ldfi.experiments.streams.wire import write_outcome
from ldfi.experiments.streams.worker import Worker
from tests.experiments.members import until
from tests.experiments.streams.conftest import Lead
from tests.experiments.streams.driving import PATIENCE, drive, work
from tests.kit.streams import produce, request, traffic

KEY = ("ab" * 16).encode()
POISON = {
    "a null value": None,
    "brackets without end": b"[" * 20_000,
    "a number beyond all bounds": json.dumps(
        {"trace_id": "ab" * 16, "device": "d", "member": "m", "success": True, "duration": 10**400}
    ).encode(),
    "half of a character": json.dumps(
        {"trace_id": "\ud800", "device": "d", "member": "m", "success": True}
    ).encode(),
}


TOPICS = Topics("test")


def send(stream: Stream, topic: str, value: bytes | None, key: bytes = KEY) -> None:
    producer = stream.producer()
    producer.send(topic, key, value)  # type: ignore[arg-type] # others may write what we do not
    producer.flush()
    producer.close()


def letters(stream: Stream, topics: Topics, wanted: int, worker: Worker) -> list[Message]:
    return work(worker, stream.reader(topics.dead_letters, {}), wanted)


def observed(worker: Worker) -> None:
    """Have it work until it has observed a request, and no other."""
    drive(lambda: worker.step(0.05), lambda: bool(worker.seen.observations), "an observation")
    assert worker.seen.observations == 1


@pytest.mark.parametrize("stream", ["memory"], indirect=True)
@pytest.mark.parametrize("half", ["spans", "metrics"])
@pytest.mark.parametrize("poison", POISON)
def test_a_message_that_cannot_be_read_is_one_dead_letter_and_nothing_more(
    stream: Stream, topics: Topics, worker: Worker, half: str, poison: str
) -> None:
    # Given poison in front of and behind a good request of the same partition
    topic = topics.spans if half == "spans" else topics.metrics
    send(stream, topic, POISON[poison])
    produce(stream, topics, request(KEY.decode()))
    send(stream, topic, POISON[poison])
    # When they are read
    found = letters(stream, topics, 2, worker)
    # Then each is a dead letter that says why, and the request gets through
    assert len(found) == worker.seen.dead_letters == 2
    assert all(dict(letter.headers)["reason"] for letter in found)
    observed(worker)


def test_nothing_is_lost_when_dead_letters_cannot_be_written() -> None:
    # Given a stream whose producers fail for a while, in memory
    stream = MemoryStream()
    stream.ensure(TOPICS.partitions(1))
    worker = Worker(stream, TOPICS, PATIENCE)
    worker.step()
    send(stream, TOPICS.metrics, b"[" * 20_000)
    produce(stream, TOPICS, request(KEY.decode()))
    kept = stream._logs.pop(TOPICS.dead_letters)
    # When the poison is read and cannot be put away
    worker.step()
    stream._logs[TOPICS.dead_letters] = kept
    # Then it is put away later, once, and what came behind it is counted
    letters(stream, TOPICS, 1, worker)
    observed(worker)
    assert len(stream.messages(TOPICS.dead_letters)) == 1
    worker.close()


def test_a_letter_with_a_long_key_fits(stream: Stream, topics: Topics, worker: Worker) -> None:
    outcome = Outcome("y" * 300_000, "d", "m", True)
    send(stream, topics.metrics, write_outcome(outcome), key=b"x" * 300_000)
    [letter] = letters(stream, topics, 1, worker)
    assert len(letter.key or b"") + sum(len(value) for _, value in letter.headers) < 10_000


def test_a_worker_that_fails_gives_its_partitions_back() -> None:
    # Given an ingest whose first worker fails of something that nobody thought of
    stream = MemoryStream()
    stream.ensure(TOPICS.partitions(4))
    made: list[Worker] = []

    def make() -> Worker:
        worker = Worker(stream, TOPICS, PATIENCE)
        if not made:
            worker._watch = _fail  # type: ignore[method-assign]
        made.append(worker)
        return worker

    ingest = Ingest(make)
    ingest.start()
    # Then the next one has all partitions and works
    try:
        produce(stream, TOPICS, request(KEY.decode()))
        until(lambda: len(made) > 1 and made[1].seen.observations == 1)
        assert made[1].seen.partitions == 4
        assert ingest.ready()
    finally:
        ingest.stop()


def _nothing(seconds: float) -> list[Message]:
    return []


def _fail(now: float) -> None:
    raise MemoryError(f"at {now}")


def test_a_worker_without_partitions_is_not_ready() -> None:
    # Given more workers than partitions
    stream = MemoryStream()
    stream.ensure(TOPICS.partitions(1))
    ingests = [Ingest(lambda: Worker(stream, TOPICS, PATIENCE)) for _ in range(2)]
    # Memory's groups know no threads: one begins after the other
    try:
        ingests[0].start()
        until(ingests[0].ready)
        ingests[1].start()
        until(lambda: ingests[1].worker is not None)
        until(lambda: sorted(each.ready() for each in ingests) == [False, True])
    finally:
        for each in ingests:
            if each.worker is not None:
                each.stop()


def test_a_worker_that_gets_nowhere_is_not_ready() -> None:
    # Given a worker that has nothing to do
    now = [0.0]
    stream = MemoryStream()
    stream.ensure(TOPICS.partitions(1))
    worker = Worker(stream, TOPICS, PATIENCE, clock=lambda: now[0])
    for _ in range(5):
        now[0] += 10
        worker.step()
    assert worker.stalled() == 0
    # When messages wait and it does not come to them
    produce(stream, TOPICS, [p for pieces, _ in zip(traffic(), range(3)) for p in pieces])  # noqa: B905
    read, worker._consumer.poll = worker._consumer.poll, _nothing  # type: ignore[method-assign]
    for _ in range(5):
        now[0] += 10
        worker.step()
    # Then it says for how long
    assert worker.stalled() == 50
    worker._consumer.poll = read  # type: ignore[method-assign]
    now[0] += 10
    worker.step()
    worker.step()
    assert worker.stalled() <= 10


def test_the_intake_buries_what_it_cannot_take_and_goes_on(
    stream: Stream, topics: Topics, worker: Worker, lead: Lead
) -> None:
    # Given good observations among some that are none
    leader = lead()
    for poison in POISON.values():
        send(stream, topics.observations, poison)
    many = [pieces for pieces, _ in zip(traffic(), range(40), strict=False)]
    produce(stream, topics, [piece for pieces in many for piece in pieces])
    # When the leader takes them in, then the good ones count, and the others are dead letters
    leader.count(worker, 40)
    assert leader.intake.dropped["observation_unreadable"] == len(POISON)
    leader.intake.read(0.05)
    letters(stream, topics, len(POISON), worker)
    leader.intake.close()


@pytest.mark.parametrize("stream", ["memory"], indirect=True)
def test_an_observation_that_the_engine_refuses_holds_up_nothing(
    stream: Stream, topics: Topics, worker: Worker, lead: Lead, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an engine that chokes on one request
    leader = lead()
    many = [pieces for pieces, _ in zip(traffic(), range(40), strict=False)]
    chokes = many[3][0].trace_id
    taken = leader.engine.receive_observation

    def receive(observation, now, at):  # type: ignore[no-untyped-def]
        if observation.lineage.trace_id == chokes:
            raise RecursionError("too deep")
        taken(observation, now, at)

    monkeypatch.setattr(leader.engine, "receive_observation", receive)
    produce(stream, topics, [piece for pieces in many for piece in pieces])
    # When they are taken in, then all others count, and it is a dead letter
    leader.count(worker, 39)
    assert leader.intake.dropped["observation_refused"] == 1
    leader.intake.read(0.0)
    letters(stream, topics, 1, worker)
    leader.intake.close()
