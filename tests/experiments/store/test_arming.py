"""Arming, by many at once: nothing that has a limit is ever overdrawn."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.gates.guard_facts import Facts
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.store import arming, campaigns, experiments, halts, maintenance
from ldfi.experiments.store.arming import Armed, Order, Refused, arm, least_members
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.metrics import of_database
from ldfi.experiments.store.schema import AuditRow, ExperimentRow
from ldfi.experiments.telemetry import clock
from tests.experiments.simulated import BOOT
from tests.kit.campaigns import an_experiment

NOW = 1_000_000.0
HOUR, DAY = 3_600.0, 86_400.0
WIDE = Limits(max_concurrent=1_000, members_per_hour=10**6, members_per_day=10**6)
TWENTY = Settings(members=20)


def an_order(name: str, cls: str = "GET /", settings: Settings = TWENTY, run: int = 1) -> Order:
    more: dict[str, Any] = {"predicate": BOOT, "settings": settings, "created_at": NOW}
    experiment = an_experiment(name, cls, "api>http:GET:titles/x", **more)
    return Order(experiment, "c", run, NOW + 10, Facts())


def a_campaign(db: Database, state: str = "running") -> Campaign:
    campaign = Campaign("c", Definition(), lambda: "x")
    campaign.state = state  # type: ignore[assignment]
    with db.change(NOW) as change:
        campaigns.create(change, campaign)
    return campaign


def try_arming(db: Database, order: Order, limits: Limits, now: float = NOW) -> Armed | Refused:
    with db.change(now) as change:
        return arm(db, change, order, limits)


def end(db: Database, order: Order, spent: int, now: float = NOW) -> None:
    order.experiment.arm(now)
    order.experiment.abort("over", now)
    assert order.experiment.settle(now + HOUR, disarmed=True)
    with db.change(now) as change:
        experiments.end(change, order.experiment, spent, None)


# --- One at a time -----------------------------------------------------------------------------


def test_what_is_armed_is_on_record_with_its_lease_and_all_its_members(database: Database) -> None:
    a_campaign(database)

    answer = try_arming(database, an_order("e1"), WIDE)

    assert answer == Armed(20, ())
    with database.read() as session:
        row = session.get_one(ExperimentRow, "e1")
        assert (row.state, row.active_class, row.armed_at) == ("armed", "GET /", NOW)
        assert (row.members_reserved, row.members_charged) == (20, 20)
        assert row.lease_until == NOW + 10
        assert "experiment armed" in set(session.scalars(select(AuditRow.what)))


def test_the_second_yields_to_the_first(database: Database) -> None:
    a_campaign(database)
    try_arming(database, an_order("e1"), WIDE)

    answer = try_arming(database, an_order("e2", "GET /b"), WIDE)

    assert isinstance(answer, Armed)
    (claim,) = answer.yields_to
    shares = (TWENTY.treatment, TWENTY.control)
    assert (claim.salt, claim.treatment, claim.control) == ("e1", *shares)


Prepare = Callable[[Database], object]
NOT_RUNNING = "the campaign does not run"


def halted(db: Database) -> None:
    a_campaign(db)
    with db.change(NOW) as change:
        halts.set_halted(change, "release")


def in_maintenance(db: Database) -> None:
    a_campaign(db)
    with db.change(NOW) as change:
        window = Maintenance("m", "ada", "upgrade", ("titles",), NOW, NOW + 60)
        maintenance.open_window(change, window)


def armed(db: Database) -> None:
    a_campaign(db)
    assert isinstance(try_arming(db, an_order("first"), WIDE), Armed)


SPENT = "budget spent:"
REFUSALS: list[tuple[Prepare, str, dict[str, Any], str]] = [
    (halted, "GET /b", {}, "halted: release"),
    (lambda db: None, "GET /b", {}, f"{NOT_RUNNING}: it is not on record"),
    (lambda db: a_campaign(db, "paused"), "GET /b", {}, f"{NOT_RUNNING}: it is paused"),
    (in_maintenance, "GET /b", {}, "maintenance of titles by ada: upgrade"),
    (armed, "GET /", {}, "another experiment runs on this class: first"),
    (armed, "GET /b", {"max_concurrent": 1}, "1 experiments run already, at most 1 may"),
    *(
        (armed, "GET /b", limit, f"{SPENT} {left} members are left of the budget of the last {of}")
        for limit, left, of in (
            ({"members_per_hour": 29}, 9, "hour"),
            ({"members_per_day": 5}, 0, "day"),
        )
    ),
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("prepare", "cls", "limits", "reason"), REFUSALS)
def test_a_refusal_says_why_and_leaves_nothing(
    database: Database, prepare: Prepare, cls: str, limits: dict[str, Any], reason: str
) -> None:
    prepare(database)

    answer = try_arming(database, an_order("e2", cls), replace(WIDE, **limits))
    assert answer == Refused(reason, spent=reason.startswith(SPENT))
    with database.read() as session:
        assert session.get(ExperimentRow, "e2") is None


def test_the_budget_of_the_campaign_is_that_of_one_run(database: Database) -> None:
    a_campaign(database)
    settings = replace(TWENTY, member_budget=25)
    try_arming(database, an_order("e1", settings=settings), WIDE)

    refused = try_arming(database, an_order("e2", "GET /b", settings), WIDE)
    said = "budget spent: 5 members are left of the campaign's budget"
    assert refused == Refused(said, spent=True, for_good=True)
    assert isinstance(try_arming(database, an_order("e3", "GET /b", settings, 2), WIDE), Armed)


def test_what_is_left_of_a_budget_is_enough_for_a_verdict(database: Database) -> None:
    a_campaign(database)
    least = least_members(TWENTY)

    assert try_arming(database, an_order("e1"), replace(WIDE, members_per_hour=least)) == Armed(
        least, ()
    )


def test_what_was_not_used_goes_back_and_an_hour_later_all_of_it(database: Database) -> None:
    a_campaign(database)
    limits = replace(WIDE, members_per_hour=20)
    first = an_order("e1")
    try_arming(database, first, limits)
    end(database, first, spent=7)

    second = an_order("e2")
    assert try_arming(database, second, limits) == Armed(13, ())
    end(database, second, spent=13)
    assert isinstance(try_arming(database, an_order("e3"), limits, NOW + HOUR - 1), Refused)
    assert try_arming(database, an_order("e3"), limits, NOW + HOUR) == Armed(20, ())


def test_a_clock_step_renews_no_budget(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a budget that is spent
    a_campaign(database)
    limits = replace(WIDE, members_per_hour=20)
    first = an_order("e1")
    try_arming(database, first, limits)
    end(database, first, spent=20)
    # When somebody sets the machine's clock an hour ahead while the process runs
    wall = [NOW]
    stepped = clock.Clock(lambda: wall[0], lambda: 0.0)
    monkeypatch.setattr(clock, "CLOCK", stepped)
    wall[0] += HOUR
    assert stepped.now() == NOW + HOUR
    # Then it stays spent, and whatever shows it says so: here, after a restart, elsewhere
    shown = [arming.charged_within(Session(database.engine), HOUR, NOW + HOUR)]
    with database.change(NOW + HOUR) as change:
        halts.note_jumps(change, stepped.jumps)
    with monkeypatch.context() as restarted, database.read() as session:
        restarted.setattr(clock, "CLOCK", clock.Clock(lambda: NOW + HOUR, lambda: 0.0))
        shown += [arming.charged_within(session, each, NOW + HOUR) for each in (HOUR, DAY)]
    assert shown == [20, 20, 20]
    charged = next(f for f in of_database(database, limits, NOW + HOUR) if "charged" in f.name)
    assert {sample.value for sample in charged.samples} == {20}
    assert isinstance(try_arming(database, an_order("e2"), limits, NOW + HOUR), Refused)
    assert try_arming(database, an_order("e2"), limits, NOW + 2 * HOUR) == Armed(20, ())


# --- Many at once ------------------------------------------------------------------------------


class Race:
    """Schedulers that arm whatever they can, and end some of it, each on a database of its own."""

    def __init__(self, url: str, limits: Limits, settings: Settings) -> None:
        self.url, self.limits, self.settings = url, limits, settings
        self.refused: Counter[str] = Counter()

    def run(self, schedulers: int, attempts: int) -> None:
        start = threading.Barrier(schedulers)
        with ThreadPoolExecutor(schedulers) as threads:
            list(threads.map(lambda n: self.schedule(n, attempts, start), range(schedulers)))

    def schedule(self, number: int, attempts: int, start: threading.Barrier) -> None:
        with closing(Database(self.url)) as db:
            start.wait(30)
            for attempt in range(attempts):
                order = an_order(f"e{number}-{attempt}", f"GET /{attempt % 5}", self.settings)
                answer = try_arming(db, order, self.limits)
                if isinstance(answer, Refused):
                    self.refused[answer.reason] += 1
                elif attempt % 2:
                    end(db, order, spent=answer.members - 3)


def check_record(db: Database, limits: Limits, budget: int) -> int:
    """Whether the record shows what it must; members charged."""
    with db.read() as session:
        rows = list(session.scalars(select(ExperimentRow)))
    active = [row.active_class for row in rows if row.state == "armed"]
    assert len(active) == len(set(active)) <= limits.max_concurrent
    charged = sum(row.members_charged for row in rows)
    assert charged <= min(limits.members_per_hour, limits.members_per_day, budget)
    assert all(row.members_charged <= row.members_reserved for row in rows)
    return charged


@pytest.mark.parametrize(
    ("limits", "budget", "told"),
    [
        (replace(WIDE, members_per_hour=115), 10**6, "the budget of the last hour"),
        (replace(WIDE, members_per_day=87), 10**6, "the budget of the last day"),
        (WIDE, 93, "the campaign's budget"),
        (replace(WIDE, max_concurrent=2), 10**6, "at most 2 may"),
        (WIDE, 10**6, "another experiment runs on this class"),
    ],
)
def test_schedulers_that_race_never_overdraw_anything(
    database_url: str, limits: Limits, budget: int, told: str
) -> None:
    # Given six schedulers that all want the same classes, slots and members
    db = Database(database_url)
    a_campaign(db)
    settings = replace(TWENTY, member_budget=budget)
    race = Race(database_url, limits, settings)
    # When they arm as fast as they can
    race.run(schedulers=6, attempts=12)
    # Then nothing is overdrawn, what there is is used, and whoever came late was told why
    charged = check_record(db, limits, budget)
    least = min(limits.members_per_hour, limits.members_per_day, budget)
    assert least - charged < least_members(settings) or least == 10**6
    assert any(told in reason for reason in race.refused)
    db.close()


PROCESS = """
import sys
from tests.experiments.store.test_arming import Race, TWENTY, WIDE, replace
race = Race(sys.argv[1], replace(WIDE, members_per_hour=115), TWENTY)
race.schedule(int(sys.argv[2]), 12, __import__("threading").Barrier(1))
"""


@pytest.mark.long  # threads race above, with the same locks
def test_processes_that_race_never_overdraw_anything(database_url: str) -> None:
    limits = replace(WIDE, members_per_hour=115)
    db = Database(database_url)
    a_campaign(db)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, database_url, str(number)], stderr=subprocess.PIPE
        )
        for number in range(2)
    ]
    told = [process.communicate(timeout=100)[1].decode() for process in processes]

    assert [process.returncode for process in processes] == [0, 0], told
    assert 115 - check_record(db, limits, 10**6) < least_members(TWENTY)
    with db.read() as session:
        assert len(list(session.scalars(select(ExperimentRow.id)))) >= 6
    db.close()
