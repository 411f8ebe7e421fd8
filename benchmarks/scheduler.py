"""``python -m benchmarks.scheduler [--json]``: the scheduler's cost, and whether it keeps hours.

Two simulations on a clock of their own, with the real scheduler, catalogue, rules board and
database (SQLite in a file); edges, devices and services are as cheap as can be, and not counted.

*Cost*: a campaign over a thousand request classes, its budget that of 500 experiments a day, and a
tick every 0.05 seconds as in the service, every one of them run. Counted is the processor time
inside :meth:`Scheduler.advance`, SQLite's included. For most of the day the budget of the hour is
spent and experiments are refused: that is what such a day is like.

*Calendar*: the week in which Berlin's clocks go back (25 October 2026), with campaigns that run in
working hours less a blackout day, over night, and by cron in the hour that comes twice. When each
experiment was armed is held against arithmetic of this file's own, and against the same arithmetic
without the change of the clock, which must find fault or the check would be worth nothing.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import select

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.experiments.domain.campaign.calendar import Blackout, Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.scheduler.engine import TICK_SECONDS
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.scheduler.scheduler import Scheduler
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Rule
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace

SHARE = 0.1
"""Of one core, that the scheduler may use."""

EXPERIMENTS = 500
"""A day."""

LEASE = 10.0
LINGER = 3.0
"""Seconds without a rule after which the simulation of the calendar goes on faster."""

CALLS = 12
"""Calls of a request to other services, each with a query inside; the first alone is critical."""

HOUR, DAY = 3_600.0, 86_400.0
MONDAY = 1_792_368_000.0
"""2026-10-19 00:00 UTC."""

THURSDAY = MONDAY + 3 * DAY
CHANGE = MONDAY + 6 * DAY + HOUR
"""Sunday 25 October 2026, 01:00 UTC: from then on Berlin is one hour ahead of UTC, not two."""


class Shop:
    """So many entries that all work alike: the first call is critical, the rest is optional."""

    def __init__(self, entries: int) -> None:
        self.paths = {f"/shelves/{_word(number)}": number for number in range(entries)}

    def serve(self, path: str, faults: frozenset[str], failed: int = -1) -> Lineage:
        """Serve one request. Faults that are reached fire; ``failed`` fails by nature."""
        spans = [self._span("root", None, 0, "server", 1, method="GET", path=path)]
        for i in range(CALLS):
            outer = f"api>http:GET:dependency-{i}{path}/items/*"
            inner = f"dependency-{i}>db:SELECT:store{path}"
            down = i == failed or f"error@{outer}" in faults
            broken = not down and f"error@{inner}" in faults
            fired = {p: k for k, p in (fault.split("@") for fault in faults)}
            marks = {"fired": fired[outer]} if outer in fired else {}
            status = 2 if down or broken else 1
            at = 2 * i + 1
            spans.append(self._span(f"c{i}", "root", at, "client", status, point=outer, **marks))
            if not down:
                marks = {"fired": fired[inner]} if inner in fired else {}
                status = 2 if broken else 1
                query = self._span(f"q{i}", f"c{i}", at + 1, "client", status, point=inner, **marks)
                spans.append(query)
        run = learn(Trace.of("0" * 32, spans))
        assert run is not None
        return run

    @staticmethod
    def good(run: Lineage, faults: frozenset[str]) -> bool:
        """Return whether the user got what was asked for: not when the first call failed or
        hung."""
        return not any(">http:GET:dependency-0/" in p for p in run.failed) and not any(
            fault.startswith("delay@") and "dependency-0" in fault for fault in faults
        )

    @staticmethod
    def _span(name: str, above: str | None, at: int, kind: str, status: int, **fields: str) -> Span:
        what = operation("api", name, kind, status, False, tuple(sorted(fields.items())))
        return Span("0" * 32, name, above, at, 1000 - at, what)

    def catalogue(self, each: int = 120) -> Catalogue:
        """Learn from so many requests of each entry, one in twenty with a failed call."""
        catalogue = Catalogue()
        for path, number in self.paths.items():
            runs = [self.serve(path, frozenset()), self.serve(path, frozenset(), number % 11 + 1)]
            for serial in range(each):
                run = replace(runs[serial % 20 == 0], trace_id=f"{number:016x}{serial:016x}")
                outcome = Outcome(run.trace_id, f"d{serial}", "", success=True)
                catalogue.observe(Observation(run, outcome), MONDAY)
        return Catalogue.from_json(catalogue.to_json())


def _word(number: int) -> str:
    """Make a word that looks like no identifier."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


