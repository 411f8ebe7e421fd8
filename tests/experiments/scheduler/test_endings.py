"""How runs end: complete, or with what stays open, how much of it, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from ldfi.experiments.domain.campaign.calendar import Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.ending import COMPLETE, Ending, LeftOpen
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import CampaignRow, NotificationRow
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Rule
from ldfi.solver import Explorer, OutOfTime
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import QUICK, Edge, World
from tests.kit.campaigns import experiments_of, start

ONE = Call("root", (Step("critical", (Call("layout"),)),))
TWO = Call("root", (Step("critical", (Call("layout"),)), Step("optional", (Call("legacy"),))))
FEW = replace(QUICK, treatment=0.12, control=0.12, verify=False, confirm=False, alpha_harmful=1e-9)


@dataclass
class Bare(Edge):
    """Its services have no ``fit`` where ``legacy`` is called, so nothing fires there."""

    def claim(self, path: str, device: str, now: float) -> tuple[Rule, Arm, bool] | None:
        claimed = super().claim(path, device, now)
        if claimed is None:
            return None
        rule, arm, again = claimed
        faults = tuple(f for f in rule.faults if f.point != "legacy")
        return replace(rule, faults=faults), arm, again


def to_its_end(world: World, campaign: Campaign, requests: int = 40) -> CampaignRow:
    """Let a run go on to its end; gives what is on record."""
    run = campaign.run
    for _ in range(600):
        world.step(requests)
        if not campaign.live() or campaign.run != run:
            break
    with world.database.read() as session:
        return session.get_one(CampaignRow, campaign.id)


def left_open(row: CampaignRow, kind: str = "") -> LeftOpen:
    """What a run leaves open in the one class that there is. ``kind``: how it must have ended."""
    ending = Ending.from_json(row.ending)
    assert ending is not None
    assert ending.kind == (kind or ending.kind)
    (left,) = ending.left
    return left


def test_what_was_inconclusive_three_times_is_not_fine(db: Database) -> None:
    # Given a class with one hypothesis, and too little traffic for a verdict
    world = World(db, {"/boot": ONE})
    world.steps(5)
    campaign = start(world, FEW)
    # When the campaign has tried it as often as it may
    row = to_its_end(world, campaign, requests=2)
    # Then it says that it stayed open, how much and why, on record and to people
    assert {each.verdict for each in experiments_of(db)} == {"inconclusive"}
    assert row.state == "finished"
    assert row.reason != COMPLETE
    assert row.reason == "not everything is decided: 1 hypothesis stays open (window over: 1)"
    left = left_open(row, "open")
    assert (left.request_class, left.named) == ("GET /boot", (("error@layout",),))
    with db.read() as session:
        told = [each.document for each in session.query(NotificationRow)]
    assert row.reason in str(told)


def test_what_is_decided_is_complete(db: Database) -> None:
    world = World(db, {"/boot": ONE})
    row = to_its_end(world, start(world))
    assert (row.reason, row.ending) == (COMPLETE, Ending().to_json())


def test_the_next_run_forgets_how_the_last_one_ended(db: Database) -> None:
    world = World(db, {"/boot": ONE})
    world.steps(5)
    campaign = start(world, FEW, schedule=Schedule("* * * * *"))
    row = to_its_end(world, campaign, requests=2)
    assert row.state == "scheduled"
    assert row.ending is not None
    while campaign.state == "scheduled":
        world.step(2, seconds=10)
    assert campaign.ending is None


def bare(db: Database, **more: Any) -> World:
    """A world in which nobody can inject where ``legacy`` is called."""
    world = World(db, {"/boot": TWO}, **more)
    world.edges = [Bare("edge0")]
    return world


def test_a_point_where_nothing_fires_is_tried_once_in_a_run(db: Database) -> None:
    # Given a service in which nobody can inject
    world = bare(db)
    campaign = start(world, replace(QUICK, max_union=1))
    # When the campaign is over
    row = to_its_end(world, campaign)
    # Then the point has cost members once, and the campaign names it
    tried = [each for each in experiments_of(db) if each.hypothesis == ["error@legacy"]]
    assert [each.reason for each in tried] == ["no fault fired"]
    assert "nothing ever fired at legacy, which was not tried again" in row.reason
    assert left_open(row).silent == ("legacy",)
    # And what can be injected was decided
    assert world.findings() == {("error@layout",): "open"}


def test_a_restart_knows_where_nothing_fires(db: Database) -> None:
    world = bare(db)
    campaign = start(world, replace(QUICK, max_union=1, apart=60.0))  # so that it goes on
    while not any(each.reason == "no fault fired" for each in experiments_of(db)):
        world.step()
    # When the service starts again
    again = bare(db, engine=Engine(db, now=world.now))
    again.now = world.now
    again.step()
    row = to_its_end(again, again.engine.scheduler.state.campaigns[campaign.id])
    # Then it is not tried again either
    tried = [each for each in experiments_of(db) if each.hypothesis == ["error@legacy"]]
    assert [each.reason for each in tried if each.state == "decided"] == ["no fault fired"]
    assert "nothing ever fired at legacy" in row.reason


def test_the_next_run_tries_once_more_what_was_set_aside(db: Database) -> None:
    world = bare(db)
    campaign = start(world, replace(QUICK, max_union=1), schedule=Schedule("* * * * *"))
    to_its_end(world, campaign)
    # Given that somebody has put fit there
    world.edges = [Edge("edge0")]
    while campaign.state == "scheduled":
        world.step(seconds=10)
    row = to_its_end(world, campaign)
    assert row.reason == COMPLETE
    verdicts = [each.verdict for each in experiments_of(db) if each.hypothesis == ["error@legacy"]]
    assert verdicts[:2] == ["inconclusive", "tolerated"]  # and perhaps again, to be firm
    assert set(verdicts[2:]) <= {"tolerated"}


def test_a_solver_out_of_time_is_not_done(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(db)
    campaign = start(world)

    def never(explorer: Explorer) -> None:
        raise OutOfTime("too hard")

    monkeypatch.setattr(Explorer, "propose", never)
    row = to_its_end(world, campaign)
    assert row.reason.startswith("the solver ran out of time: 3 hypotheses stay open")
    assert left_open(row, "out of time").count == 3


def test_a_run_whose_members_are_spent_ends_and_says_so(db: Database) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, members=10, member_budget=15, max_union=1))
    row = to_its_end(world, campaign)
    assert row.state == "finished"
    assert row.reason.startswith("the campaign's budget is spent: ")
    assert "not tried" in row.reason
    assert sum(map(len, world.exposed.values())) <= 15


def test_one_experiment_that_gives_no_answer_says_so(db: Database) -> None:
    world = World(db, {"/boot": ONE})
    world.steps(5)
    asked = frozenset({"error@layout"}), frozenset({"error@nowhere"})
    row = to_its_end(world, start(world, FEW, hypotheses=asked), requests=2)
    assert row.reason == (
        "not everything is decided: 2 hypotheses stay open "
        "(its points were not seen in this class: 1, window over: 1)"
    )
