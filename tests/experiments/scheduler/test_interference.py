"""Requests that share a circuit breaker or a pool: what is done to one is felt by the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import select

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.exploration import RESTLESS
from ldfi.experiments.domain.judging.bystanders import COOL
from ldfi.experiments.domain.judging.judgement import INTERFERENCE
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.baseline import LENGTH
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.context import Arm
from ldfi.testing.programs import Caller, CallFailed
from ldfi.testing.sharing import Breaker, Pool
from ldfi.testing.world import START, Fate, World
from tests.kit.campaigns import SWIFT

STARS = "api>http:GET:ratings/stars"
LIST = "api>http:GET:ratings/list"
SETTINGS = replace(SWIFT, treatment=0.1, control=0.1, rechecks=0)


def ended(world: World) -> list[ExperimentRow]:
    """What is decided or aborted, the oldest first."""
    with world.database.read() as session:
        query = select(ExperimentRow).where(ExperimentRow.state.in_(("decided", "aborted")))
        return list(session.scalars(query.order_by(ExperimentRow.created_at)))


def first_ended(world: World, limit: int = 600) -> ExperimentRow:
    """Let traffic go on in small steps until an experiment has ended."""
    for _ in range(limit):
        world.step(requests=4, seconds=0.1)
        if ended(world):
            return ended(world)[0]
    raise AssertionError("no experiment has ended")


def optional(shared: Breaker | Pool | None = None, point: str = STARS) -> Callable[[Caller], None]:
    """An application that can do without ratings."""

    def boot(request: Caller) -> None:
        with suppress(CallFailed):
            if shared is None:
                request.call(point)
            else:
                shared.call(request, point)

    return boot


SHARED = {
    "breaker": (lambda: Breaker(failures=4, seconds=5), 14),
    "pool": (lambda: Pool(size=3, seconds=5), 14),
    "pool, waited for in the call": (lambda: Pool(size=3, seconds=5, inside=True), 50),
}
"""And how many may be treated until it stops. Where calls fail without an answer, as none has
before, it is waited for as long as spans may take: somebody may have served them."""


@pytest.mark.parametrize(("make", "most"), SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("path", [pytest.param("/boot", marks=pytest.mark.long), "/list"])
def test_it_stops_for_bystanders(make: Callable[[], Breaker | Pool], most: int, path: str) -> None:
    """In the experiment's own class, or in another one that reaches the same service."""
    shared = make()
    hurt = optional(shared) if path == "/boot" else optional(shared, LIST)
    programs = {"/boot": optional(shared), path: hurt}
    with World.in_memory(programs) as world:
        world.start(SETTINGS, classes=("GET /boot",))
        row = first_ended(world)
        # Nothing tells it from an incident: treated devices fail no more than others
        assert row.verdict == "inconclusive"
        assert row.lesson is not None
        assert row.lesson["succeeded"] is None
        assert row.reason.startswith("bystanders are hurt: ")
        assert "requests that nobody injected into failed, which reach ratings too" in row.reason
        treated, harmed = len(world.exposed[row.id]), len(world.harmed[row.id])
        assert 0 < treated <= most
        seen = int(row.reason.split()[3])
        assert 0 < seen <= 2 * treated
        assert seen <= harmed  # more fail before their devices have reported


PRICES = "orders>http:GET:prices/one"
ORDERS = "front>http:GET:orders/one"


def test_a_breaker_before_a_service_on_the_way_hurts_those_who_never_reach_the_point() -> None:
    """Orders are shown with prices and taken without; one breaker is before them in either case.
    Where calls fail further in, it is waited for whoever may have served them."""
    breaker = Breaker(failures=4, seconds=5, fatal=False)

    def show(request: Caller) -> None:
        with suppress(CallFailed):
            breaker.call(request, ORDERS, lambda inner: inner.call(PRICES))

    def take(request: Caller) -> None:
        breaker.call(request, "front>http:POST:orders")

    limits = Limits(protected_points=("front>*",))
    with World.in_memory({"/show": show, "/take": take}, limits=limits) as world:
        world.start(replace(SETTINGS, settle=20.0, follow=0.0), classes=("GET /show",))
        row = first_ended(world)

    assert row.hypothesis == [f"refused@{PRICES}"]
    assert row.verdict == "inconclusive"
    assert row.lesson is not None
    assert row.lesson["spread"] == "turned away"
    assert "which reach prices or, on the way there, orders too" in row.reason


