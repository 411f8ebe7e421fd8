"""``python -m benchmarks.years [--json]``: three years of 500 experiments a day, and what is left.

The database is filled by the store's own functions, each experiment armed, moved and ended as the
service does it, and pruned once a month with the defaults. What the experiments saw is not made up:
a campaign with a schedule is run in a small world (:mod:`ldfi.testing.world`), and what its first
run, and the runs after that, put on record is put on record over and over, under the names of many
classes. Now and then a class changes, and is explored anew.

Then a service starts, and whatever pages, metrics, the gate and the next experiment ask is asked.
SQLite, in a file; ``--postgresql URL`` for an empty database of another. Time is compressed: the
clock that is told is that of the years.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy import event, text

from benchmarks.outcome import Target, at_least, at_most, say
from ldfi.experiments.control import folding
from ldfi.experiments.control.engine import Engine
from ldfi.experiments.control.evidence import knowledge_of
from ldfi.experiments.domain.campaign.calendar import Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.campaign.exploration import FindingChange
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.campaign.recording import proved
from ldfi.experiments.domain.campaign.run import Runs
from ldfi.experiments.domain.gates.facts import Facts
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.process.config import Config
from ldfi.experiments.store import campaigns, checkpoints, classes, experiments, notifications
from ldfi.experiments.store.arming import Armed, Order, arm
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.evidence_file import Certified, evidence_file
from ldfi.experiments.store.measured import of_database
from ldfi.experiments.store.retention import Retention, prune
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import QUICK, World

DAY = 86_400.0
BEGAN = 1_700_000_000.0
A_DAY = 500
CLASSES = 20
CHANGES = 90
"""Days after which a class changes."""
MONTH = 30
WIDE = Limits(max_concurrent=10**6, members_per_hour=10**9, members_per_day=10**9)
KEPT = Config.model_fields

PROGRAM = Call(
    "root",
    (
        Step("optional", (Call("ratings"),)),
        Step("optional", (Call("adverts"), Call("tracking"))),
        Step("fallback", (Call("playlist"), Call("popular"))),
        Step("critical", (Call("layout"),)),
    ),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """What the end of an experiment put on record."""

    experiment: Experiment
    spent: int
    lesson: Lesson | None
    changes: list[FindingChange]
    runs: Runs | None


@dataclass(slots=True)
class Pattern:
    """What a campaign put on record. ``first``: in its first run; ``later``: in each one since."""

    definition: Definition
    document: dict[str, Any]
    certificate: dict[str, Any]
    first: list[Ended] = field(default_factory=list)
    later: list[Ended] = field(default_factory=list)


def lived(runs: int = 3) -> Pattern:
    """Let a campaign with a schedule go through some runs, and keep what it put on record."""
    settings = replace(QUICK, member_budget=10**9)
    definition = Definition(settings, name="nightly", schedule=Schedule("* * * * *"))
    ends: list[tuple[int, Ended]] = []
    put = experiments.end

    def kept(
        change: Change,
        experiment: Experiment,
        spent: int,
        lesson: Lesson | None,
        changes: list[FindingChange] | None = None,
        runs: Runs | None = None,
    ) -> None:
        ended = Ended(copy.copy(experiment), spent, lesson, list(changes or ()), runs)
        ends.append((campaign.run, ended))
        put(change, experiment, spent, lesson, changes or (), runs)

    with World.in_memory({"/p": PROGRAM}) as world, mock.patch.object(experiments, "end", kept):
        campaign = world.engine.scheduler.commands.start(definition, "bench", world.now)
        while campaign.run <= runs:
            world.step()
        (known,) = world.engine.catalogue.classes.values()
        (certificate,) = campaign.certificates()
        pattern = Pattern(definition, known.to_json(), certificate)
    decided = [(run, each) for run, each in ends if each.experiment.state == "decided"]
    pattern.first = [each for run, each in decided if run == 1]
    pattern.later = [each for run, each in decided if run > 1]
    return pattern


class Years:
    """Fills a database, a day at a time."""

    def __init__(self, database: Database, pattern: Pattern, a_day: int, of: int) -> None:
        self.database, self.pattern, self.a_day = database, pattern, a_day
        self.names = [f"GET /page/{number}" for number in range(of)]
        self.versions = dict.fromkeys(self.names, 1)
        self.days = self.experiments = 0
        self._ids = itertools.count(1)
        self._next = {name: self._history() for name in self.names}
        self.campaign = Campaign("c" * 32, pattern.definition, new_id=str)
        self.campaign.state = "running"
        with database.change(BEGAN, "bench") as change:
            campaigns.create(change, self.campaign)
            self._know(change)

    @property
    def now(self) -> float:
        """Unix seconds, in the years that are told."""
        return BEGAN + self.days * DAY

    def day(self) -> None:
        """Let a run of the campaign begin and end."""
        for place, name in enumerate(self.names):
            if self.days % CHANGES == CHANGES - 1 - place and self.days:
                self.versions[name] += 1
                self._next[name] = self._history()
        if self.days:
            with self.database.change(self.now, "bench") as change:
                self._know(change)
        self.campaign.run = self.days + 1
        self.campaign.run_started_at = self.now
        self.save("running", self.now)
        each_class = self.a_day // len(self.names)
        for place, name in enumerate(self.names):
            at = self.now + 60.0 + place * 1_000.0
            with self.database.change(at, "ldfi") as change:
                for number in range(each_class):
                    self.experiment(change, name, at + number * 30.0)
        self.days += 1
        self.campaign.run += 1
        self.save("scheduled", self.now - 60.0)
        with self.database.change(self.now, "ldfi") as change:
            notifications.deal(change, ["webhook"])
            for row in notifications.waiting(change.session, "webhook", 1_000):
                notifications.end_delivery(change, row.id, "webhook")

    def _history(self) -> Iterator[Ended]:
        return itertools.chain(self.pattern.first, itertools.cycle(self.pattern.later))

    def _know(self, change: Change) -> None:
        for name in self.names:
            document = {**self.pattern.document, "name": name, "version": self.versions[name]}
            classes.save(change, name, self.versions[name], document)

    def save(self, state: str, now: float) -> None:
        self.campaign.state = state  # type: ignore[assignment]
        certificates = [{**self.pattern.certificate, "request_class": name} for name in self.names]
        with self.database.change(now, "ldfi") as change:
            campaigns.save(change, self.campaign, certificates)

    def experiment(self, change: Change, name: str, at: float) -> None:
        """Arm it, and end it as that one ended which it is a copy of."""
        ended = next(self._next[name])
        experiment = copy.copy(ended.experiment)
        experiment.id = f"{next(self._ids):032x}"
        experiment.request_class, experiment.version = name, self.versions[name]
        experiment.created_at = experiment.armed_at = at
        experiment.ended_at = at + 20.0
        change = replace(change, now=at)
        order = Order(experiment, self.campaign.id, self.campaign.run, at + 10.0, Facts())
        experiment.state = "proposed"
        armed = arm(self.database, change, order, WIDE)
        assert isinstance(armed, Armed), armed.reason
        for state in ("observing", "settling"):
            experiment.state = state
            experiments.move(change, experiment)
        experiment.state = "decided"
        lesson = None
        if ended.lesson is not None:
            lesson = proved(experiment, replace(ended.lesson, proof=None))
        change = replace(change, now=at + 20.0)
        experiments.end(change, experiment, ended.spent, lesson, ended.changes, ended.runs)
        self.experiments += 1


def prune_all(database: Database, now: float) -> int:
    """Prune with the defaults, as the command does; how many lessons went."""

    def days(name: str) -> float:
        return float(KEPT[name].default) * DAY

    keep = Retention(audit=days("keep_audit_days"), details=days("keep_details_days"))
    prune(database, keep, now, "bench")
    dropped = folding.fold(database, now - days("keep_lessons_days"), now, "bench").rows
    checkpoints.prune(database, now - days("keep_runs_days"), now, "bench")
    return dropped


@dataclass(slots=True)
class Slowest:
    """The slowest statement so far: its seconds, and its words."""

    seconds: float = 0.0
    statement: str = ""


@contextmanager
def timed(database: Database) -> Iterator[Slowest]:
    """Time each statement, its rows fetched."""
    slowest, began = Slowest(), [0.0]

    def before(*_: object) -> None:
        began[0] = time.perf_counter()

    def after(_c: object, _cursor: object, statement: str, *_: object) -> None:
        took = time.perf_counter() - began[0]
        if took > slowest.seconds:
            slowest.seconds, slowest.statement = took, " ".join(statement.split())[:300]

    engine = database.engine
    event.listen(engine, "before_cursor_execute", before)
    event.listen(engine, "after_cursor_execute", after)
    try:
        yield slowest
    finally:
        event.remove(engine, "before_cursor_execute", before)
        event.remove(engine, "after_cursor_execute", after)


def asked(years: Years, engine: Engine) -> dict[str, Callable[[], object]]:
    """List what is asked while a service runs, all of it by the service's own functions."""
    database, now, name = years.database, years.now, years.names[0]

    def evidence() -> object:
        with database.read() as session:
            version = years.versions[name]
            certificate = years.pattern.certificate["certificate"]
            return evidence_file(session, [Certified(name, version, certificate)], (), now)

    def gate() -> object:
        with database.read() as session:
            return knowledge_of(session, engine.catalogue.classes[name])

    def levels() -> object:
        with database.read() as session:
            return experiments.levels(session)

    def next_one() -> None:
        years.save("running", now)
        with database.change(now, "ldfi") as change:
            years.experiment(change, name, now + 100.0)

    return {
        "start": lambda: Engine(database, now=now),
        "metrics": lambda: of_database(database, WIDE, now),
        "levels": levels,
        "gate": gate,
        "evidence file": evidence,
        "an experiment": next_one,
    }