@dataclass
class Edge:
    """Asks for rules when there are new ones, or after a while; counts whom it treats."""

    name: str
    board: RulesBoard
    version: str = ""
    asked_at: float = -math.inf
    rules: dict[str, Rule] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def poll(self, now: float) -> None:
        """Ask, if it is time to."""
        if self.version == self.board.version and now < self.asked_at + LEASE / 2:
            return
        report = {name: Enrolled(count) for name, count in self.used.items()}
        self.board.heard(self.name, self.version, report, now)
        document = self.board.lease(self.name, now)
        self.asked_at, self.version = now, document["version"]
        armed = {each["experiment"]: each for each in document["rules"]}
        self.rules = {
            name: self.rules.get(name) or Rule.from_json(each) for name, each in armed.items()
        }
        self.used = {name: self.used.get(name, 0) for name in armed}

    def admits(self, rule: Rule) -> bool:
        """Return whether one more device may be treated; it is counted."""
        if rule.members is None or self.used[rule.experiment] >= rule.members:
            return False
        self.used[rule.experiment] += 1
        return True


class World:
    """The scheduler, and what is around it."""

    def __init__(self, db: Database, shop: Shop, limits: Limits, now: float, tick: float) -> None:
        self.db = db
        self.now = now
        self.cpu = self.worst = 0.0
        self.ticks = 0
        self._tick = tick
        self._shop = shop
        self._board = RulesBoard("b", LEASE)
        self.scheduler = Scheduler(db, self._board, shop.catalogue(), limits, now=now, lease=LEASE)
        self._edges = [Edge(f"edge{number}", self._board) for number in range(3)]
        self._serial = 0
        self._next_devices = now

    def run(self, seconds: float, idle: float) -> None:
        """Tick for so long: while nothing has been armed for a while, every ``idle`` seconds."""
        end = self.now + seconds
        busy = self.now
        while self.now < end:
            for edge in self._edges:
                edge.poll(self.now)
            if self.now >= self._next_devices:
                self._devices()
                self._next_devices = self.now + 1.0
            began = time.process_time()
            self.scheduler.advance(self.now)
            took = time.process_time() - began
            self.worst = max(self.worst, took)
            self.cpu += took
            self.ticks += 1
            if self._board.armed():
                busy = self.now + LINGER
            self.now += self._tick if self.now < busy else idle

    def _devices(self) -> None:
        """Let two devices of each arm of every armed experiment ask at one of the edges."""
        edge = self._edges[self._serial % len(self._edges)]
        for rule in edge.rules.values():
            for _ in range(2):
                if edge.admits(rule):
                    self._ask(rule, "treatment")
                    self._ask(rule, "control")
        self._serial += 1

    def _ask(self, rule: Rule, arm: Arm) -> None:
        self._serial += 3
        (path,) = (c.value for c in rule.predicate.conditions if c.feature == "path")
        chosen = frozenset(map(str, rule.faults))
        faults = chosen if arm == "treatment" else frozenset[str]()
        run = self._shop.serve(str(path), faults)
        marks = {"experiment": rule.experiment, "arm": arm, "trace_id": f"{self._serial:032x}"}
        would = chosen if arm == "control" else frozenset[str]()
        run = replace(run, **marks, would_fire=would, start=int(self.now * 1e9))  # type: ignore[arg-type]
        outcome = Outcome(
            run.trace_id, f"d{self._serial}", "", self._shop.good(run, faults), None, 0.1
        )
        self.scheduler.observe(Observation(run, outcome), self.now)

    def rows(self) -> list[ExperimentRow]:
        """List every experiment on record, as it was armed."""
        with self.db.read() as session:
            query = select(ExperimentRow).where(ExperimentRow.armed_at.is_not(None))
            return list(session.scalars(query.order_by(ExperimentRow.armed_at)))


@contextmanager
def a_world(entries: int, limits: Limits, now: float, tick: float) -> Iterator[World]:
    """Make a world with an empty database."""
    with tempfile.TemporaryDirectory() as folder:
        db = Database(f"sqlite:///{Path(folder) / 'ldfi.sqlite3'}")
        try:
            yield World(db, Shop(entries), limits, now, tick)
        finally:
            db.close()


