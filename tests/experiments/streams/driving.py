"""Workers and a leader, driven by hand until something has come about."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.partition import Patience
from ldfi.experiments.streams.stream import Consumer, Message
from ldfi.experiments.streams.worker import Worker

PATIENCE = Patience(quiet=0.4, max_age=5.0, other_half=3.0)
SECONDS = 120.0
"""What is awaited comes at once; a busy machine may take so long."""


def drive(step: Callable[[], object], until: Callable[[], bool], awaited: str) -> None:
    """Take steps until this holds. Raises AssertionError with what was awaited in vain."""
    end = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < end, f"{awaited}: not within {SECONDS:.0f} s"
        step()


def work(worker: Worker, consumer: Consumer, wanted: int) -> list[Message]:
    """Have the worker work until the consumer has read so many messages; return them."""
    found: list[Message] = []

    def step() -> None:
        worker.step(0.05)
        found.extend(consumer.poll(0.05))

    drive(step, lambda: len(found) >= wanted, f"{wanted} messages")
    consumer.close()
    assert len(found) == wanted
    return found


@dataclass(frozen=True, slots=True)
class Leader:
    """The counting side: what reads observations, and what learns from them."""

    engine: Engine
    intake: Intake

    def count(self, worker: Worker, wanted: int) -> None:
        """Take in what the worker writes until so many good requests are counted, and no more."""

        def step() -> None:
            worker.step(0.05)
            self.intake.take(self.intake.read(0.05), time.time())
            self.engine.tick(time.time())

        drive(step, lambda: self.good() >= wanted, f"{wanted} requests counted")
        assert self.good() == wanted

    def good(self) -> int:
        """Return how many good requests the classes have counted."""
        return sum(known.traffic.good for known in self.engine.catalogue.classes.values())
