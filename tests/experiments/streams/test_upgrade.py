"""Workers of several versions write side by side, and one leader reads them all."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.memory import MemoryStream
from ldfi.experiments.streams.stream import Topics
from ldfi.experiments.streams.wire import HEADERS, ObservationWriter
from tests.experiments.streams.test_wire import HALVES, observation

TOPICS = Topics("test")
WRITTEN = 30
"""By each version: so many make a class."""


def later(value: bytes) -> bytes:
    """As a version to come would write it that adds fields behind the last ones."""
    head, (rows, operations) = (json.loads(line) for line in value.splitlines())
    *fields, outcome, halves = head
    head = [*fields, [*outcome, False, "new"], [*halves, "new"], "new"]
    rows = [[*row, [], "new"] for row in rows]
    shape = [rows, [[*each, "new"] for each in operations], "new"]
    return b"\n".join(json.dumps(line).encode() for line in (head, shape))


def test_in_an_upgrade_nothing_is_dropped_that_can_be_read(tmp_path: Path) -> None:
    # Given workers of before, which name no version, of now, and of a version that only adds
    stream, db = MemoryStream(), Database(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}")
    stream.ensure(TOPICS.partitions(1))
    engine = Engine(db, now=time.time())
    intake, producer = Intake(stream, TOPICS, db, engine), stream.producer()
    writer = ObservationWriter()
    for number in range(1, WRITTEN + 1):  # a trace of zeros is none (W3C Trace Context)
        traces = [f"{number * 3 + which:032x}" for which in range(3)]
        before, now, added = (writer.write(observation(each), HALVES) for each in traces)
        producer.send(TOPICS.observations, traces[0].encode(), before, ())
        producer.send(TOPICS.observations, traces[1].encode(), now, HEADERS)
        producer.send(TOPICS.observations, traces[2].encode(), later(added), HEADERS)
    # And one of a version that means something else
    producer.send(TOPICS.observations, b"x", b"\x00whatever", (("version", b"2"),))
    producer.flush()
    # When a leader of now reads what they write
    intake.take(intake.read(0.0), time.time())
    engine.tick(time.time())
    # Then each counts once, and what it cannot know is a dead letter that says its version
    good = sum(known.traffic.good for known in engine.catalogue.classes.values())
    assert good == 3 * WRITTEN
    assert intake.dropped == {"observation_unreadable": 1}
    intake.read(0.0)
    [letter] = stream.messages(TOPICS.dead_letters)
    assert b"version 2, and this reader knows 1" in dict(letter.headers)["reason"]
    intake.close()
    db.close()