def test_a_breaker_that_wants_more_failures_than_are_treated_is_not_opened_nor_found() -> None:
    """The limit: a verdict is about the share that was treated, and an outage is larger."""
    breaker = Breaker(failures=30, seconds=5)
    with World.in_memory({"/boot": optional(breaker)}) as world:
        world.start(SETTINGS)
        assert first_ended(world).verdict == "tolerated"
    assert breaker.opened == 0


def test_other_classes_are_left_alone_where_they_share_nothing() -> None:
    """A class that fails by itself all the time says nothing of an experiment elsewhere."""

    def broken(request: Caller) -> None:
        request.call("api>http:GET:search/words")
        raise CallFailed("by itself")

    with World.in_memory({"/boot": optional(), "/search": broken}) as world:
        world.start(SETTINGS, classes=("GET /boot",))
        assert first_ended(world).verdict == "tolerated"


def over(world: World, campaign: Campaign, limit: int = 3_000) -> None:
    """Let traffic go on in small steps until a campaign has ended."""
    for _ in range(limit):
        if not campaign.live():
            return
        world.step(requests=4, seconds=0.1)
    raise AssertionError(f"not over after {limit} steps; it waits for {campaign.waiting}")


@pytest.mark.parametrize("confirm", [True, False])
def test_what_hurts_bystanders_alone_is_interference_and_never_a_finding(confirm: bool) -> None:
    """However often: the service cannot tell yet that it comes and goes with the fault."""
    with World.in_memory({"/boot": optional(Breaker(failures=4, seconds=5))}) as world:
        campaign = world.start(replace(SETTINGS, confirm=confirm))
        over(world, campaign)
        assert world.findings() == {}
        first, second = ended(world)
        # It is tried twice, stays open, and the run says why
        assert campaign.ending is not None
        (left,) = campaign.ending.left
    assert (first.purpose, second.purpose) == ("explore", "explore")
    for each in (first, second):
        assert each.verdict == "inconclusive"
        assert each.reason.endswith(f"this is {INTERFERENCE}")
        assert each.lesson is not None
        assert each.lesson["spread"] == "turned away"
        assert each.lesson["proof"]["overruled"] == "bystanders"
    assert left.why == {INTERFERENCE: 1}
    assert left.named == ((f"refused@{STARS}",),)
    assert INTERFERENCE in campaign.reason
    # The second one waited until the breaker was closed again
    assert second.armed_at is not None
    assert first.armed_at is not None
    assert second.armed_at >= first.armed_at + 5


@pytest.mark.parametrize("make", [each[0] for each in SHARED.values()], ids=SHARED)
def test_what_hurts_the_treated_is_found_with_others(make: Callable[[], Breaker | Pool]) -> None:
    def boot(request: Caller) -> None:
        shared.call(request, STARS)

    shared = make()
    with World.in_memory({"/boot": boot}) as world:
        over(world, world.start(replace(SETTINGS, treatment=0.03, control=0.3)))
        assert world.findings() == {(f"refused@{STARS}",): "open"}
        verdicts = [row for row in ended(world) if row.verdict == "harmful"]
    assert len(verdicts) >= 2
    assert all(row.comparison["treatment"]["failures"] >= 2 for row in verdicts)


def test_a_restless_place_ends_a_campaign_of_unions_and_confirms_nothing() -> None:
    """As on a machine that is overloaded: all is well before an experiment and between them, and
    while one is armed bystanders fail, whatever is injected."""
    points = [f"api>http:GET:service{number}/x" for number in range(12)]

    def boot(request: Caller) -> None:
        for point in points:
            with suppress(CallFailed):
                request.call(point)

    rules: list[Callable[[], list[str]]] = []

    def befalls(device: str, arm: Arm | None, _now: float) -> Fate:
        return Fate(fails=arm is None and bool(rules[0]()) and int(device[1:]) % 2 == 0)

    with World.in_memory({"/boot": boot}, noise=befalls) as world:
        rules.append(world.rules)
        campaign = world.start(replace(SETTINGS, rechecks=2))
        over(world, campaign, limit=6_000)
        assert world.findings() == {}
        rows = ended(world)
        assert campaign.ending is not None
        (left,) = campaign.ending.left
    # None: called off, as the steady state did not hold, or nobody was treated yet
    assert {row.verdict for row in rows} <= {"inconclusive", None}
    assert sum(row.verdict is not None for row in rows) <= RESTLESS
    assert list(left.why) == [INTERFERENCE]


