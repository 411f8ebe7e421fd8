"""The engine, from spans and outcomes to findings, on a clock of our own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from ldfi.errors import Conflict, Halted, NotFound
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.catalogue import ClassChange
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler.engine import AT_ONCE, Engine
from ldfi.experiments.store.database import SERVICE, Change, Database
from ldfi.experiments.store.schema import AuditRow, CampaignRow, FindingRow
from ldfi.testing.programs import Call, Step
from ldfi.testing.spans import span
from ldfi.testing.world import FOUND, PROGRAM, QUICK, World
from tests.kit.campaigns import experiments_of, start


def test_a_refused_call_without_an_address_is_no_point_of_its_own(db: Database) -> None:
    # Given a service of which some calls by gRPC are refused, and say no address
    engine = Engine(db, now=0.0, outcomes="root")
    connected, refused = "api>rpc:Get:carts:7070/shop.Cart", "api>rpc:Get:/shop.Cart"
    for number in range(200):
        trace, lost = f"{number:032x}", number % 10 == 9
        root = span("root", kind="server", trace=trace, method="GET", url="http://api/")
        call = span("call", "root", trace=trace, failed=lost, point=refused if lost else connected)
        engine.receive_spans([root, call], number)
        engine.tick(number + 100.0)
    # Then all of them are calls of one point
    (known,) = engine.catalogue.classes.values()
    assert known.traffic.usually_called() == {connected}
    assert set(known.traffic.topology.paths) == {connected}


def test_edges_and_record_know_for_how_long_contexts_hold(db: Database) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, patience=40.0))
    world.until_armed()
    world.step()
    (rule,) = world.edges[0].lease.rules
    assert rule.patience == 40.0
    (row,) = experiments_of(db)
    lease = world.engine.waits.lease
    assert row.lease_until is not None
    assert row.lease_until >= world.now - 1 + 40.0 + lease / 3
    assert world.edges[0].lease.ends <= world.now + lease, "only contexts hold for longer"
    (experiment,) = campaign.active()
    assert (experiment.holds, experiment.settings.settle) == (40.0, QUICK.settle + 40.0)


def test_a_class_knows_what_ends_minutes_after_its_requests(db: Database) -> None:
    # Given a class of requests that each send a message
    engine = Engine(db, now=0.0, outcomes="root")
    for number in range(30):
        trace = f"{number + 1:032x}"
        entry = span("root", None, "server", "api", trace=trace, method="POST", path="/orders")
        point = "api>message:send:kafka/orders"
        send = span("send", "root", "producer", "api", trace=trace, point=point)
        engine.receive_spans([entry, send], now=1.0)
    engine.tick(1.0 + AT_ONCE.patience)  # so long nobody knows whether consumers write spans
    # When a consumer of one is done minutes later
    engine.receive_spans([span("pack", "send", "consumer", "store", trace=f"{1:032x}")], now=400.0)
    engine.tick(401.0)
    # Then it is counted, and the class says that it is not looked at
    assert engine.drops()["span_late"] == 1
    (known,) = engine.catalogue.classes.values()
    assert known.traffic.not_looked_at() == {
        "api>message:send:kafka/orders": "what became of its messages was not seen",
        "store: pack": "ended after its trace was judged",
    }


def test_from_traffic_to_findings(db: Database) -> None:
    # Given a service that watches an application with one single and one double weakness
    world = World(db, edges=2)
    campaign = start(world)
    # When traffic goes on until nothing is left to try
    world.steps(120)
    # Then it has found them, confirmed them, and written them down
    end = ("finished", "nothing left to try within the bounds")
    assert (campaign.state, campaign.reason) == end
    assert world.findings() == dict.fromkeys(FOUND, "open")
    rows = experiments_of(db)
    assert {row.state for row in rows} == {"decided"}
    assert [row.purpose for row in rows].count("confirm") == 2
    # And nothing is armed any more, and every exposed device is charged, none twice
    assert not world.rules()
    assert all(row.members_charged == len(world.exposed[row.id]) for row in rows)
    # And all of it is in the audit
    with db.read() as session:
        what = set(session.scalars(select(AuditRow.what)))
    assert {"campaign running", "experiment armed", "experiment harmful", "finding open"} <= what


def test_halt_disarms_at_once_and_nothing_starts_before_resume(db: Database) -> None:
    world = World(db)
    campaign = start(world)
    world.until_armed()

    world.engine.scheduler.switch.halt("release", "operator", world.now)

    assert not world.rules()
    world.steps(5)
    assert not world.rules()
    assert "halted" in campaign.waiting[""]
    assert {row.state for row in experiments_of(db)} == {"aborted"}
    with pytest.raises(Halted, match="ldfi resume"):
        start(world)
    world.engine.scheduler.switch.resume("operator", world.now)
    world.until_armed()


def test_a_halt_by_another_process_is_followed(db: Database) -> None:
    world, other = World(db), Engine(db, now=1000.0)
    start(world)
    world.until_armed()

    other.scheduler.switch.halt("elsewhere", "operator", world.now)
    world.step()

    assert not world.rules()


def test_no_experiment_starts_while_the_steady_state_does_not_hold(db: Database) -> None:
    world = World(db)
    world.steps(3)
    for number in range(100):
        trace_id = f"{10_000 + number:032x}"
        url = "http://api/boot"
        root = span("root", kind="server", trace=trace_id, failed=True, method="GET", url=url)
        world.engine.receive_spans([root], world.now)
        world.engine.receive_outcomes([Outcome(trace_id, f"x{number}", "", False)], world.now)
    campaign = start(world)
    world.now += 1
    world.engine.tick(world.now)
    world.engine.tick(world.now + 1)

    assert not world.rules()
    assert "steady state" in campaign.waiting["GET /boot"]


def test_budgets_are_never_overspent(db: Database) -> None:
    # Given budgets that are not enough for the campaign, and several edges
    limits = Limits(members_per_hour=45, members_per_day=60)
    world = World(db, edges=3, limits=limits)
    campaign = start(world, replace(QUICK, members=20))
    # When it has gone on for an hour
    world.steps(60)
    spent = sum(map(len, world.exposed.values()))
    # Then it has stopped within the budget of the hour, and says so
    assert 0 < spent <= 45
    assert "budget of the last hour" in campaign.waiting["GET /boot"]
    # And in the next hour within that of the day
    world.now += 3_600
    world.steps(60)
    assert spent <= sum(map(len, world.exposed.values())) <= 60
    assert "budget of the last day" in campaign.waiting["GET /boot"]


def test_schedulers_that_race_share_one_budget_and_one_slot_for_each_class(db: Database) -> None:
    limits = Limits(members_per_hour=70)
    one, other = World(db, limits=limits), World(db, limits=limits)
    start(one, replace(QUICK, members=20))
    start(other, replace(QUICK, members=20))
    for _ in range(60):
        one.step()
        other.step()
        active = [row.active_class for row in experiments_of(db) if row.active_class]
        assert len(active) <= 1

    exposed = [devices for world in (one, other) for devices in world.exposed.values()]
    assert len(exposed) > 1
    assert sum(map(len, exposed)) <= 70


def test_many_classes_at_once_and_no_device_in_two_experiments(db: Database) -> None:
    fragile = Call("root", (Step("critical", (Call("one"), Call("two"))),))
    world = World(db, {f"/p{n}": fragile for n in range(6)}, edges=2)
    campaign = start(world, replace(QUICK, concurrency=4, treatment=0.1, control=0.1, window=60.0))
    most = 0
    for _ in range(500):
        if campaign.state == "finished":
            break
        before = {name: set(devices) for name, devices in world.exposed.items()}
        world.step(requests=20)
        new = [devices - before.get(name, set()) for name, devices in world.exposed.items()]
        assert sum(map(len, new)) == len(set().union(*new))
        most = max(most, len(world.rules()))

    assert most == 4
    assert campaign.state == "finished"
    with db.read() as session:
        assert len(list(session.scalars(select(FindingRow)))) == 6


def test_an_edge_that_is_cut_off_blocks_its_class_until_its_lease_has_run_out(db: Database) -> None:
    world = World(db, edges=2)
    start(world, replace(QUICK, admission="all"))
    first = world.until_armed()
    world.step()
    world.edges[1].cut_off = True
    world.engine.scheduler.switch.halt("test", "operator", world.now)
    world.step()
    # The edge that is there has confirmed; the other one may go on until its lease ends
    (row,) = (row for row in experiments_of(db) if row.id == first)
    assert row.state == "settling"
    assert row.active_class
    world.steps(12)
    (row,) = (row for row in experiments_of(db) if row.id == first)
    assert row.state == "aborted"
    assert row.active_class is None
    assert world.last_treated[first] <= world.edges[1].lease.ends
    # Nobody knows how many it has used, so all that it asked for and was granted is charged
    assert len(world.exposed[first]) <= row.members_charged < row.members_reserved


def test_a_restart_goes_on_where_it_was(db: Database) -> None:
    # Given a campaign that is broken off in the middle, without a word
    world = World(db)
    campaign = start(world)
    while len([row for row in experiments_of(db) if row.state == "decided"]) < 3:
        world.step()
    decided = {row.id for row in experiments_of(db) if row.state == "decided"}
    # When the service comes up again
    world.engine = Engine(db, now=world.now)
    again = world.engine.scheduler.state.campaigns[campaign.id]
    world.steps(120)
    # Then the campaign has gone on to its end, and nothing decided was tried again
    assert again.state == "finished"
    assert world.findings() == dict.fromkeys(FOUND, "open")
    tried = [
        (row.purpose, *row.hypothesis)
        for row in experiments_of(db)
        if row.state == "decided" and row.verdict != "inconclusive"
    ]
    assert len(tried) == len(set(tried))
    assert decided <= {row.id for row in experiments_of(db) if row.state == "decided"}
    # And what was running is closed, charged with all it had reserved
    for row in experiments_of(db):
        assert row.state in {"decided", "aborted"}
        assert len(world.exposed[row.id]) <= row.members_charged


def test_a_maintenance_window_ends_what_it_touches_and_lets_nothing_start(db: Database) -> None:
    world = World(db)
    campaign = start(world)
    world.until_armed()
    window = Maintenance("m1", "ann", "upgrade", ("layout",), world.now, world.now + 20)

    world.engine.scheduler.commands.open_maintenance(window, "ann", world.now)
    world.steps(8)

    assert not world.rules()
    assert "maintenance of layout by ann: upgrade" in campaign.waiting["GET /boot"]
    world.steps(15)
    world.until_armed()


def test_protected_points_are_never_touched(db: Database) -> None:
    world = World(db, limits=Limits(protected_points=("lay*",)))
    campaign = start(world)
    world.steps(120)

    assert campaign.state == "finished"
    assert set(world.findings()) == {("error@playlist", "error@popular")}
    assert not any("layout" in fault for row in experiments_of(db) for fault in row.faults)


def test_above_a_risk_an_operator_has_to_approve(db: Database) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, approve_above=0.0, max_size=1, confirm=False))
    world.steps(10)
    (waiting,) = campaign.running.values()
    assert waiting.state == "waiting"
    assert not world.rules()

    world.engine.scheduler.commands.approve(waiting.id, "ann", world.now)
    world.until_armed()
    assert world.rules() == [waiting.id]
    while not waiting.over:
        world.step()
    while not campaign.running:
        world.step()
    (other,) = campaign.running.values()
    world.engine.scheduler.commands.reject(other.id, "not today", "ann", world.now)
    # Then that is never tried again in this campaign, not even after a restart
    world.engine = Engine(db, now=world.now)
    for _ in range(30):
        world.step()
        armed = [row.hypothesis for row in experiments_of(db) if row.armed_at is not None]
        assert sorted(other.hypothesis) not in armed
        running = [c.running.values() for c in world.engine.scheduler.state.campaigns.values()]
        assert all(e.hypothesis != other.hypothesis for each in running for e in each)


def test_a_repaired_finding_is_fixed_and_one_that_comes_back_has_regressed(db: Database) -> None:
    world = World(db)
    start(world)
    world.steps(120)
    broken = PROGRAM
    # When the single weakness is repaired, and a new campaign verifies what is known
    repaired = Step("optional", (Call("layout"),))
    world.programs["/boot"] = Call("root", (*broken.steps[:2], repaired))
    start(world)
    world.steps(150)
    assert world.findings()[("error@layout",)] == "fixed"
    assert world.findings()[("error@playlist", "error@popular")] == "open"
    # And when it is brought back
    world.programs["/boot"] = broken
    start(world)
    world.steps(150)
    assert world.findings()[("error@layout",)] == "regressed"


def test_what_is_confirmed_in_a_run_without_a_level_is_a_finding(db: Database) -> None:
    # Given a pair that was found, and a service whose fallback is then taken away
    world = World(db)
    start(world, replace(QUICK, rechecks=0))
    world.steps(120)
    assert world.findings() == dict.fromkeys(FOUND, "open")
    alone = (Step("optional", (Call("ratings"),)), Step("critical", (Call("layout"),)))
    world.programs["/boot"] = Call("root", (*alone, Step("critical", (Call("playlist"),))))
    # When the next campaign tries what was found before, and suspects a part of it
    second = start(world, replace(QUICK, rechecks=0, max_size=1))
    for _ in range(200):
        world.step()
        if not second.live():
            break
    # Then that is confirmed once, and nobody is hurt for it again and again
    assert second.state == "finished"
    assert world.findings()[("error@playlist",)] == "open"
    confirmed = [row for row in experiments_of(db) if row.faults == ["error@playlist"]]
    assert sum(row.purpose == "confirm" for row in confirmed) == 1
    assert {row.state for row in experiments_of(db)} == {"decided"}


@pytest.mark.parametrize(
    ("part", "reason"),
    [("review", "it could not be followed"), ("close", "nothing could be learned")],
)
def test_what_one_experiment_raises_ends_that_one_and_nothing_else(
    db: Database, monkeypatch: pytest.MonkeyPatch, part: str, reason: str
) -> None:
    # Given two classes, and a mistake of ours that only the experiments on one of them meet
    fragile = Call("root", (Step("critical", (Call("one"),)),))
    world = World(db, {"/a": fragile, "/b": fragile})
    owner = Experiment if part == "review" else Campaign
    genuine = getattr(owner, part)

    def mistaken(self: object, *given: object, **named: object) -> object:
        experiment = self if isinstance(self, Experiment) else given[0]
        assert isinstance(experiment, Experiment)
        if experiment.request_class == "GET /a":
            raise ZeroDivisionError("a mistake")
        return genuine(self, *given, **named)

    monkeypatch.setattr(owner, part, mistaken)
    start(world, replace(QUICK, treatment=0.2, control=0.2, rechecks=0))
    # When both are tried for a while
    world.steps(120)
    # Then the others have found what there is, and each of these is on record with what went wrong
    rows = experiments_of(db)
    ended = [row for row in rows if row.ended_at is not None]
    assert {row.state for row in ended if row.request_class == "GET /b"} == {"decided"}
    assert ("error@one",) in world.findings()
    mistakes = [row for row in ended if row.request_class == "GET /a"]
    assert {(row.state, row.verdict) for row in mistakes} == {("aborted", None)}
    assert all(row.reason == f"{reason}: ZeroDivisionError: a mistake" for row in mistakes)
    assert all(len(world.exposed[row.id]) <= row.members_charged for row in mistakes)


def test_a_finding_with_a_fallback_is_verified_in_a_campaign_of_its_own(db: Database) -> None:
    world = World(db)
    start(world)
    world.steps(120)
    pair = frozenset({"error@playlist", "error@popular"})
    # When a new campaign is asked to try just that finding, whose fallback no good run ever calls
    start(world, hypotheses=(pair,), classes=("GET /boot",))
    world.steps(40)
    # Then it has been verified, once
    verified = [row for row in experiments_of(db) if row.purpose == "verify"]
    assert [(row.verdict, set(row.hypothesis)) for row in verified] == [("harmful", set(pair))]


def test_a_class_whose_lineage_changed_is_explored_anew(db: Database) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, min_traffic=600))
    world.steps(16)
    world.until_armed()
    program = PROGRAM
    world.programs["/boot"] = Call("root", (*program.steps, Step("critical", (Call("new"),))))
    world.steps(200)

    assert campaign.state == "finished"
    assert ("error@new",) in world.findings()
    assert world.engine.catalogue.classes["GET /boot"].version == 2


def test_a_class_held_for_drift_stays_held_over_a_restart(db: Database) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, min_traffic=600, on_drift="pause"))
    world.steps(16)
    world.until_armed()
    program = PROGRAM
    world.programs["/boot"] = Call("root", (*program.steps, Step("critical", (Call("new"),))))
    while not campaign.held:
        world.step()
    world.engine = Engine(db, now=world.now)
    world.steps(20)
    assert not world.rules()

    world.engine.scheduler.commands.release(campaign.id, "GET /boot", "ann", world.now)
    world.until_armed()


def test_an_asked_for_experiment_is_confirmed_before_anybody_is_told(db: Database) -> None:
    world = World(db)
    start(world, hypotheses=(frozenset({"error@layout"}),), classes=("GET /boot",))
    world.steps(60)
    assert [row.purpose for row in experiments_of(db)] == ["explore", "confirm"]
    assert world.findings() == {("error@layout",): "open"}


def test_what_comes_too_late_is_counted(db: Database) -> None:
    world = World(db)
    start(world, replace(QUICK, max_size=1))
    experiment = world.until_armed()
    while experiment in world.rules():
        world.step()
    world.steps(3)
    marks: dict[str, Any] = {"experiment": experiment, "arm": "treatment"}
    asked = {"method": "GET", "url": "http://a/boot", **marks}
    late = span("root", kind="server", trace="e" * 32, **asked)
    world.engine.receive_spans([late], world.now)
    world.engine.receive_outcomes([Outcome("e" * 32, "late", "", success=False)], world.now)
    world.step()

    assert world.engine.drops()["late"] == 1


def test_what_cannot_be_used_is_counted(db: Database) -> None:
    engine = Engine(db, now=1000.0)
    circle = [span("a", "b", trace="c" * 32), span("b", "a", trace="c" * 32)]
    lost = [span("x", kind="server", trace="d" * 32), span("y", "lost", trace="d" * 32)]
    engine.receive_spans(circle + lost, 1000.0)
    engine.receive_outcomes([Outcome("e" * 32, "d1", "", success=True)], 1000.0)
    stranger = span("r", kind="server", trace="f" * 32, experiment="unheard-of", arm="treatment")
    engine.receive_spans([stranger], 1000.0)
    engine.receive_outcomes([Outcome("f" * 32, "d2", "", success=True)], 1000.0)
    engine.tick(1002.0)
    engine.tick(1100.0)

    drops = engine.drops()
    assert drops["trace_without_root"] == 1
    assert drops["trace_incomplete"] == 1
    assert drops["join_unknown_trace"] == 1
    assert drops["unknown_experiment"] == 1


def test_campaigns_are_stopped_paused_and_found_by_name(db: Database) -> None:
    world = World(db)
    scheduler = world.engine.scheduler
    first, second = start(world), start(world, classes=("GET /elsewhere*",))
    world.until_armed()

    scheduler.commands.pause(first.id, "lunch", "ann", world.now)
    assert not world.rules()
    world.steps(3)
    assert not world.rules()
    scheduler.commands.unpause(first.id, "ann", world.now)
    world.until_armed()
    scheduler.commands.stop(first.id, "enough", "ann", world.now)
    assert not world.rules()
    world.steps(3)

    assert not second.explorations
    with pytest.raises(NotFound, match="nowhere"):
        scheduler.commands.stop("nowhere", "enough", "ann", world.now)
    with pytest.raises(Conflict, match="stopped"):
        scheduler.commands.stop(first.id, "again", "ann", world.now)
    with db.read() as session:
        states = {row.id: row.state for row in session.scalars(select(CampaignRow))}
    assert states == {first.id: "stopped", second.id: "running"}


GONE = OperationalError("COMMIT", {}, Exception("gone"))


@contextmanager
def away(monkeypatch: pytest.MonkeyPatch, what: str) -> Iterator[None]:
    """Have the database gone whenever the store does this."""

    def fail(*_: object) -> None:
        raise GONE

    with monkeypatch.context() as patch:
        patch.setattr(f"ldfi.experiments.store.{what}", fail)
        yield


def test_a_halt_that_cannot_be_put_on_record_holds_all_the_same(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(db)
    start(world)
    world.until_armed()
    # Given a database that is away just when everything has to stop
    with away(monkeypatch, "halts.set_halted"):
        with pytest.raises(OperationalError):
            world.engine.scheduler.switch.halt("now", "ann", world.now)
        assert not world.rules()
        with pytest.raises(OperationalError):
            world.step()
        assert not world.rules()
    # Then it is put on record when the database is back, and nothing has started meanwhile
    world.steps(5)
    assert not world.rules()
    assert Engine(db, now=world.now).scheduler.state.halted == "now"


def test_a_halt_that_is_heeded_before_it_is_on_record_holds(db: Database) -> None:
    world = World(db)
    campaign = start(world)
    world.until_armed()
    switch = world.engine.scheduler.switch
    # Given a halt that somebody else is still putting on record
    switch.heed("now")
    assert not world.rules()
    # When the engine looks at the record, Then it holds all the same, and nothing runs any more
    world.steps(5)
    assert not world.rules()
    assert "halted" in campaign.waiting[""]
    assert {row.state for row in experiments_of(db)} == {"aborted"}
    # And where that came to nothing, the engine writes it itself, until somebody resumes
    switch.owe("now", "ann")
    world.steps(2)
    assert Engine(db, now=world.now).scheduler.state.halted == "now"
    switch.resume("ann", world.now)
    world.until_armed()


def test_a_halt_that_is_heeded_takes_no_reason_away(db: Database) -> None:
    world = World(db)
    scheduler = world.engine.scheduler
    scheduler.switch.halt("checkout is slow", "ann", world.now)
    scheduler.switch.heed("records are down")
    scheduler.switch.heed("checkout is slow")
    assert scheduler.state.halted == "checkout is slow; also: records are down"


def test_a_halt_heeded_and_lifted_before_the_next_step_aborts_what_ran(db: Database) -> None:
    world = World(db)
    start(world)
    world.until_armed()
    switch = world.engine.scheduler.switch

    switch.heed("now")
    switch.resume("ann", world.now)

    (ended,) = experiments_of(db)
    assert (ended.state, ended.reason) == ("settling", "halted: now")
    world.until_armed()


def test_a_halt_that_the_database_cuts_short_ends_everything_at_the_next_step(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two experiments that run at once
    fragile = Call("root", (Step("critical", (Call("one"), Call("two"))),))
    world = World(db, {"/a": fragile, "/b": fragile})
    campaign = start(world, replace(QUICK, treatment=0.1, control=0.1, concurrency=2))
    while len(world.rules()) < 2:
        world.step()
    armed = campaign.active()
    # When the database fails after the halt is on record, and before any of them is
    with away(monkeypatch, "experiments.move"), pytest.raises(OperationalError):
        world.engine.scheduler.switch.halt("now", "ann", world.now)
    assert not world.rules()
    world.steps(12)
    # Then both end as halted, and neither gets a verdict
    assert [(each.state, each.reason) for each in armed] == [("aborted", "halted: now")] * 2


def test_a_drift_is_told_to_every_campaign_although_the_database_fails_in_between(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two campaigns on a class, of which the first has an experiment armed
    world = World(db)
    settings = replace(QUICK, on_drift="pause")
    first, second = start(world, settings), start(world, settings)
    while not (first.active() and second.explorations):
        world.step()
    # When its lineage changes, and the database is away just when the experiment is disarmed
    known = world.engine.catalogue.classes["GET /boot"]
    drifted = ClassChange("changed", known, frozenset({"new"}))
    with away(monkeypatch, "experiments.move"), monkeypatch.context() as patch:
        patch.setattr(world.engine.catalogue, "changes", lambda: [drifted])
        with pytest.raises(OperationalError):
            world.engine.tick(world.now + 0.6)
    world.engine.board.clear()  # as the engine does
    world.engine.tick(world.now + 1.2)
    # Then both hold the class, and that is on record
    assert first.held == second.held == {"GET /boot"}
    with db.read() as session:
        assert [row.held for row in session.scalars(select(CampaignRow))] == [["GET /boot"]] * 2


def test_a_scheduler_that_stalled_gives_up_what_another_one_has_closed(db: Database) -> None:
    world, other = World(db), Engine(db, now=1000.0)
    start(world)
    first = world.until_armed()
    # Given a scheduler that did nothing for longer than a lease, and another that was there
    world.now += 30
    other.tick(world.now)
    (row,) = (row for row in experiments_of(db) if row.id == first)
    assert (row.state, row.reason) == ("aborted", "whoever ran it was gone")
    # Then it disarms that experiment alone and goes on
    world.step()
    assert first not in world.rules()
    world.until_armed()
    (row,) = (row for row in experiments_of(db) if row.id == first)
    assert row.verdict is None


def test_a_campaign_that_is_over_takes_no_room(db: Database) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, max_size=1, rechecks=0))
    world.steps(150)
    assert campaign.state == "finished"
    assert campaign.id not in world.engine.scheduler.state.campaigns
    with db.read() as session:
        assert session.get_one(CampaignRow, campaign.id).certificates


class Flaky:
    """A database that now and then fails: before it has done anything, or after it has done all,
    when only its answer is lost."""

    def __init__(self, db: Database, seed: int, share: float) -> None:
        self._change = db.change
        self._chance = random.Random(seed)
        self.share = share
        self.failed = 0

    @contextmanager
    def change(self, now: float, who: str = SERVICE) -> Iterator[Change]:
        fails = self._chance.random() < self.share
        self.failed += fails
        if fails and self._chance.random() < 0.5:
            raise GONE
        with self._change(now, who) as change:
            yield change
        if fails:
            raise GONE


@pytest.mark.parametrize("seed", range(6))
def test_a_database_that_fails_now_and_then_loses_nothing(
    db: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    world = World(db)
    campaign = start(world, replace(QUICK, admission="all"))  # short ones: some must get through
    # Given a database of which every fifth transaction fails
    flaky = Flaky(db, seed, share=0.2)
    monkeypatch.setattr(db, "change", flaky.change)
    for _ in range(300):
        try:
            world.step()
        except OperationalError:
            world.engine.board.clear()  # as the engine does
    assert flaky.failed > 10
    # When it is well again
    flaky.share = 0.0
    world.steps(120)
    # Then what was found is on record, and so is the end of everything
    assert world.findings() == dict.fromkeys(FOUND, "open")
    assert {row.state for row in experiments_of(db)} <= {"decided", "aborted"}
    with db.read() as session:
        row = session.get_one(CampaignRow, campaign.id)
        assert row.state == "finished"
        # and what was out of time each time it was tried is said to be open
        open_still = "not everything is decided: 1 hypothesis stays open (window over: 1)"
        assert row.reason in {"nothing left to try within the bounds", open_still}
        cut_short = Counter(
            tuple(each.faults) for each in experiments_of(db) if each.reason == "window over"
        )
        assert 3 in cut_short.values() or row.reason != open_still


def test_a_campaign_of_which_nobody_knows_whether_it_was_started_goes_on_if_it_was(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(db)
    # Given campaigns whose start is answered by an error, whether it is on record or not
    for seed in range(12):
        with monkeypatch.context() as patch:
            patch.setattr(db, "change", Flaky(db, seed, share=1.0).change)
            with pytest.raises(OperationalError):
                start(world)
    with db.read() as session:
        on_record = set(session.scalars(select(CampaignRow.id)))
    assert 0 < len(on_record) < 12
    # Then those on record run
    world.steps(2)
    assert set(world.engine.scheduler.state.campaigns) == on_record
