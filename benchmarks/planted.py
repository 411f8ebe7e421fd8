"""Planted worlds, and campaigns over them in simulated time, without a service around them.

The application is a seeded tree of calls (:mod:`benchmarks.appboot`), its requests leave spans
(:mod:`ldfi.testing.programs`), and campaign, exploration, experiments, levels and admission are the
service's own. Ours are the clock, the devices, and an edge that follows a second later.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from benchmarks.appboot import Call as Node
from benchmarks.appboot import app_boot
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.judging.bystanders import COOL
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import KnownClass, LearnedClass
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.lineage.blame import blame
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Span, Trace
from ldfi.testing.programs import Call, Run, Step

STEP = 0.25
"""Seconds between two looks; the service's are closer together."""
EDGE = 1.0
"""Seconds until the edge follows: a rule is taken down, more devices may be treated."""
WATCHED = 2_000
"""Requests that are watched before the campaign begins."""
NAME = "GET /"
PREDICATE = Predicate.of([Condition("path", "/")])

Faults = frozenset[str]
Draw = Callable[[Arm, float, int], Observation]
"""Makes the request that begins then (seconds), the n-th one."""


@dataclass(frozen=True)
class Planted:
    """An application and all its minimal failing sets."""

    program: Call
    points: tuple[str, ...]
    truth: frozenset[Faults]


@dataclass(frozen=True)
class Conditions:
    """How requests fare: shares that fail (where the faults hurt, and anyway), the share of failed
    ones whose trace names the right fault, seconds until an outcome is known, the share of calls
    that fail by themselves while nobody experiments, and requests a second, each of a device of
    its own."""

    hurt: float = 0.95
    anyway: float = 0.01
    blame: float = 0.9
    late: float = 1.0
    nature: float = 0.0
    per_second: float = 100.0


@dataclass
class Told:
    """What a campaign has come to, and what it took. ``failing``: experiments whose faults hurt;
    ``hurt``: devices whose request failed because of what was injected."""

    planted: int = 0
    found: int = 0
    false: int = 0
    experiments: int = 0
    failing: int = 0
    exposed: int = 0
    hurt: int = 0
    seconds: float = 0.0
    confirmed: set[Faults] = field(default_factory=set)


def planted(seed: int, size: tuple[int, int] = (30, 120)) -> Planted:
    """Draw a world of so many points with five minimal failing sets of one or two of them."""
    app = app_boot(seed, size=size)
    truth = frozenset(frozenset(f"error@{p}" for p in each) for each in app.minimal_failing_sets)
    return Planted(_call(app.root), tuple(app.points), truth)


def _call(node: Node) -> Call:
    steps = (
        Step("fallback" if step.required else "optional", tuple(map(_call, step.alternatives)))
        for step in node.steps
    )
    return Call(node.name, tuple(steps))


def lineage_of(run: Run) -> Lineage:
    """Learn the lineage of an execution."""
    return _learned(run.spans)


def _learned(spans: list[Span]) -> Lineage:
    learned = learn(Trace.of("0" * 32, spans))
    if learned is None:
        raise AssertionError("an execution has a root")
    return learned


def traffic_of(world: Planted, conditions: Conditions, rng: random.Random) -> Traffic:
    """Watch requests that nobody injects into."""
    traffic = Traffic()
    for number in range(WATCHED):
        failing = (p for p in world.points if rng.random() < conditions.nature)
        run = Run(frozenset(), frozenset(f"nature@{point}" for point in failing))
        lineage = replace(lineage_of(run.execute(world.program)), trace_id=f"{number:032x}")
        outcome = Outcome(lineage.trace_id, f"w{number}", "", run.good)
        traffic.observe(Observation(lineage, outcome), 0.0)
    return traffic


class Requests:
    """Requests under one experiment."""

    def __init__(
        self,
        world: Planted,
        experiment: Experiment,
        usual: frozenset[str],
        conditions: Conditions,
        rng: random.Random,
    ) -> None:
        faults = frozenset(map(str, experiment.faults))
        run = Run(faults).execute(world.program)
        bare = lineage_of(Run(frozenset()).execute(world.program))
        would = frozenset(f for f in faults if f.partition("@")[2] in bare.called)
        bare = replace(bare, experiment=experiment.id)
        self.hurts = not run.good
        self.hurt = 0
        self._conditions, self._rng = conditions, rng
        self._control = replace(bare, would_fire=would, arm="control")
        self._treated, self._survived, self._misleading = (
            replace(_learned(spans), experiment=experiment.id, arm="treatment")
            for spans in (run.spans, _unhurt(run.spans), _misleading(run.spans, usual, rng))
        )

    def draw(self, arm: Arm, begins: float, number: int) -> Observation:
        """Make one request."""
        rng, given = self._rng, self._conditions
        failed = rng.random() < given.anyway
        lineage = self._control if arm == "control" else self._treated
        if arm == "treatment" and self.hurts:
            if rng.random() < given.hurt:
                failed, self.hurt = True, self.hurt + 1
                lineage = lineage if rng.random() < given.blame else self._misleading
            else:
                lineage = self._survived
        return observation(lineage, begins, number, failed=failed)