def test_two_that_hurt_with_a_survived_one_between_confirm_nothing() -> None:
    """As in a place where all that is treated fails now and then, whatever is injected."""
    seen: dict[str, int] = {}
    rules: list[Callable[[], list[str]]] = []

    def befalls(_device: str, arm: Arm | None, _now: float) -> Fate:
        armed = rules[0]()
        number = seen.setdefault(armed[0], len(seen)) if armed else 1
        return Fate(fails=arm == "treatment" and number % 2 == 0)

    with World.in_memory({"/boot": optional()}, noise=befalls) as world:
        rules.append(world.rules)
        over(world, world.start(replace(SETTINGS, rechecks=0)), limit=6_000)
        assert set(world.findings().values()) <= {"suspected", "refuted"}
        verdicts = [row.verdict for row in ended(world)]
    assert verdicts[:4] == ["harmful", "tolerated", "harmful", "tolerated"]


def test_an_incident_in_mid_window_is_nobodys_harm() -> None:
    # Given a fault that does nothing, and an outage of everything while it is tried first
    outage: list[bool] = []

    def serves(request: Caller) -> None:
        optional()(request)
        if any(outage):
            raise CallFailed("by itself")

    with World.in_memory({"/boot": serves}) as world:
        campaign = world.start(SETTINGS)
        world.until_armed()
        world.step(requests=4, seconds=0.1)
        outage.append(True)
        first = first_ended(world)
        outage.clear()
        assert first.reason.startswith("bystanders are hurt: ")
        # When the campaign goes on to its end
        over(world, campaign)
        rows = ended(world)
        # Then no experiment called it harmful, and nothing is found
        assert "harmful" not in {row.verdict for row in rows}
        assert world.findings() == {}
        assert rows[-1].verdict == "tolerated"


def test_bursts_as_there_were_before_are_nobodys_harm() -> None:
    """One device in seven fails for ten seconds, again and again."""

    def befalls(device: str, _: object, now: float) -> Fate:
        return Fate(fails=now % 20 < 10 and int(device[1:]) % 7 == 0)

    with World.in_memory({"/boot": optional()}, noise=befalls) as world:
        for _ in range(57 * 10):
            world.step(requests=4, seconds=0.1)
        world.start(replace(SETTINGS, treatment=0.02, window=60.0), classes=("GET /boot",))
        row = first_ended(world)
    assert "bystanders" not in row.reason
    assert row.created_at < START + 60 < START + 62 < world.now  # a burst came in the middle


def test_what_an_experiment_does_to_others_is_no_weather() -> None:
    with World.in_memory({"/boot": optional(Breaker(failures=4, seconds=5))}) as world:
        world.start(replace(SETTINGS, confirm=False))
        assert first_ended(world).reason.startswith("bystanders are hurt: ")
        for _ in range(100):
            world.step(requests=4, seconds=0.1)
        (known,) = world.engine.catalogue.classes.values()
        worst = known.traffic.baseline.worst(world.now)
    assert worst.failed == 0
    assert worst.total >= LENGTH


def test_after_an_experiment_its_callee_is_left_alone_for_a_while() -> None:
    programs = {"/boot": optional(), "/list": optional(point=LIST)}
    with World.in_memory(programs) as world:
        world.start(replace(SETTINGS, concurrency=1, apart=60.0))
        first = world.until_armed()
        while first in world.rules():
            world.step(requests=4, seconds=0.1)
        disarmed = world.now
        while not {*world.rules()} - {first}:
            world.step(requests=4, seconds=0.1)
        assert world.now - disarmed >= 60 * COOL


def test_what_few_requests_reach_any_more_is_not_tolerated() -> None:
    breaker = Breaker(failures=5, seconds=4, fatal=False)
    with World.in_memory({"/boot": optional(breaker)}) as world:
        world.start(replace(SETTINGS, window=60.0, delta=0.25))
        row = first_ended(world)
        assert breaker.opened
    assert row.verdict == "inconclusive"
    assert re.fullmatch(
        r"treated requests stopped reaching the point: \d+ of \d+ did in the later part of the "
        r"experiment, (\d+) of \1 before the experiment",
        row.reason,
    )
