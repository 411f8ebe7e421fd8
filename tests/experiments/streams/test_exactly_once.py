"""Whatever happens to workers, broker and scheduler, every acknowledged request is counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete

from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow, ClassRow, PositionRow
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.partition import Patience
from ldfi.experiments.streams.stream import Topics
from ldfi.experiments.streams.worker import Worker
from ldfi.lineage.classes import entry_features
from tests.kit.streams import Piece, request

TOPICS = Topics("test")
PATIENCE = Patience(quiet=2.0, max_age=20.0, other_half=10.0)
TICK = 0.5
PATHS = ("/home", "/search")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path_factory.mktemp('streams') / 'ldfi.sqlite3'}")
    yield opened
    opened.close()


class Killed(Exception):  # noqa: N818
    """The process is no more."""


class Mortal(Worker):
    """A worker that may be killed between any two things that it does to the stream."""

    dies_before = ""

    def _write(self) -> bool:
        self._die("write")
        done = super()._write()
        self._die("commit")
        return done

    def _die(self, before: str) -> None:
        if self.dies_before == before:
            raise Killed


class Site:
    """Producers, a stream, two workers, a scheduler: all may fail, the stream keeps what it has."""

    def __init__(self, db: Database, floor: int) -> None:
        self.now = 1_800_000_000.0
        self.stream = MemoryStream(lambda: self.now)
        self.stream.ensure(TOPICS.partitions(3))
        self.producer = self.stream.producer()
        self.workers = [self.worker(), self.worker()]
        self.pending: list[Piece] = []
        self.produced: Counter[str] = Counter()
        self._floor = floor
        self._db = db
        self._ids = count(1)
        with db.change(self.now) as change:
            for table in (AuditRow, ClassRow, PositionRow):
                change.session.execute(delete(table))
        self.restart()

    def worker(self) -> Mortal:
        return Mortal(self.stream, TOPICS, PATIENCE, clock=lambda: self.now)

    def restart(self) -> None:
        """The scheduler is killed, and starts again from what is on record, if it reaches it."""
        if self.stream.down:
            return
        self.engine = Engine(self._db, now=self.now)
        self.intake = Intake(self.stream, TOPICS, self._db, self.engine, self._floor)

    def produce(self, path: str, order: list[int]) -> None:
        """A request: its pieces come in any order, between those of others."""
        pieces = request(f"{next(self._ids):032x}", path)
        self.pending += [pieces[each] for each in order]
        self.produced[path] += 1

    def send(self, pieces: int) -> None:
        """Write some pieces; what is not acknowledged is written again later."""
        for _ in range(min(pieces, len(self.pending))):
            piece = self.pending[0]
            topic = TOPICS.spans if piece.half == "spans" else TOPICS.metrics
            if self.stream.down:
                return
            self.producer.send(topic, piece.key, piece.value)
            self.pending.pop(0)

    def tick(self) -> None:
        """Time passes; what services had to say they have said by then, if they could."""
        self.send(len(self.pending))
        self.now += TICK

    def step(self, which: int, dies_before: str = "") -> None:
        self.workers[which].dies_before = dies_before
        try:
            self.workers[which].step(0)
        except Killed:
            self.kill(which)

    def live(self, rounds: int) -> None:
        """Some time in which nothing happens to anybody."""
        for _ in range(rounds):
            self.tick()
            for which in (0, 1):
                self.step(which)
            self.count()

    def kill(self, which: int) -> None:
        self.workers[which]._consumer.die()  # type: ignore[attr-defined]
        self.workers[which] = self.worker()

    def replace(self, which: int) -> None:
        """A worker is stopped properly."""
        if not self.stream.down:
            self.workers[which].close()
            self.workers[which] = self.worker()

    def broker(self) -> None:
        """The broker goes away, or comes back."""
        self.stream.down = not self.stream.down

    def keep(self) -> None:
        self.intake.keep(self.now)

    def count(self) -> None:
        if not self.stream.down:
            self.intake.take(self.intake.read(0), self.now)
            self.engine.scheduler.advance(self.now)

    def settle(self) -> None:
        """Live on until nobody waits for anything, and a little longer."""
        self.stream.down = False
        for _ in range(80):
            self.live(1)
            if not any(worker.seen.lag + worker.seen.open for worker in self.workers):
                break
        self.live(5)

    def counted(self) -> Counter[str]:
        """What the classes have counted, and the samples of those entries that have none yet."""
        found: Counter[str] = Counter()
        for known in self.engine.catalogue.classes.values():
            [path] = [c.value for c in known.predicate.conditions if c.feature == "path"]
            found[str(path)] += known.traffic.good
        for where, entry in self.engine.catalogue._entries.items():
            if not entry.classes:
                found[entry_features(where)["path"]] += entry.requests
        return found


WHICH = st.integers(0, 1)
PRODUCE = st.tuples(st.just("produce"), st.sampled_from(PATHS), st.permutations(range(4)))
STEPS = st.one_of(
    PRODUCE,
    PRODUCE,
    st.tuples(st.just("send"), st.integers(1, 6)),
    st.tuples(st.just("live"), st.integers(1, 6)),
    st.tuples(st.just("live"), st.integers(1, 6)),
    st.tuples(st.just("tick")),
    st.tuples(st.just("step"), WHICH, st.sampled_from(["", "write", "commit"])),
    st.tuples(st.just("step"), WHICH, st.sampled_from(["", "write", "commit"])),
    st.tuples(st.just("kill"), WHICH),
    st.tuples(st.just("replace"), WHICH),
    st.tuples(st.just("broker")),
    st.tuples(st.just("keep")),
    st.tuples(st.just("restart")),
)


@given(steps=st.lists(STEPS, min_size=10, max_size=60), floor=st.sampled_from([0, 5, 1000]))
def test_every_acknowledged_request_is_counted_once(
    db: Database, steps: list[tuple[object, ...]], floor: int
) -> None:
    # Given a site where traffic has already made one class, and one path is too rare for that
    site = Site(db, floor)
    for _ in range(25):
        site.produce("/home", [0, 1, 2, 3])
    # When anything happens in any order
    for name, *arguments in steps:
        getattr(site, str(name))(*arguments)
    # Then in the end everything is counted, once
    site.settle()
    assert site.counted() == site.produced
    # and a scheduler that starts from what is on record gets to the same
    site.restart()
    site.settle()
    assert site.counted() == site.produced
    assert sum(worker.seen.lag + worker.seen.open for worker in site.workers) == 0
