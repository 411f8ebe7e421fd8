"""What injectors report, and what campaigns make of it: what nobody can inject is not proposed."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from ldfi.checker.solving import check
from ldfi.checker.solving.assumptions import assumed
from ldfi.experiments.domain.campaign.ending import COMPLETE
from ldfi.experiments.domain.traffic.injectors import EVERY_KIND
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.kinds import FaultKind
from ldfi.fit.protocol.rules import Rule
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import QUICK, World
from tests.experiments.scheduler.test_endings import Bare, left_open, to_its_end
from tests.kit.campaigns import experiments_of, start

LAYOUT, LEGACY, BACKUP = "api>http:GET:layout/", "api>db:SELECT:old/marks", "api>rpc:Get:/b.Backup"
PROGRAM = Call(
    "root",
    (Step("critical", (Call(LAYOUT),)), *(Step("optional", (Call(p),)) for p in (LEGACY, BACKUP))),
)


numbers = itertools.count(1)


def reporting(text: str, now: float) -> Span:
    """The span by which an injector reports, as it comes in."""
    number, at = next(numbers), int(now * 1e9)
    what = operation("api", "fit.reach", "internal", 0, False, (("reach", text),))
    return Span(f"{number:f>32}", f"{number:f>16}", None, at, at, what)


def told(world: World, text: str) -> None:
    """An injector reports, and time enough goes by for that to have come."""
    world.engine.receive_spans([reporting(text, world.now)], world.now)
    for _ in range(3):
        world.step(10, seconds=1.5)


def tried(db: Database) -> set[str]:
    return {fault for each in experiments_of(db) for fault in each.faults}


def certificate_of(world: World, campaign_id: str) -> dict[str, Any]:
    scheduler = world.engine.scheduler
    (one,) = scheduler.certificates(scheduler.state.campaigns[campaign_id])
    certificate: dict[str, Any] = one["certificate"]
    return certificate


def test_what_has_no_injector_is_never_proposed_and_is_named(db: Database) -> None:
    # Given a service whose injector reaches its calls over HTTP, and nothing else
    world = World(db, {"/boot": PROGRAM})
    told(world, "1 python/0.2.0 api>http:*")
    # When a campaign goes to its end
    campaign = start(world, QUICK)
    row = to_its_end(world, campaign)
    # Then nothing else was tried
    assert tried(db) == {f"refused@{LAYOUT}"}
    assert world.findings() == {(f"refused@{LAYOUT}",): "open"}
    # And it says so where it ends, with what to install
    assert row.reason != COMPLETE
    assert f"no injector at {LEGACY}, {BACKUP}, which was not tried" in row.reason
    left = left_open(row)
    assert set(left.unreached) == {LEGACY, BACKUP}
    assert left.unreached[LEGACY] == "fit in api, for a client library that fit knows"
    # And on the certificate, which is borne out
    (one,) = row.certificates
    bounds = one["certificate"]["axioms"]["bounds"]
    assert bounds["no_injector"] == {f"error@{p}": left.unreached[p] for p in (LEGACY, BACKUP)}
    assert check(one["certificate"]) == []
    said = assumed(one["certificate"])
    install = left.unreached[LEGACY]
    assert f"error@{LEGACY}: install {install}" in said["no injector, and not tried"]


def test_without_a_report_everything_is_tried_as_before(db: Database) -> None:
    world = World(db, {"/boot": PROGRAM})
    told(world, "1 python/0.2.0 web>http:*")
    row = to_its_end(world, start(world, QUICK))
    assert {fault.partition("@")[2] for fault in tried(db)} == {LAYOUT, LEGACY, BACKUP}
    assert row.reason == COMPLETE


def test_a_kind_that_no_injector_has_there_is_not_proposed(db: Database) -> None:
    world = World(db, {"/boot": PROGRAM})
    told(world, "1 ldfi-proxy/envoy api>http:*|refused,delay api>*:SELECT:*|error api>rpc:*|delay")
    row = to_its_end(world, start(world, replace(QUICK, kinds=("error", "reset"))))
    assert tried(db) == {f"refused@{LAYOUT}", f"error@{LEGACY}"}
    unreached = {f"reset@{LAYOUT}", f"reset@{LEGACY}", BACKUP}
    assert set(left_open(row).unreached) == unreached


def test_a_report_in_the_middle_of_a_run_counts_from_then_on(db: Database) -> None:
    # Given a campaign in which two points have no injector
    world = World(db, {"/boot": PROGRAM})
    told(world, "1 python/0.2.0 api>http:*")
    campaign = start(world, replace(QUICK, apart=60.0))  # so that it goes on
    while not experiments_of(db):
        world.step()
    # When a proxy is put beside the service
    told(world, "1 ldfi-proxy/reverse api>rpc:*:/b.*")
    row = to_its_end(world, campaign)
    # Then what it reaches is tried, too
    assert f"error@{BACKUP}" in tried(db)
    assert f"error@{LEGACY}" not in tried(db)
    assert f"no injector at {LEGACY}, which" in row.reason


def test_a_restart_knows_what_was_reported(db: Database) -> None:
    world = World(db, {"/boot": PROGRAM})
    told(world, "1 python/0.2.0 api>http:*")
    campaign = start(world, replace(QUICK, apart=60.0))
    while not experiments_of(db):
        world.step()
    before = certificate_of(world, campaign.id)["axioms"]["bounds"]
    # When the service starts again
    again = World(db, {"/boot": PROGRAM}, engine=Engine(db, now=world.now))
    again.now = world.now
    again.step()
    # Then it says the same, and goes on as it would have
    assert certificate_of(again, campaign.id)["axioms"]["bounds"] == before
    assert "no_injector" in before
    to_its_end(again, again.engine.scheduler.state.campaigns[campaign.id])
    assert tried(db) == {f"refused@{LAYOUT}"}


class Elsewhere(Bare):
    """Its services have no ``fit`` where the old database is called."""

    def claim(self, path: str, device: str, now: float) -> tuple[Rule, Arm, bool] | None:
        claimed = super(Bare, self).claim(path, device, now)
        if claimed is None:
            return None
        rule, arm, again = claimed
        return replace(rule, faults=tuple(f for f in rule.faults if f.point != LEGACY)), arm, again


def test_what_never_fires_stands_on_the_certificate_as_without_an_injector(db: Database) -> None:
    # Given a service that reports nothing, and cannot inject into one of its calls
    world = World(db, {"/boot": PROGRAM})
    world.edges = [Elsewhere("edge0")]
    campaign = start(world, replace(QUICK, max_union=1))
    row = to_its_end(world, campaign)
    # Then that is found out by one experiment, and the certificate names the point
    (one,) = row.certificates
    assert set(one["certificate"]["axioms"]["bounds"]["no_injector"]) == {f"error@{LEGACY}"}
    assert f"nothing ever fired at {LEGACY}" in row.reason
    assert len([each for each in experiments_of(db) if each.hypothesis == [f"error@{LEGACY}"]]) == 1


def test_what_fired_has_an_injector_even_where_a_report_does_not_name_it(db: Database) -> None:
    # Given an older injector, which reports nothing, and whose faults have fired
    world = World(db, {"/boot": PROGRAM})
    to_its_end(world, start(world, QUICK))
    known = world.engine.scheduler.state.injectors
    # When a proxy reports for the same caller
    told(world, "1 ldfi-proxy/reverse api>http:*:layout/*")
    # Then what it does not name is still reached
    assert known.words(LEGACY) == known.words(LAYOUT) == EVERY_KIND
    assert known.words("api>db:SELECT:other/marks") == frozenset()


def test_a_report_is_no_request_and_one_that_cannot_be_read_is_counted(db: Database) -> None:
    # Given a service that believes root spans, as every trace is a request to it
    engine = Engine(db, now=0.0, outcomes="root")
    # When many reports come, some of which cannot be read
    for number in range(60):
        engine.receive_spans([reporting(f"{1 + number % 2} python/9 api>http:*", 0.0)], 0.0)
    engine.tick(100.0)
    # Then nobody takes them for requests
    assert engine.fates()["whole"] == 60
    assert engine.catalogue.classes == {}
    assert {reason for reason, count in engine.drops().items() if count} == {"report_unreadable"}
    assert engine.drops()["report_unreadable"] == 30
    assert engine.scheduler.state.injectors.reports() == {"api": {"python/9": ["api>http:*"]}}


@pytest.mark.parametrize("text", ["1 evil api>nothing:*", "1 evil " + "api>* " * 80])
def test_a_forged_report_can_hide_points_and_nothing_else(db: Database, text: str) -> None:
    world = World(db, {"/boot": PROGRAM})
    told(world, text.strip())
    row = to_its_end(world, start(world, QUICK))
    assert world.findings() in ({}, {(f"refused@{LAYOUT}",): "open"})
    assert ("no injector" in row.reason) == (not tried(db))


ROWS, SESSION = "api>db:SELECT:shop/rows", "api>db:GET:redis"
SHOP = Call(
    "root",
    (
        Step("critical", (Call(LAYOUT, library="httpx"),)),
        Step("optional", (Call(ROWS, library="psycopg2"),)),
        Step("optional", (Call(SESSION, library="redis"),)),
    ),
)
HELD = "1 python/0.3.0 api>db:* api>http:* api>library:fit api>library:httpx api>library:redis"
WHY = "psycopg2 is instrumented by OpenTelemetry and unknown to fit in api"


def test_a_library_that_fit_has_no_hold_of_is_named_and_costs_nobody(db: Database) -> None:
    # Given a program with psycopg2, which fit does not know, and redis, which is patched
    world = World(db, {"/boot": SHOP})
    told(world, HELD)
    # When a campaign goes to its end
    row = to_its_end(world, start(world, QUICK))
    # Then nothing was tried at the point of psycopg2, alone or with others
    assert {fault.partition("@")[2] for fault in tried(db)} == {LAYOUT, SESSION}
    # And the end, its record and the certificate say why
    assert f"not tried: {ROWS} (no injector: {WHY})" in row.reason
    left = left_open(row)
    assert (left.out_of_bounds, set(left.unreached)) == ({ROWS: f"no injector: {WHY}"}, {ROWS})
    (one,) = row.certificates
    assert WHY in one["certificate"]["axioms"]["bounds"]["no_injector"][f"error@{ROWS}"]
    assert check(one["certificate"]) == []


def test_an_older_injector_that_speaks_of_kinds_is_understood_as_before(db: Database) -> None:
    world = World(db, {"/boot": SHOP})
    told(world, "1 python/0.2.0 api>db:* api>http:*")
    row = to_its_end(world, start(world, QUICK))
    assert {fault.partition("@")[2] for fault in tried(db)} == {LAYOUT, ROWS, SESSION}
    assert row.reason == COMPLETE
    assert world.engine.scheduler.state.injectors.by_kind_only() == {"api": ["python/0.2.0"]}


def test_points_that_can_have_none_of_the_kinds_are_named(db: Database) -> None:
    # Given a campaign with a kind that only calls over HTTP can have
    world = World(db, {"/boot": SHOP})
    row = to_its_end(world, start(world, replace(QUICK, kinds=("status:500",))))
    # Then all is decided that there was to decide, and it says what was not
    assert {fault.partition("@")[2] for fault in tried(db)} == {LAYOUT}
    why = "none of the kinds asked for is possible: status:500"
    assert row.reason == f"{COMPLETE}; not tried: {SESSION}, {ROWS} ({why})"
    assert left_open(row, "complete").out_of_bounds == {ROWS: why, SESSION: why}


@pytest.mark.parametrize(
    ("kinds", "named"),
    [(("timeout", "status:500"), SESSION), (("error", "timeout"), f"timeout@{SESSION}")],
)
def test_where_nobody_waits_for_a_timeout_that_is_the_reason(
    db: Database, kinds: tuple[FaultKind, ...], named: str
) -> None:
    # Given a service whose injector reaches Redis, and that waits for it for ever
    world = World(db, {"/boot": SHOP})
    told(world, HELD)
    row = to_its_end(world, start(world, replace(QUICK, kinds=kinds, max_union=1)))
    # Then that no timeout is seen there is not put down to the injector
    left = left_open(row)
    assert left.out_of_bounds[named] == "no timeout to wait for"
    assert left.silent == ()
    assert "nothing ever fired" not in row.reason
    assert f"no timeout to wait for at {named}" in row.reason
    (one,) = row.certificates
    without = one["certificate"]["axioms"]["bounds"]["no_injector"]
    assert without[f"timeout@{SESSION}"].startswith("a timeout in api")
