"""``make soak-streams``: kill ingest workers and the broker while requests pour in, and count.

    python -m soak.streams --kills 30

The producer keeps an account of what Kafka has acknowledged. When everything has come to rest, the
classes must have counted exactly that. Exit status 1 where they have not, 2 where something is
missing.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from deploy.stack import kafka
from deploy.stack.kafka import Broker
from deploy.stack.missing import Missing
from ldfi.cli import exits
from ldfi.cli.ports import free_port
from ldfi.cli.processes import ATTACHED
from ldfi.errors import StreamError
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.stream import Topics
from soak.rounds import say
from tests.kit.streams import Piece, request

PATHS = ("/home", "/search", "/titles/similar")
PARTITIONS = 4
QUIET = 3.0


@dataclass
class IngestProcess:
    """``ldfi serve --role ingest``, killed without a word and started again."""

    broker: Broker
    topics: Topics
    folder: Path
    number: int
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {
            "LDFI_KAFKA": self.broker.address,
            "LDFI_KAFKA_PREFIX": self.topics.prefix,
            "LDFI_KAFKA_PARTITIONS": f"{PARTITIONS}",
            "LDFI_QUIET": f"{QUIET}",
            "LDFI_PORT": f"{free_port()}",
            ATTACHED: "1",
        }
        serve = [sys.executable, "-m", "ldfi.cli", "serve", "--role", "ingest"]
        with (self.folder / f"ingest{self.number}.log").open("ab") as log:
            self._process = subprocess.Popen(
                serve,
                env={**os.environ, **options},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, "it has ended by itself: see its log"
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


@dataclass
class Producer:
    """Writes requests in pieces, and keeps an account of those that are acknowledged as a whole.

    A piece that is not acknowledged is written again, as the Collector does it.
    """

    stream: KafkaStream
    topics: Topics
    rate: int
    acknowledged: Counter[str] = field(default_factory=Counter)
    rewritten: int = 0
    wrong: BaseException | None = None
    _serial: int = 0

    def run(self, stopped: Callable[[], bool]) -> None:
        try:
            chance = random.Random(7)
            producer = self.stream.producer()
            begun = time.monotonic()
            while not stopped():
                batch = [self._new(chance) for _ in range(max(1, self.rate // 20))]
                pieces = [piece for _, each in batch for piece in each]
                chance.shuffle(pieces)
                self._write(producer, pieces)
                self.acknowledged.update(path for path, _ in batch)
                behind = self._serial / self.rate - (time.monotonic() - begun)
                time.sleep(max(0.0, behind))
            producer.close()
        except BaseException as error:  # noqa: BLE001 - told by whoever joins the thread
            self.wrong = error

    def _new(self, chance: random.Random) -> tuple[str, list[Piece]]:
        self._serial += 1
        path = chance.choice(PATHS)
        return path, request(f"{self._serial:032x}", path)

    def _write(self, producer: object, pieces: list[Piece]) -> None:
        while True:
            try:
                for piece in pieces:
                    topic = self.topics.spans if piece.half == "spans" else self.topics.metrics
                    producer.send(topic, piece.key, piece.value)  # type: ignore[attr-defined]
                producer.flush()  # type: ignore[attr-defined]
            except StreamError:
                self.rewritten += 1
            else:
                return


@dataclass
class Scheduler:
    """The counting side: killed by forgetting everything that is not on record."""

    stream: KafkaStream
    topics: Topics
    db: Database
    engine: Engine = field(init=False)
    intake: Intake = field(init=False)

    def start(self) -> None:
        self.engine = Engine(self.db, now=time.time())
        self.intake = Intake(self.stream, self.topics, self.db, self.engine)

    def step(self) -> None:
        try:
            messages = self.intake.read(0.1)
        except StreamError:
            return
        self.intake.take(messages, time.time())
        self.engine.scheduler.advance(time.time())

    def counted(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for known in self.engine.catalogue.classes.values():
            [path] = [c.value for c in known.predicate.conditions if c.feature == "path"]
            found[str(path)] += known.traffic.good
        return found


@dataclass
class Assault:
    """``kills``: of a worker and of the broker, so many each. ``life``: seconds between two."""

    broker: Broker
    folder: Path
    kills: dict[str, int]
    life: tuple[float, float]
    rate: int = 100
    seed: int = 0
    say: Callable[[str], None] = lambda _line: None

    def run(self) -> tuple[Counter[str], Counter[str], str]:
        """Kill as planned; return what was acknowledged, what was counted, and a summary."""
        topics, stream = Topics(self.broker.prefix()), KafkaStream([self.broker.address])
        stream.ensure(topics.partitions(PARTITIONS))
        db = Database(f"sqlite:///{self.folder / 'ldfi.sqlite3'}")
        scheduler = Scheduler(stream, topics, db)
        scheduler.start()
        workers = [IngestProcess(self.broker, topics, self.folder, n) for n in (0, 1)]
        producer, stopped = Producer(stream, topics, self.rate), threading.Event()
        thread = threading.Thread(target=producer.run, args=(stopped.is_set,))
        for worker in workers:
            worker.start()
        thread.start()
        try:
            self._kill(workers, scheduler)
            stopped.set()
            self._live(scheduler, 0.1)
            thread.join(120)
            if producer.wrong is not None:
                raise producer.wrong
            self._settle(scheduler, producer.acknowledged)
        finally:
            stopped.set()
            for worker in workers:
                worker.kill()
            scheduler.intake.close()
            db.close()
        told = f"{producer.rewritten} writes repeated, {scheduler.intake.dropped} left out"
        return producer.acknowledged, scheduler.counted(), told

    def _kill(self, workers: list[IngestProcess], scheduler: Scheduler) -> None:
        chance = random.Random(self.seed)
        victims = [name for name, count in self.kills.items() for _ in range(count)]
        chance.shuffle(victims)
        self._live(scheduler, 8.0)
        for number, victim in enumerate(victims):
            self._live(scheduler, chance.uniform(*self.life))
            self.say(
                f"{number + 1} of {len(victims)}: {victim}; {sum(scheduler.counted().values())}"
            )
            if victim == "broker":
                self.broker.kill()
                self.broker.start()
                self._live(scheduler, 1.0)
                self.broker.ready()
            elif victim == "scheduler":
                scheduler.intake.close()
                scheduler.start()
            else:
                worker = chance.choice(workers)
                worker.kill()
                worker.start()

    def _live(self, scheduler: Scheduler, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            scheduler.step()

    def _settle(self, scheduler: Scheduler, wanted: Counter[str]) -> None:
        """Wait until everything is counted, and then some more: nothing may come twice."""
        end = time.monotonic() + 120.0
        while scheduler.counted() != wanted and time.monotonic() < end:
            scheduler.step()
        self._live(scheduler, 3.0)


def main() -> int:
    """Kill each victim as often as asked for."""
    parser = argparse.ArgumentParser(prog="python -m soak.streams")
    parser.add_argument("--kills", type=int, default=30, help="of each victim; default: 30")
    kills = dict.fromkeys(("worker", "broker", "scheduler"), parser.parse_args().kills)
    try:
        with kafka.running() as broker, tempfile.TemporaryDirectory(prefix="ldfi-soak-") as folder:
            assault = Assault(broker, Path(folder), kills, (1.0, 8.0), say=say)
            acknowledged, counted, told = assault.run()
    except Missing as error:
        say(str(error))
        return exits.USAGE
    say(f"{acknowledged.total()} requests acknowledged, {counted.total()} counted; {told}")
    return int(counted != acknowledged)


if __name__ == "__main__":
    sys.exit(main())