def cost(entries: int, hours: float) -> tuple[Row, dict[str, Target]]:
    """Measure the scheduler's share of a core."""
    limits = Limits(members_per_hour=340, members_per_day=8_000)
    with a_world(entries, limits, MONDAY, TICK_SECONDS) as world:
        world.scheduler.commands.start(
            Definition(Settings(member_budget=10**9)), "benchmark", world.now
        )
        world.run(hours * HOUR, idle=TICK_SECONDS)
        rows = world.rows()
    seconds = hours * HOUR
    share = world.cpu / seconds
    a_day = len(rows) * 24 / hours
    row: Row = {
        "classes": entries,
        "hours": hours,
        "ticks": world.ticks,
        "experiments": len(rows),
        "harmful": sum(each.verdict == "harmful" for each in rows),
        "tolerated": sum(each.verdict == "tolerated" for each in rows),
        "members": sum(each.members_charged for each in rows),
        "cpu_seconds": round(world.cpu, 2),
        "microseconds_per_tick": round(world.cpu / world.ticks * 1e6, 1),
        "longest_tick_ms": round(world.worst * 1e3, 1),
    }
    targets = {
        "share of one core": at_most(round(share, 4), SHARE),
        "experiments a day": at_least(round(a_day), EXPERIMENTS),
        "processor seconds of the longest tick": at_most(round(world.worst, 3), LEASE / 3),
    }
    return row, targets


@dataclass(frozen=True)
class Hours:
    """When a campaign may run, by arithmetic: from and to in minutes of Berlin's day.

    ``changes`` False: as if Berlin's clocks were not set back.
    """

    first: int
    last: int
    weekdays: int = 7
    blackout: int | None = None
    changes: bool = True

    def allow(self, at: float) -> bool:
        """Return whether an experiment may be armed at this moment."""
        ahead = HOUR if self.changes and at >= CHANGE else 2 * HOUR
        day, second = divmod(at + ahead - MONDAY, DAY)
        minute = second / 60
        if self.first < self.last:
            inside = self.first <= minute < self.last
        else:
            inside = minute >= self.first or minute < self.last
        return inside and day % 7 < self.weekdays and day != self.blackout


CAMPAIGNS = {
    "office": (
        Hours(9 * 60, 17 * 60, weekdays=5, blackout=9),
        Definition(
            name="office",
            classes=tuple(f"GET /shelves/aa{tens}*" for tens in "bcd"),
            calendar=Calendar(
                "Europe/Berlin",
                ("mon", "tue", "wed", "thu", "fri"),
                ("09:00", "17:00"),
                (Blackout("2026-10-28", "2026-10-28", "release"),),
            ),
        ),
    ),
    "night": (
        Hours(21 * 60, 1 * 60),
        Definition(
            name="night",
            classes=tuple(f"GET /shelves/aa{tens}*" for tens in "efgh"),
            calendar=Calendar("Europe/Berlin", hours=("21:00", "01:00")),
        ),
    ),
    "cron": (
        Hours(2 * 60 + 15, 3 * 60),
        Definition(
            name="cron",
            classes=("GET /shelves/aaaa",),
            calendar=Calendar("Europe/Berlin", hours=("02:00", "03:00")),
            schedule=Schedule("15 2 * * *", "Europe/Berlin"),
            hypotheses=tuple(  # few, so that every run is over within its hour
                frozenset({f"error@api>http:GET:dependency-{i}/shelves/aaaa/items/*"})
                for i in range(2)
            ),
        ),
    ),
}


def _small(what: Definition) -> Definition:
    """Take few members an experiment, so that the budget of an hour is for several."""
    return replace(what, settings=replace(what.settings, member_budget=10**9, members=25))


def calendar() -> tuple[list[Row], dict[str, Target]]:
    """Check that no experiment is armed outside of its hours, over the week of the change."""
    limits = Limits(members_per_hour=100, members_per_day=10_000, max_concurrent=2)
    with a_world(80, limits, THURSDAY, 1.0) as world:
        names = {
            world.scheduler.commands.start(_small(what), "benchmark", world.now).id: name
            for name, (_, what) in CAMPAIGNS.items()
        }
        world.run(7 * DAY, idle=120.0)
        rows = world.rows()
    table: list[Row] = []
    outside = noticed = 0
    for name, (hours, _) in CAMPAIGNS.items():
        armed = [e.armed_at for e in rows if names[e.campaign_id] == name and e.armed_at]
        wrong = sum(not hours.allow(at) for at in armed)
        without = sum(not replace(hours, changes=False).allow(at) for at in armed)
        days = len({int(at // DAY) for at in armed})
        table.append(
            {
                "campaign": name,
                "experiments": len(armed),
                "days": days,
                "outside": wrong,
                "outside, had the clock not changed": without,
            }
        )
        outside += wrong
        noticed += without > 0
    targets = {
        "experiments outside their hours": at_most(outside, 0),
        "campaigns in which the check would notice": at_least(noticed, len(CAMPAIGNS)),
    }
    return table, targets


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="the scheduler's cost, and its calendar")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--hours", type=float, default=24.0, help="simulated, for the cost")
    given = parser.parse_args()
    row, targets = cost(given.classes, given.hours)
    weeks, more = calendar()
    say({"cost": [row], "calendar": weeks}, {**targets, **more}, as_json=given.json)


if __name__ == "__main__":
    main()
