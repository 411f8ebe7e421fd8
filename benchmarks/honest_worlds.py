"""Experiments that go through the whole service, in a small world (``ldfi.testing.world``).

Edges, assembler, join, scheduler, rules board and store are the service's own; the application can
do without what is injected into, and all else is the weather. One campaign after the other tries
the same fault once.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, cast

from sqlalchemy import select

from benchmarks.honest_experiments import LOOK, SETTINGS, Ended, settings_for
from benchmarks.weather import Sky
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.judging.verdict import Counts, Verdict
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.context import Arm
from ldfi.testing.programs import Caller, CallFailed
from ldfi.testing.world import Fate, World

FAULT: Final = frozenset({"error@optional"})
STEP: Final = 0.25
PER_STEP: Final = 10
"""Requests in a step: forty a second, of which nearly half are under the experiment."""
LONGEST: Final = 400.0
"""Seconds that a campaign of one experiment may take, its second slot included."""
SERVICE: Final = replace(
    SETTINGS,
    kinds=("error",),
    treatment=0.04,
    control=0.4,
    max_size=1,
    apart=5.0,
    verify=False,
    rechecks=0,
)
LIMITS: Final = Limits(members_per_hour=1_000_000, members_per_day=1_000_000)


BESIDE: Final = "bystanders are hurt"
"""How the reason of such an experiment begins."""


def interfered(ended: Ended) -> bool:
    """Return whether it came to nothing since others failed."""
    return ended.verdict == "inconclusive" and ended.reason.startswith(BESIDE)


def serve(request: Caller) -> None:
    """Serve a request, which can do without what it calls."""
    with suppress(CallFailed):
        request.call("optional")


class Site:
    """A world under a sky, and what a Prometheus would count there."""

    def __init__(self, sky: Sky, rng: random.Random) -> None:
        self.sky, self._rng = sky, rng
        self._befalls = sky.weather(rng)
        self._ahead = sky
        self._armed: tuple[str, float] | None = None
        self._ends: list[tuple[float, int, str, Counts]] = []
        self._counts: dict[str, Counts] = {}
        self._next_look = 0.0
        self.world: World

    def befall(self, device: str, arm: Arm | None, now: float) -> Fate:
        """Tell the fate of a request. The weather begins anew with each experiment, goes on between
        them, and an incident comes once in a campaign."""
        name, since = self._armed or ("", 0.0)
        fate = self._befalls(device, arm, now - since)
        if arm is not None and self.sky.counted:
            treated = arm == "treatment"
            one = Counts(not treated, fate.fails and not treated, treated, fate.fails and treated)
            heapq.heappush(self._ends, (now + fate.late, len(self._ends), name, one))
        return fate

    def begin(self) -> None:
        """Have the next campaign meet all of the weather: an incident in its first experiment."""
        self._ahead = self.sky

    def step(self) -> None:
        """Let a quarter of a second go by."""
        armed = self.world.rules()
        if not armed:
            self._armed = None
        elif self._armed is None or self._armed[0] != armed[0]:
            self._armed = armed[0], self.world.now
            self._befalls = self._ahead.weather(self._rng)
            self._ahead = replace(self.sky, incident=False)
        self.world.step(PER_STEP, STEP)
        if self.sky.counted and self.world.now >= self._next_look:
            self._next_look = self.world.now + LOOK
            self._look()

    def _look(self) -> None:
        while self._ends and self._ends[0][0] <= self.world.now:
            _, _, name, one = heapq.heappop(self._ends)
            self._counts[name] = self._counts.get(name, Counts()) + one
        for _, experiment in self.world.engine.scheduler.state.active():
            experiment.count(self._counts.get(experiment.id, Counts()))


def ended(
    sky: Sky, rng: random.Random, count: int, *, level: float | None = None, confirm: bool = True
) -> list[Ended]:
    """Run so many campaigns of one experiment, or of two slots. ``level``: of e-LOND, for each.

    A campaign whose experiment the service does not start is told by a reason in brackets.
    """
    site = Site(sky, rng)
    with World.in_memory({"/": serve}, limits=LIMITS, weather=site.befall) as world:
        site.world = world
        return list(_campaigns(site, count, level, confirm=confirm))


def _campaigns(site: Site, count: int, level: float | None, *, confirm: bool) -> Iterator[Ended]:
    world = site.world
    settings = settings_for(site.sky, replace(SERVICE, confirm=confirm))
    scheduler = world.engine.scheduler
    for _ in range(count):
        if level is not None:
            scheduler.state.fdr.tested = _tested(level)
            scheduler.state.fdr.discoveries = 0
        site.begin()
        definition = Definition(settings, ("GET /",))
        campaign = scheduler.commands.start(definition, "benchmark", world.now)
        ends = world.now + LONGEST
        while campaign.live() and world.now < ends:
            site.step()
        yield _outcome(world, campaign)
        if campaign.live():
            scheduler.commands.stop(campaign.id, "too long", "benchmark", world.now)


def _outcome(world: World, campaign: Campaign) -> Ended:
    """Tell what became of the fault: a finding is harmful."""
    with world.database.read() as session:
        chosen = select(ExperimentRow).where(ExperimentRow.campaign_id == campaign.id)
        rows = list(session.scalars(chosen.order_by(ExperimentRow.created_at)))
    if not rows or rows[-1].state not in {"decided", "aborted"}:
        waits = "; ".join(campaign.waiting.values())
        return Ended(None, f"(not over: {waits})")
    last = rows[-1]
    found = any(each.states.get(FAULT) == "open" for each in campaign.explorations.values())
    if campaign.settings.confirm and last.verdict == "harmful" and not found:
        return Ended("inconclusive", "hurt once")
    return Ended(cast("Verdict | None", last.verdict), last.reason, treated=last.members_charged)


def _tested(level: float) -> int:
    """Say how many experiments were tested before the one that has this level of e-LOND."""
    stream = OnlineFdr()
    while stream.next_level() > level:
        pass
    return stream.tested - 1
