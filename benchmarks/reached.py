"""Whether campaigns reach what they are about, on request classes that were learned.

A generated application (:mod:`benchmarks.generated_application`) is watched until its classes are
known. Then a campaign runs over all of them, through the service's own engine, and requests of all
kinds come to an edge that knows nothing but its rules. Of each treated request the application
itself counts which of the points that its experiment is about it came to: a request of another kind
that a rule has claimed comes to none. Meant are the points that requests of the class usually rely
on. What stands in for another is called only where that fails, and a united experiment may hold the
one without the other: so it is told by itself (``stand-ins too``).

In every kind of request the calls are made side by side: one is wanted, one has a stand-in, the
others are optional; the session comes from a cache in three of a hundred, and one call of some
request in fifty fails by itself.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import select

from benchmarks.arriving import at_the_edge, entry
from benchmarks.generated_application import Application, Asked, Kind
from benchmarks.outcome import Row
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import Operation, operation
from ldfi.lineage.span import Span, Trace
from ldfi.scenarios.replays.intervals import share_interval
from ldfi.testing.world import Edge

SESSION: Final = "/session"
CACHED: Final = 0.03
"""Share of requests whose session is answered from a cache."""
LOST: Final = 0.02
"""Share of requests in which some call fails by itself."""
DEVICES: Final = 20_000
PER_STEP: Final = 2_000
"""Requests in a second, of all kinds alike: rare ones only take longer."""
BESIDE: Final = 0.02
"""Share of those that no rule claims of which the service hears: they tell the steady state."""
SETTINGS: Final = Settings(
    kinds=("error",),
    treatment=0.4,
    control=0.4,
    window=60.0,
    settle=1.0,
    follow=0.0,
    apart=0.0,
    concurrency=2,
    member_budget=1_000_000,  # for fifty classes; the default is spent after some twenty
    verify=False,
    rechecks=0,
)
LIMITS: Final = Limits(max_concurrent=50, members_per_hour=10**8, members_per_day=10**8)


@dataclass
class Answer:
    """One request that was served: its spans below the root, whether it went well, and the points
    it came to."""

    calls: list[Span] = field(default_factory=list)
    good: bool = True
    came_to: set[str] = field(default_factory=set)

    def call(self, point: str, lost: str, faults: frozenset[str], would: frozenset[str]) -> bool:
        """Make a call; whether it went well."""
        fields = [("point", point)]
        if point in faults:
            fields.append(("fired", "error"))
        if point in would:
            fields.append(("would_fire", "error"))
        failed = point in faults or point == lost
        at = len(self.calls)
        what = operation("edge", "call", "client", 2 if failed else 1, False, tuple(fields))
        self.calls.append(Span("0" * 32, f"c{at}", "root", at + 1, at + 2, what))
        self.came_to.add(point)
        return not failed


def answer(
    kind: Kind,
    rng: random.Random,
    faults: frozenset[str] = frozenset(),
    would: frozenset[str] = frozenset(),
) -> Answer:
    """Serve a request under faults at some points; ``would``: where it is in control of them."""
    cached = rng.random() < CACHED
    points = [p for p in sorted(kind.points) if not (cached and p.endswith(SESSION))]
    lost = rng.choice(points) if rng.random() < LOST else ""
    wanted_one, fallback = [p for p in points if not p.endswith(SESSION)][:2]
    given = Answer()
    for point in points:
        fine = given.call(point, lost, faults, would)
        if point == fallback and not fine:
            fine = given.call(f"{point}/spare", "", faults, would)
        if point in {wanted_one, fallback}:
            given.good = given.good and fine
    return given


def watched(application: Application, engine: Engine, count: int, seed: int) -> float:
    """Let so many requests be learned from; returns when that was over."""
    rng, now = random.Random(seed), engine.ticked_at
    for serial, (kind, asked) in enumerate(application.requests(count, seed)):
        given = answer(kind, rng)
        run = _learned(given.calls, entry(asked, failed=not given.good))
        run = replace(run, trace_id=f"{serial:032x}")
        outcome = Outcome(run.trace_id, f"d{serial % DEVICES}", "", given.good)
        engine.catalogue.observe(Observation(run, outcome), now)
        now += 1 / 50
    return now


def _learned(calls: list[Span], root: Operation) -> Lineage:
    spans = [Span("0" * 32, "root", None, 0, 1000, root), *calls]
    run = learn(Trace.of("0" * 32, spans))
    if run is None:
        raise AssertionError("a request has a root")
    return run


@dataclass
class Site:
    """The application with its edge in front and the service beside it. ``reached``: experiment →
    treated requests, those that came to all of its points, to one of them at least."""

    application: Application
    engine: Engine
    now: float
    rng: random.Random
    edge: Edge = field(default_factory=lambda: Edge("edge"))
    reached: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    usual: dict[str, frozenset[str]] = field(default_factory=dict)
    serial: int = 0

    def meant(self, experiment: str) -> frozenset[str]:
        """Name what the requests of an experiment's class rely on when it begins."""
        if experiment not in self.usual:
            _, found = self.engine.scheduler.state.experiment(experiment)
            known = self.engine.catalogue.classes[found.request_class]
            self.usual[experiment] = known.traffic.usual_support()
        return self.usual[experiment]

    def step(self) -> None:
        """Let a second go by."""
        self.edge.poll(self.engine, self.now)
        for kind in self.rng.choices(self.application.kinds, k=PER_STEP):
            self.request(kind, kind.ask(self.rng))
        self.now += 1.0
        self.edge.poll(self.engine, self.now)
        self.engine.tick(self.now)

    def request(self, kind: Kind, asked: Asked) -> None:
        """Have one device ask."""
        self.serial += 1
        trace_id, device = f"{self.serial:032x}", f"d{self.rng.randrange(DEVICES)}"
        claimed = self.edge.claim_of(at_the_edge(asked), device, self.now)
        if claimed is None and self.rng.random() > BESIDE:
            return
        marks, points, treated = dict[str, str](), frozenset[str](), False
        if claimed is not None:
            rule, arm, again = claimed
            treated = arm == "treatment"
            points = frozenset(fault.point for fault in rule.faults)
            marks = {"experiment": rule.experiment, "arm": arm}
            marks |= {"again": "true"} if again else {}
        nothing = frozenset[str]()
        given = answer(
            kind, self.rng, points if treated else nothing, nothing if treated else points
        )
        if treated:
            counts = self.reached[marks["experiment"]]
            meant = self.meant(marks["experiment"]) & points or points
            counts["treated"] += 1
            counts["meant"] += meant <= given.came_to
            counts["all"] += points <= given.came_to
            counts["any"] += bool(points & given.came_to)
        root = entry(asked, failed=not given.good, **marks)
        began = int(self.now * 1e9) + 1_000 * self.serial
        spans = [Span(trace_id, "root", None, began, began + 1000, root)]
        spans += [
            each._replace(trace_id=trace_id, start=began + each.start, end=began + each.end)
            for each in given.calls
        ]
        self.engine.receive_spans(spans, self.now)
        outcome = Outcome(trace_id, device, "", given.good, duration=0.1)
        self.engine.receive_outcomes([outcome], self.now)


