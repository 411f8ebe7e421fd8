"""A database filled a day at a time, for :mod:`benchmarks.years`.

A season begins with two days that the store's own functions write, statement by statement as they
do while a service runs: one on which half of the classes have changed and are explored anew, and
findings are fixed or come back; and a quiet one. The rest of the season repeats the quiet day, row
by row: other ids, later times, and the records of its runs hashed and chained anew. That leaves
what the functions would have left (``tests/benchmarks/test_years.py`` holds every table of the one
against the other) in a twentieth of the time.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, Final, cast

from sqlalchemy import Column, Select, Table, func, insert, select, update
from sqlalchemy.orm import Session

from benchmarks.years_lived import Ended, Pattern
from ldfi.checker import merkle
from ldfi.checker.canonical import canonical, read
from ldfi.checker.head import Head
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.exploration import FindingChange
from ldfi.experiments.domain.campaign.recording import proved
from ldfi.experiments.domain.gates.facts import Facts
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store import (
    campaigns,
    chain_check,
    classes,
    experiments,
    findings,
    maintenance,
    notifications,
    run_counts,
)
from ldfi.experiments.store import chain as runs_chain
from ldfi.experiments.store.arming import Armed, Order, arm
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.schema import (
    AuditRow,
    Base,
    CampaignRow,
    DeliveryRow,
    ExperimentRow,
    FindingRow,
    HeadRow,
    NotificationRow,
    RunCountRow,
    RunRow,
    TallyRow,
)

DAY: Final = 86_400.0
SEASON: Final = 90
"""Days from one change of classes to the next; half of them change."""
WIDE: Final = Limits(max_concurrent=10**6, members_per_hour=10**9, members_per_day=10**9)
BETWEEN: Final = 20.0
"""Seconds from the beginning of an experiment to its end."""
Row = dict[str, Any]


@dataclass(slots=True)
class Quiet:
    """The rows that a quiet day left, in their order; ``day``: which one it was."""

    day: int
    experiments: Sequence[Row]
    runs: Sequence[Row]
    audit: Sequence[Row]
    notifications: Sequence[Row]
    deliveries: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where tables ended: the last ids of the audit and of notifications, the size of the chain."""

    audit: int
    notification: int
    leaf: int