def observation(lineage: Lineage, begins: float, number: int, *, failed: bool) -> Observation:
    """Make a request of this lineage, of a device of its own."""
    trace_id = f"{number:032x}"
    mine = replace(lineage, trace_id=trace_id, start=int(begins * 1e9))
    return Observation(mine, Outcome(trace_id, f"d{number}", "", not failed))


def _unhurt(spans: list[Span]) -> list[Span]:
    """Let the same request end well, and know it."""
    return [
        each._replace(operation=replace(each.operation, failed=False))
        if each.operation.serves
        else each
        for each in spans
    ]


def _misleading(spans: list[Span], usual: frozenset[str], rng: random.Random) -> list[Span]:
    """Let another fault of the same request look as if it were to blame, or else none at all."""
    right = set(blame(_learned(spans).tree, usual))
    (root,) = (each for each in spans if each.operation.serves)
    others = [each for each in spans if each.operation.fired and each.parent_id == root.span_id]
    rng.shuffle(others)
    for other in others:
        last = other._replace(start=root.end, end=root.end)
        moved = [last if each is other else each for each in spans]
        if set(blame(_learned(moved).tree, usual)) != right:
            return moved
    return _unhurt(spans)


def carry_out(
    experiment: Experiment,
    draw: Draw,
    rng: random.Random,
    now: float,
    *,
    conditions: Conditions,
    traces: float = 0.0,
    campaign: Campaign | None = None,
) -> float:
    """Run one armed experiment to its end, as the scheduler does; returns when that is.

    ``traces``: seconds until a trace is whole. ``campaign``: that of the experiment, if it is of
    one.
    """
    settings, owner = experiment.settings, campaign or experiment
    treated = settings.treatment / (settings.treatment + settings.control)
    rate = conditions.per_second * (settings.treatment + settings.control)
    reports: list[tuple[float, int, Observation]] = []
    orders = [(now, experiment.admission(now, traces=traces))]
    allowed = used = enrolled = 0
    stops, begins = math.inf, now + EDGE + rng.expovariate(rate)
    numbers = itertools.count(1)
    experiment.taken()
    while True:
        now += STEP
        while orders and orders[0][0] + EDGE <= now:
            allowed = max(allowed, orders.pop(0)[1])
        for at in _until(now, begins, rate, rng):
            begins = at
            if at >= now or at >= stops or used >= allowed:
                continue
            number = next(numbers)
            arm: Arm = "treatment" if rng.random() < treated else "control"
            used, enrolled = used + (arm == "treatment"), enrolled + (arm == "control")
            heapq.heappush(reports, (at + conditions.late, number, draw(arm, at, number)))
        while reports and reports[0][0] <= now:
            owner.observe(heapq.heappop(reports)[2])
        experiment.used, experiment.controls = used, enrolled
        experiment.enrolled = enrolled if now >= stops else None
        if experiment.review(now):
            stops = now + EDGE
        elif experiment.state == "observing":
            alone = campaign.lead_of(experiment) if campaign else None
            if alone is not None:
                experiment.lead = alone
                experiment.stop("stopped at the first failure", now)
                stops = now + EDGE
            else:
                orders.append((now, experiment.admission(now, traces=traces)))
        if experiment.settle(now, disarmed=now >= stops, traces=traces):
            return now


def _until(now: float, begins: float, rate: float, rng: random.Random) -> Iterator[float]:
    """List when requests begin, the last one after ``now``."""
    while begins < now:
        yield begins
        begins += rng.expovariate(rate)
    yield begins


def explore(
    world: Planted, settings: Settings, conditions: Conditions, seed: int, traces: float = 0.0
) -> Told:
    """Run a campaign over one world to its end."""
    rng = random.Random(seed)
    traffic = traffic_of(world, conditions, rng)
    usual = traffic.usual_support()
    classes = {NAME: _known(traffic)}
    ids = itertools.count(1)
    campaign = Campaign("c", Definition(settings), new_id=lambda: f"e{next(ids)}")
    campaign.enroll(classes, lambda _: ())
    told, now = Told(planted=len(world.truth)), 0.0
    while True:
        proposed = campaign.propose(classes, lambda *_: None, 1, now)
        if not proposed:
            if campaign.complete(classes):
                break
            now += 1.0
            continue
        (experiment,) = proposed
        first = experiment.purpose in {"explore", "recheck"}
        experiment.arm(now, campaign.fdr.next_level(settings.fdr) if first else 1.0)
        requests = Requests(world, experiment, usual, conditions, rng)
        now = carry_out(
            experiment,
            requests.draw,
            rng,
            now,
            conditions=conditions,
            traces=traces,
            campaign=campaign,
        )
        campaign.close(experiment)
        told.experiments += 1
        told.failing += requests.hurts
        told.exposed += len(experiment.exposed)
        told.hurt += requests.hurt
        now += COOL * settings.apart
    states = campaign.explorations[NAME].states
    told.confirmed = {faults for faults, state in states.items() if state == "open"}
    told.found = len(told.confirmed & world.truth)
    told.false = len(told.confirmed - world.truth)
    told.seconds = now
    return told


def _known(traffic: Traffic) -> KnownClass:
    """Make a class of that traffic."""
    return KnownClass(
        LearnedClass(PREDICATE, "api", NAME),
        traffic,
        version=1,
        consistency=1.0,
        hit_rate=1.0,
        sample=WATCHED,
        first_seen=0.0,
        last_seen=0.0,
    )
