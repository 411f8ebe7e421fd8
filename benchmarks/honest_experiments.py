"""Simulated experiments: the service's own, fed as it is fed, without the service around them.

Requests begin at random; devices come again, are admitted in stages, and report as the weather has
it. An experiment is disarmed, its edges stop a second later, and it settles.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from benchmarks.weather import Sky
from ldfi.experiments.domain.campaign.exploration import MAX_TRIES
from ldfi.experiments.domain.judging.experiment import Experiment, Purpose
from ldfi.experiments.domain.judging.slots import Opening
from ldfi.experiments.domain.judging.verdict import Counts, Verdict
from ldfi.experiments.domain.settings import PromqlOutcome, Settings
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.context import Arm
from ldfi.fit.faults import Fault
from ldfi.fit.predicate import Condition, Predicate
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Trace
from ldfi.testing.spans import span

STEP: Final = 0.25
"""Seconds between two looks; the service's are closer together."""
LOOK: Final = 2.0
"""Seconds between two looks at what is counted elsewhere."""
EDGE: Final = 1.0
"""Seconds until an edge follows."""
SETTINGS: Final = Settings(
    treatment=0.01, control=0.1, window=120.0, settle=8.0, members=200, confirm=False
)
ELSEWHERE: Final = PromqlOutcome("failed", "all")
MOST: Final = 10
"""Experiments of one slot, those included that were called off."""


@dataclass(frozen=True)
class Crowd:
    """``per_second``: requests under the experiment, in both arms; ``devices``: in both arms."""

    per_second: float = 30.0
    devices: int = 2_000


MANY: Final = Crowd(60.0, 16_000)
PATIENT: Final = replace(SETTINGS, window=600.0, members=1_000)
"""With so many devices and so much time there is traffic enough for a verdict also where one in
five fails by itself."""


@dataclass(frozen=True)
class Ended:
    """How an experiment ended (None: it was aborted), why, what it proved, and how many of its
    members were treated."""

    verdict: Verdict | None
    reason: str
    evidence: float = 0.0
    treated: int = 0


def settings_for(sky: Sky, settings: Settings) -> Settings:
    """Say where outcomes are counted."""
    return replace(settings, promql=ELSEWHERE if sky.counted else None)


class Simulation:
    """One experiment, its devices, and the reports that are under way."""

    def __init__(self, sky: Sky, rng: random.Random, experiment: Experiment, crowd: Crowd) -> None:
        self.experiment, self._devices = experiment, crowd.devices
        self._rng, self._sky, self._weather = rng, sky, sky.weather(rng)
        self._treated = SETTINGS.treatment / (SETTINGS.treatment + SETTINGS.control)
        self._arms: dict[int, Arm] = {}
        self._numbers = 0
        self._enrolled: dict[Arm, set[int]] = {"treatment": set(), "control": set()}
        self._reports: list[tuple[float, int, Observation]] = []
        self._ends: list[tuple[float, int, bool, bool]] = []
        self._counts = Counts()

    def request(self, at: float, allowed: int) -> None:
        """Have some device ask, unless it may not be admitted."""
        number = self._rng.randrange(self._devices)
        arm = self._arms.setdefault(
            number, "treatment" if self._rng.random() < self._treated else "control"
        )
        enrolled = self._enrolled[arm]
        again = number in enrolled
        if not again:
            if len(self._enrolled["treatment"]) >= allowed:
                return
            enrolled.add(number)
        self._numbers += 1
        fate = self._weather(f"d{number}", arm, at)
        if not fate.lost:
            lineage = replace(
                _lineage(arm, again), trace_id=f"{self._numbers:032x}", start=int(at * 1e9)
            )
            seen = Observation(lineage, Outcome(lineage.trace_id, f"d{number}", "", not fate.fails))
            heapq.heappush(self._reports, (at + fate.late, self._numbers, seen))
        if self._sky.counted:
            end = (at + fate.late, self._numbers, arm == "treatment", fate.fails)
            heapq.heappush(self._ends, end)

    def report(self, now: float, *, stopped: bool) -> None:
        """Tell the experiment what is known by now."""
        while self._reports and self._reports[0][0] <= now:
            self.experiment.observe(heapq.heappop(self._reports)[2])
        if self._sky.counted and now % LOOK < STEP:
            while self._ends and self._ends[0][0] <= now:
                _, _, treated, failed = heapq.heappop(self._ends)
                self._counts += Counts(
                    not treated, failed and not treated, treated, failed and treated
                )
            self.experiment.count(self._counts)
        self.experiment.used = len(self._enrolled["treatment"])
        self.experiment.controls = controls = len(self._enrolled["control"])
        self.experiment.enrolled = controls if stopped else None


def run(
    sky: Sky,
    rng: random.Random,
    settings: Settings = SETTINGS,
    level: float = 1.0,
    purpose: Purpose = "explore",
    opening: Opening | None = None,
    crowd: Crowd = Crowd(),
) -> Ended:
    """Run one experiment to its end."""
    fault = Fault("a", "error")
    experiment = Experiment(
        *("e", "GET /", Predicate.of([Condition("path", "/")]), frozenset({str(fault)}), (fault,)),
        settings_for(sky, settings),
        purpose,
        opening=opening,
    )
    experiment.arm(0.0, level)
    experiment.taken()
    simulation = Simulation(sky, rng, experiment, crowd)
    now, begins, stops = 0.0, rng.expovariate(crowd.per_second), math.inf
    allowed = experiment.admission(0.0)
    while True:
        now += STEP
        while begins < now:
            if begins < stops:
                simulation.request(begins, allowed)
            begins += rng.expovariate(crowd.per_second)
        simulation.report(now, stopped=now >= stops)
        if experiment.review(now):
            stops = now + EDGE
        elif experiment.state == "observing":
            allowed = experiment.admission(now)
        if experiment.settle(now, disarmed=now >= stops):
            evidence = experiment.tests.log_worse
            return Ended(experiment.verdict, experiment.reason, evidence, experiment.used)


def finding(sky: Sky, rng: random.Random, level: float) -> Ended:
    """Run experiments as a campaign does, and a second slot where it hurt: harmful where both have.

    What is inconclusive is tried again.
    """
    settings = replace(SETTINGS, confirm=True)
    one = _tried(sky, rng, settings, level)
    if one.verdict != "harmful":
        return one
    opening = Opening(one.evidence, min(level, settings.alpha_harmful))
    return _tried(sky, rng, settings, 1.0, "confirm", opening)


def _tried(sky: Sky, rng: random.Random, settings: Settings, *how: Any) -> Ended:
    """Try it as a campaign does: anew where it was called off, and three times where it was
    inconclusive. An incident comes once."""
    ended = run(sky, rng, settings, *how)
    inconclusive, later = int(ended.verdict == "inconclusive"), replace(sky, incident=False)
    for _ in range(MOST - 1):
        if ended.verdict in {"harmful", "tolerated"} or inconclusive == MAX_TRIES:
            break
        ended = run(later, rng, settings, *how)
        inconclusive += ended.verdict == "inconclusive"
    return ended


@cache
def _lineage(arm: Arm, again: bool) -> Lineage:
    fired = arm == "treatment"
    call = span("a", "root", fired="error") if fired else span("a", "root", would_fire="error")
    root = span("root", kind="server", again="true") if again else span("root", kind="server")
    spans = [root, call]
    learned = learn(Trace.of("0" * 32, spans))
    if learned is None:
        raise AssertionError("these spans have a root")
    return replace(learned, experiment="e", arm=arm)