def campaign(seed: int, requests: int, seconds: int) -> Row:
    """Run a campaign over the learned classes of one application for so long at most."""
    database = Database("sqlite://")
    try:
        application = Application.of(seed)
        engine = Engine(database, now=1000.0, limits=LIMITS)
        now = watched(application, engine, requests, seed + 1_000)
        site = Site(application, engine, now, random.Random(seed + 3_000))
        engine.tick(now)
        site.step()  # the steady state of the classes is told by requests
        running = engine.scheduler.commands.start(Definition(SETTINGS), "benchmark", site.now)
        begun = site.now
        while running.live() and site.now < begun + seconds:
            site.step()
        with database.read() as session:
            rows = {row.id: row for row in session.scalars(select(ExperimentRow))}
        return _row(site, rows, over=not running.live())
    finally:
        database.close()


def _row(site: Site, rows: Mapping[str, ExperimentRow], *, over: bool) -> Row:
    """Sum up what was reached: of all, by class, by experiment."""
    of_class: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for experiment, counts in site.reached.items():
        of_class[rows[experiment].request_class] += counts
    total = sum(of_class.values(), Counter[str]())
    shares = {name: each["meant"] / each["treated"] for name, each in of_class.items()}
    return {
        "classes": len(site.engine.catalogue.classes),
        "tried": len(of_class),
        "over": over,
        "seconds": round(site.now),
        "experiments": len(rows),
        "treated": total["treated"],
        "reached": round(total["meant"] / max(1, total["treated"]), 4),
        "stand-ins too": round(total["all"] / max(1, total["treated"]), 4),
        "one at least": round(total["any"] / max(1, total["treated"]), 4),
        "least of a class": round(min(shares.values(), default=0.0), 4),
        "classes < 95 %": sum(share < 0.95 for share in shares.values()),
        "of them beyond chance": sum(
            share_interval(each["meant"], each["treated"]).high < 0.95 for each in of_class.values()
        ),
        "verdicts": dict(Counter(str(row.verdict) for row in rows.values())),
    }