class Years:
    """``patterns``: of each class what its campaign put on record. ``began``: Unix seconds."""

    def __init__(
        self, database: Database, patterns: Sequence[Pattern], a_day: int, began: float
    ) -> None:
        self.database, self.began = database, began
        self.patterns = {f"GET /page/{number}": each for number, each in enumerate(patterns)}
        self.versions = dict.fromkeys(self.patterns, 0)
        self.a_day = a_day
        self.days = self.experiments = 0
        self._drawn = random.Random(0)
        self._later = {name: cycle(each.later) for name, each in self.patterns.items()}
        self._quiet: Quiet | None = None
        self.campaign = Campaign("c" * 12, patterns[0].definition, new_id=str)
        self.campaign.state = "scheduled"
        with database.change(began, "ann") as change:
            campaigns.create(change, self.campaign)

    @property
    def now(self) -> float:
        """Unix seconds: when the last day that is filled ended."""
        return self.began + self.days * DAY

    def day(self) -> None:
        """Fill a day."""
        of_season = self.days % SEASON
        if of_season == 0:
            self.busy_day()
        elif of_season == 1 or self._quiet is None:
            mark = self._mark()
            self.quiet_day()
            self._quiet = self._left(mark)
        else:
            self.repeat(self._quiet)

    def busy_day(self) -> None:
        """Let a day go by on which classes change, and findings are fixed or hurt again."""
        changed = [
            name
            for number, name in enumerate(self.versions)
            if not self.days or number % 2 == self.days // SEASON % 2
        ]
        with self.database.change(self.now, "ldfi") as change:
            for name in changed:
                self.versions[name] += 1
                document = {**self.patterns[name].document, "name": name}
                version = self.versions[name]
                classes.save(change, name, version, {**document, "version": version})
                self._fix(change, name)
        self._upgrade()
        self._run({name: self._share(name, name in changed) for name in self.patterns})
        self._tell()

    def quiet_day(self) -> None:
        """Let a day go by on which a run of the campaign tries again what there is to be tried."""
        self._run({name: self._share(name, anew=False) for name in self.patterns})
        self._tell()

    def repeat(self, quiet: Quiet) -> None:
        """Let a day go by that leaves the rows which a quiet one left."""
        days = self.days - quiet.day
        ids = {row["id"]: self._id() for row in quiet.experiments}
        ended = max(row["ended_at"] for row in quiet.experiments) + days * DAY
        with self.database.change(ended, "ldfi") as change:
            session = change.session
            last = self._mark()
            _add(session, ExperimentRow, [_experiment(row, ids, days) for row in quiet.experiments])
            _tally(session, quiet.experiments)
            _chain(change, quiet.runs, ids, days)
            _add(session, AuditRow, [_told(row, ids, days) for row in quiet.audit])
            _add(session, NotificationRow, [_told(row, ids, days) for row in quiet.notifications])
            later = (
                last.notification + 1 - min((row["id"] for row in quiet.notifications), default=1)
            )
            _add(session, DeliveryRow, [_delivery(row, later, days) for row in quiet.deliveries])
            self._move_on(session)
        self.experiments += len(ids)

    def _move_on(self, session: Session) -> None:
        """Let the campaign, and the findings that were tried again, be a day older."""
        self.campaign.run += 1
        self.campaign.run_started_at = self.now
        self.days += 1
        self.campaign.next_run_at = self.now
        moved = {"run": self.campaign.run, "run_started_at": self.campaign.run_started_at}
        session.execute(update(CampaignRow).values(**moved, next_run_at=self.now))
        yesterday = FindingRow.verified_at >= self.now - 2 * DAY
        session.execute(
            update(FindingRow).where(yesterday).values(verified_at=FindingRow.verified_at + DAY)
        )

    def experiment(self, change: Change, name: str, ended: Ended, at: float) -> None:
        """Arm one, and end it as that one ended which it is a copy of."""
        experiment = copy.copy(ended.experiment)
        experiment.id = self._id()
        experiment.request_class, experiment.version = name, self.versions[name]
        experiment.created_at = experiment.armed_at = at
        experiment.ended_at = at + BETWEEN
        change = replace(change, now=at)
        order = Order(experiment, self.campaign.id, self.campaign.run, at + 10.0, Facts())
        experiment.state = "proposed"
        armed = arm(self.database, change, order, WIDE)
        assert isinstance(armed, Armed), armed.reason
        for state in ("observing", "settling"):
            experiment.state = state
            experiments.move(change, experiment)
        experiment.state = "decided"
        result = None
        if ended.result is not None:
            result = proved(experiment, replace(ended.result, proof=None))
        change = replace(change, now=at + BETWEEN)
        experiments.end(change, experiment, ended.spent, result, ended.changes, ended.runs)
        change.session.flush()
        self.experiments += 1

    def save(self, state: str, at: float) -> None:
        """Put the campaign on record, with a certificate of each class."""
        self.campaign.state = state  # type: ignore[assignment]
        certificates = [
            {**each.certificate, "request_class": name} for name, each in self.patterns.items()
        ]
        with self.database.change(at, "ldfi") as change:
            campaigns.save(change, self.campaign, certificates)

    def _run(self, tried: Mapping[str, Sequence[Ended]]) -> None:
        self.campaign.run += 1
        self.campaign.run_started_at = self.now
        self.save("running", self.now)
        apart = (DAY - 120.0) / sum(map(len, tried.values()))
        times = (self.now + 60.0 + apart * number for number in range(10**9))
        for name, ends in tried.items():
            with self.database.change(self.now, "ldfi") as change:
                for ended in ends:
                    self.experiment(change, name, ended, float(int(next(times))))
        self.days += 1
        self.campaign.next_run_at = self.now
        self.save("scheduled", self.now - 10.0)

    def _share(self, name: str, anew: bool) -> list[Ended]:
        """Choose what is tried of a class: all of its first run where it has changed, and else its
        share of a day."""
        place, of = list(self.patterns).index(name), len(self.patterns)
        many = self.a_day * (place + 1) // of - self.a_day * place // of
        first = self.patterns[name].first if anew else []
        return [*first, *islice(self._later[name], max(0, many - len(first)))]

    def _fix(self, change: Change, name: str) -> None:
        """Let all findings of a class be fixed, before they hurt again."""
        for row in change.session.scalars(select(FindingRow).filter_by(request_class=name)):
            fixed = FindingChange(frozenset(row.faults), "fixed")
            findings.apply(change, fixed, name, row.campaign_id, row.experiment_id)

    def _upgrade(self) -> None:
        until = self.now + 600.0
        window = Maintenance(self._id(), "ann", "upgrade", ("billing",), self.now, until)
        with self.database.change(self.now, "ann") as change:
            maintenance.open_window(change, window)
        with self.database.change(self.now + 30.0, "ann") as change:
            maintenance.close_window(change, window.id)

    def _tell(self) -> None:
        """Deliver what people are to be told."""
        with self.database.change(self.now - 5.0, "ldfi") as change:
            notifications.deal(change, ["webhook"])
            for row in notifications.waiting(change.session, "webhook", 1_000):
                notifications.end_delivery(change, row.id, "webhook")

    def _mark(self) -> Mark:
        with self.database.read() as session:
            audit = session.scalar(select(func.max(AuditRow.id))) or 0
            told = session.scalar(select(func.max(NotificationRow.id))) or 0
            leaf = session.scalar(select(func.max(RunRow.leaf)))
        return Mark(audit, told, -1 if leaf is None else leaf)

    def _left(self, mark: Mark) -> Quiet:
        """Read what a day left since it began at this mark."""
        tried, runs = _table(ExperimentRow), _table(RunRow)
        new = runs.c.leaf > mark.leaf
        with self.database.read() as session:
            return Quiet(
                self.days - 1,
                _rows(
                    session,
                    select(tried)
                    .join(runs, runs.c.experiment_id == tried.c.id)
                    .where(new)
                    .order_by(runs.c.leaf),
                ),
                _rows(session, select(runs).where(new).order_by(runs.c.leaf)),
                _after(session, _table(AuditRow).c.id, mark.audit),
                _after(session, _table(NotificationRow).c.id, mark.notification),
                _after(session, _table(DeliveryRow).c.notification_id, mark.notification),
            )

    def _id(self) -> str:
        return self._drawn.randbytes(6).hex()


