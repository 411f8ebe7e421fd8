"""Harm that comes later than the answer, through the whole service, in small worlds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

import pytest

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.fit.protocol.context import Arm
from ldfi.lineage.span import Span
from ldfi.testing.programs import Application, Caller, CallFailed
from ldfi.testing.world import Fate, World
from tests.kit.campaigns import experiments_of

SETTINGS = replace(
    Settings(kinds=("error",), treatment=0.1, control=0.5),
    max_size=1,
    apart=5.0,
    settle=2.0,
    rechecks=0,
)
LIMITS = Limits(members_per_hour=1_000_000, members_per_day=1_000_000)
FAULT = frozenset({"error@optional"})


def serve(request: Caller) -> None:
    with suppress(CallFailed):
        request.call("optional")


class Losing:
    """Devices that were treated lose something, and their next request fails; ``natural``: share of
    requests that fail by themselves."""

    def __init__(self, *, harmful: bool, natural: float = 0.0) -> None:
        self._lost: set[str] = set()
        self._rng = random.Random(1)
        self._harmful, self._natural = harmful, natural

    def __call__(self, device: str, arm: Arm | None, _now: float) -> Fate:
        fails = device in self._lost or self._rng.random() < self._natural
        self._lost.discard(device)
        if self._harmful and arm == "treatment":
            self._lost.add(device)
        return Fate(fails=fails, late=self._rng.uniform(0, 1))


def tried(world: World, settings: Settings = SETTINGS, classes: Iterable[str] = ()) -> Campaign:
    campaign = world.start(settings, classes=tuple(classes))
    ends = world.now + 3_000
    while campaign.live() and world.now < ends:
        world.step(10, 0.25)
    assert not campaign.live(), campaign.waiting
    return campaign


def verdicts(world: World) -> list[str | None]:
    return [row.verdict for row in experiments_of(world.database)]


def a_world(losing: Losing) -> AbstractContextManager[World]:
    return World.in_memory({"/": serve}, limits=LIMITS, noise=losing)


@pytest.mark.parametrize("devices", [83, 403])
def test_a_device_that_loses_its_next_request_was_hurt(devices: int) -> None:
    """Whether it comes again after 2 seconds or after 10."""
    with a_world(Losing(harmful=True)) as world:
        world.devices = devices
        campaign = tried(world, classes=["GET /"])
        assert "tolerated" not in verdicts(world)
        assert campaign.explorations["GET /"].states == {FAULT: "open"}
        rows = experiments_of(world.database)
        assert all(row.members_hurt > 0 for row in rows if row.verdict == "harmful")


def test_whoever_is_not_followed_is_not_seen() -> None:
    """That is what a campaign asks for that sets ``follow`` to 0."""
    with a_world(Losing(harmful=True)) as world:
        world.devices = 403
        tried(world, replace(SETTINGS, follow=0.0), classes=["GET /"])
        assert verdicts(world) == ["tolerated"]


@pytest.mark.parametrize("natural", [0.0, 0.01])
def test_what_harms_nobody_is_tolerated_all_the_same(natural: float) -> None:
    with a_world(Losing(harmful=False, natural=natural)) as world:
        world.devices = 403  # of which a tenth is treated: enough, however they are drawn
        campaign = tried(world, classes=["GET /"])
        assert verdicts(world)[-1] == "tolerated"
        assert campaign.explorations["GET /"].knowledge.open == 0


def test_after_a_minute_of_traffic_a_campaign_begins_at_once() -> None:
    """Where no device asks twice, too."""
    with World.in_memory({"/": serve}, limits=LIMITS) as world:
        world.devices = 1_000_000
        for _ in range(110):
            world.step(5, 0.6)
        campaign, began = world.start(SETTINGS, classes=("GET /",)), world.now
        while not campaign.running:
            world.step(10, 0.25)
            assert world.now < began + 5, campaign.waiting


def test_the_next_request_may_be_of_another_class() -> None:
    lost: set[str] = set()

    def forgets(device: str, arm: Arm | None, _now: float) -> Fate:
        fails = arm is None and device in lost
        lost.discard(device)
        if arm == "treatment":
            lost.add(device)
        return Fate(fails=fails)

    both: dict[str, Application] = {"/cart": serve, "/checkout": lambda each: each.call("bank")}
    with World.in_memory(both, limits=LIMITS, noise=forgets) as world:
        world.devices = 403
        campaign = tried(world, classes=["GET /cart"])
        assert campaign.explorations["GET /cart"].states == {FAULT: "open"}


def test_a_release_in_mid_experiment_is_not_slept_through() -> None:
    """*Tolerated* is said of all who came: those before the release, and those after it."""
    released = float("inf")

    def until(request: Caller) -> None:
        if world.now >= released:
            request.call("optional")
        else:
            serve(request)

    with World.in_memory({"/": until}, limits=LIMITS) as world:
        world.devices = 4_003
        settings = replace(SETTINGS, follow=0.0, settle=5.0, admission="all", on_drift="ignore")
        campaign = world.start(settings, classes=("GET /",))
        while not any(each.order.calm for each in campaign.active()):
            world.step(10, 0.25)
        released = world.now
        while campaign.live():
            world.step(10, 0.25)
        assert verdicts(world)[0] != "tolerated"


def orphaned(world: World) -> Callable[[Iterable[Span], float], None]:
    """Spans of calls that a fault makes fail hang in the air: the span around them never comes."""
    receive = world.engine.receive_spans

    def lossy(spans: Iterable[Span], now: float) -> None:
        receive([s._replace(parent_id="gone") if s.operation.fired else s for s in spans], now)

    return lossy


def test_what_is_never_exported_because_it_failed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with World.in_memory({"/": lambda request: request.call("broker")}, limits=LIMITS) as world:
        monkeypatch.setattr(world.engine, "receive_spans", orphaned(world))
        campaign = tried(world, replace(SETTINGS, follow=0.0), classes=["GET /"])
        assert campaign.explorations["GET /"].states == {frozenset({"error@broker"}): "open"}
        # and nobody waits for a minute for what never comes
        rows = experiments_of(world.database)
        assert all((row.ended_at or 0) - (row.armed_at or 0) < 30 for row in rows)


def test_what_is_cut_is_neither_harmful_nor_tolerated(monkeypatch: pytest.MonkeyPatch) -> None:
    with World.in_memory({"/": serve}, limits=LIMITS) as world:
        monkeypatch.setattr(world.engine, "receive_spans", orphaned(world))
        tried(world, replace(SETTINGS, follow=0.0, window=10.0, members=20), classes=["GET /"])
        assert set(verdicts(world)) == {"inconclusive"}