def megabytes(database: Database) -> float:
    """Say how large it is, what is free within included."""
    with database.read() as session:
        if database.engine.dialect.name == "postgresql":
            size = session.scalar(text("SELECT pg_database_size(current_database())"))
        else:
            pages = session.scalar(text("PRAGMA page_count"))
            size = int(pages or 0) * int(session.scalar(text("PRAGMA page_size")) or 0)
    return int(size or 0) / 1e6


def measure(
    url: str, days: int, a_day: int = A_DAY, of: int = CLASSES
) -> tuple[list[dict[str, Any]], dict[str, Target]]:
    """Fill a database and ask it; what was measured, and held against the targets."""
    database, began = Database(url), time.perf_counter()
    try:
        years = Years(database, lived(), a_day, of)
        rows: list[dict[str, Any]] = []
        largest, dropped = 0.0, 0
        while years.days < days:
            years.day()
            if years.days % MONTH == 0:
                dropped += prune_all(database, years.now)
                largest = max(largest, megabytes(database))
                if years.days % (12 * MONTH) == 0 or years.days == MONTH:
                    rows.append({"what": f"after {years.days} days (MB)", "value": largest})
        dropped += prune_all(database, years.now)
        largest = max(largest, megabytes(database))
        rows.append({"what": "lessons dropped", "value": dropped})
        rows.append({"what": "bytes for each experiment", "value": 1e6 * largest / (days * a_day)})
        rows.append({"what": "filled in (s)", "value": time.perf_counter() - began})
        at = time.perf_counter()
        engine = Engine(database, now=years.now)
        start = time.perf_counter() - at
        slowest = 0.0
        for what, ask in asked(years, engine).items():
            with timed(database) as found:
                at = time.perf_counter()
                ask()
                took = time.perf_counter() - at
            slowest = max(slowest, found.seconds)
            rows.append({"what": f"{what} (s)", "value": took})
            shown = {"what": f"slowest of {what} (ms)", "value": 1_000 * found.seconds}
            rows.append({**shown, "statement": found.statement})
        (campaign,) = engine.scheduler.state.campaigns.values()
        known = sum(len(e.knowledge.lessons) for e in campaign.explorations.values())
    finally:
        database.close()
    targets: dict[str, Target] = {
        "experiments": at_least(years.experiments, days * a_day),
        "database (MB)": at_most(largest, 500.0),
        "start (s)": at_most(start, 3.0),
        "slowest query (ms)": at_most(1_000 * slowest, 50.0),
        "classes explored after the start": at_least(len(campaign.explorations), of),
        "lessons known after the start": at_least(known, of),
    }
    return rows, targets


def main() -> None:
    """Measure, and say so; exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.years", description=__doc__)
    parser.add_argument("--json", action="store_true", help="say it as JSON")
    parser.add_argument("--days", type=int, default=3 * 365)
    parser.add_argument("--a-day", type=int, default=A_DAY, help="experiments")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.postgresql or f"sqlite:///{Path(folder) / 'years.sqlite3'}"
        rows, targets = measure(url, given.days, given.a_day)
    raise SystemExit(0 if say({"years": rows}, targets, as_json=given.json) else 1)


if __name__ == "__main__":
    main()