def _table(row: type[Base]) -> Table:
    return cast(Table, row.__table__)


def _rows(session: Session, query: Select[Any]) -> list[Row]:
    return [dict(each) for each in session.execute(query).mappings()]


def _after(session: Session, column: Column[Any], last: int) -> list[Row]:
    return _rows(session, select(column.table).where(column > last).order_by(column))


def _add(session: Session, row: type[Base], rows: Sequence[Row]) -> None:
    if rows:
        session.execute(insert(_table(row)), rows)


def _shifted(row: Row, names: Sequence[str], seconds: float) -> Row:
    return {name: row[name] + seconds for name in names if row[name] is not None}


def _experiment(row: Row, ids: Mapping[str, str], days: int) -> Row:
    """Write an experiment anew under another id, so many days later."""
    identity, seconds = ids[row["id"]], days * DAY
    result = row["lesson"]
    if result is not None:
        result = {**result, "proof": _proof(result["proof"], identity, seconds)}
    return {
        **row,
        **_shifted(row, ("created_at", "armed_at", "lease_until", "ended_at"), seconds),
        "id": identity,
        "run": row["run"] + days,
        "allocation": {**row["allocation"], "salt": identity},
        "lesson": result,
    }


def _proof(proof: Row, identity: str, seconds: float) -> Row:
    return {**proof, "experiment": identity, **_shifted(proof, ("began", "ended"), seconds)}


def _tally(session: Session, rows: Sequence[Row]) -> None:
    """Count once more experiments that had all been armed."""
    ended, hurt = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in rows:
        key: tuple[str, ...] = (row["campaign_id"], row["purpose"], row["verdict"] or "")
        ended[key] += 1
        hurt[key] += row["members_hurt"]
    for each, many in ended.items():
        counted = session.get_one(TallyRow, each)
        counted.ended += many
        counted.armed += many
        counted.hurt += hurt[each]


def _told(row: Row, ids: Mapping[str, str], days: int) -> Row:
    """Write an entry of the audit or a notification anew; it gets a number of its own."""
    times = _shifted(row, [name for name in ("at", "delivered_at") if name in row], days * DAY)
    new = {**row, **times}
    del new["id"]
    if "subject" in new:
        new["subject"] = ids.get(new["subject"], new["subject"])
    else:
        document, run = new["document"], new["document"]["details"]["run"] + days
        details = {**document["details"], "run": run}
        new["document"] = {**document, "text": f"run {run}", "details": details}
    return new


def _delivery(row: Row, later: int, days: int) -> Row:
    number = row["notification_id"] + later
    return {**row, "notification_id": number, **_shifted(row, ("ended_at",), days * DAY)}


def _chain(change: Change, runs: Sequence[Row], ids: Mapping[str, str], days: int) -> None:
    """Hash records anew and append them to the chain, with its head and its counts."""
    session, node = change.session, chain_check.node_of(change.session)
    head = Head.from_json(read(session.get_one(HeadRow, 1).document))
    known: dict[tuple[int, int], bytes] = {}

    def nodes(level: int, index: int) -> bytes:
        return known.get((level, index)) or node(level, index)

    counts = {(row.request_class, row.version): row for row in session.scalars(select(RunCountRow))}
    before = {each: row.runs for each, row in counts.items()}
    size, made, counted = head.size, list[Row](), b""
    for row in runs:
        class_version = row["request_class"], row["version"]
        counts[class_version].runs += 1
        proof = _proof(json.loads(row["document"]), ids[row["experiment_id"]], days * DAY)
        record = canonical({**proof, "number": counts[class_version].runs})
        hashes = merkle.completed(size, merkle.leaf(record), nodes)
        known |= {(level, size >> level): each for level, each in enumerate(hashes)}
        new = {"leaf": size, "experiment_id": proof["experiment"], "document": record.decode()}
        new |= {"number": counts[class_version].runs, "nodes": b"".join(hashes).hex()}
        made.append({**row, **new})
        size += 1
    _add(session, RunRow, made)
    for class_version, row_of in counts.items():
        if row_of.runs > before[class_version]:
            row_of.runs -= 1
            session.flush()
            _, counted = run_counts.count_one(session, class_version)
    grown = Head(
        size,
        merkle.root(size, nodes),
        max(head.time, change.now),
        runs={},
        counts=counted,
    )
    session.get_one(HeadRow, 1).document = runs_chain.written(grown.signed_by(change.keys))
