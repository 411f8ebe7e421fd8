"""A small world around the engine, in simulated time: devices, edges, services.

    def boot(request):                       # what the application does for one request
        request.call("layout")
        try:
            request.call("playlist")
        except CallFailed:
            request.call("popular")

    with World.in_memory({"/boot": boot}) as world:
        campaign = world.start(QUICK)
        world.finish(campaign)
        world.findings()

The engine, its scheduler, the store and the decisions of the edges are the service's own, with its
ticks, leases, levels and budgets; only the sockets and the clock are ours, and the services are
simulated. The world knows what the service can only infer: who was exposed to what.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from ldfi.fit.protocol.allocation import mark_of
from ldfi.fit.protocol.allowance import Allowances, Numbers
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.kinds import shown_as
from ldfi.fit.protocol.rules import Lease, Rule, read_lease
from ldfi.testing.errors import needs_service

try:
    from sqlalchemy import select

    from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
    from ldfi.experiments.domain.settings import Limits, Settings
    from ldfi.experiments.domain.traffic.observation import Outcome
    from ldfi.experiments.scheduler.engine import Engine
    from ldfi.experiments.store import Database
    from ldfi.experiments.store.schema import FindingRow
    from ldfi.lineage.span import Span
    from ldfi.testing.programs import Application, Call, Caller, CallFailed, Run, Step
    from ldfi.testing.spans import span
except ModuleNotFoundError as error:
    raise needs_service(__name__, error) from error

__all__ = [
    "FOUND",
    "PROGRAM",
    "QUICK",
    "Application",
    "Call",
    "CallFailed",
    "Caller",
    "Fate",
    "Nodes",
    "Noise",
    "Step",
    "World",
]

START = 1000.0
"""When a world begins (Unix seconds)."""

PROGRAM = Call(
    "root",
    (
        Step("optional", (Call("ratings"),)),
        Step("fallback", (Call("playlist"), Call("popular"))),
        Step("critical", (Call("layout"),)),
    ),
)
"""An example: fails when ``layout`` does, or ``playlist`` and ``popular`` together."""

QUICK = Settings(
    kinds=("error",),
    treatment=0.3,
    control=0.3,
    delta=0.25,
    min_traffic=50,
    max_union=None,
    window=25.0,
    settle=1.0,
    apart=0.0,
    follow=0.0,
)
"""Settings with which a campaign in such a world is soon over."""

FOUND = {("error@layout",), ("error@playlist", "error@popular")}
"""What there is to find in it, of the kind ``error``."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one request besides what is injected: whether it ``fails`` by itself, how
    ``late`` its device reports (seconds), whether that report is ``lost``."""

    fails: bool = False
    late: float = 0.0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Nodes:
    """How what requests call is at some moment: the points of which every call fails (``gone``),
    and by how much longer than usual others take to answer (``lags``, in the units of
    :data:`ldfi.testing.programs.PATIENCE`)."""

    gone: frozenset[str] = frozenset()
    lags: Mapping[str, int] = field(default_factory=dict)


Noise = Callable[[str, Arm | None, float], Fate]
"""The fate of a request: by device, by arm (None: nobody injects), and by when it begins (Unix
seconds)."""


@dataclass
class Edge:
    """One process of the edge. ``cut_off``: it cannot reach the service."""

    name: str
    cut_off: bool = False
    lease: Lease = field(default_factory=Lease)
    allowances: Allowances = field(default_factory=Allowances)
    numbers: Numbers = field(default_factory=Numbers)
    engine: Engine | None = None
    """Whom it asks; that of its last poll."""

    def poll(self, engine: Engine, now: float) -> None:
        """Report to the service and take its rules, as over HTTP."""
        if self.cut_off:
            return
        self.engine = engine
        report, settled = self.allowances.report(), self.numbers.settled
        engine.board.heard(self.name, self.lease.version, report, now, asked=settled)
        self.allowances.settle(report)
        self.lease = read_lease(engine.board.lease(self.name, now), now)
        self.allowances.renew(self.lease.rules)

    def claim(self, path: str, device: str, now: float) -> tuple[Rule, Arm, bool] | None:
        """Decide on one request of a path as :meth:`claim_of` does."""
        return self.claim_of({"method": "GET", "path": path}, device, now)

    def claim_of(
        self, features: Features, device: str, now: float
    ) -> tuple[Rule, Arm, bool] | None:
        """Decide on a request by its features: its experiment and arm, and whether the device was
        in it before; None where it is in none."""
        if now >= self.lease.ends:
            return None
        claimed = self.lease.allocate(features, device)
        if claimed is None:
            return None
        rule, arm = claimed
        mark = mark_of(device)
        again = self.allowances.knows(rule.experiment, arm, mark)
        granted = False
        if not again and self.allowances.closed(rule.experiment):
            granted = self._ask(rule.experiment, arm, now)
            if not granted:
                return None
        admitted = self.allowances.admit(rule.experiment, arm, mark, granted=granted)
        return (rule, arm, again) if admitted else None

    def _ask(self, experiment: str, arm: Arm, now: float) -> bool:
        """Ask for one more device, as over HTTP."""
        if self.cut_off or self.engine is None:
            return False
        board, number = self.engine.board, self.numbers.begin()
        granted = board.ask(self.name, experiment, arm, number, now)
        self.numbers.end(number)
        return granted and board.version == self.lease.version


class World:
    """Devices ask for the paths of ``programs`` through ``edges``; PROGRAM by default.

    ``programs`` may be changed at any time, as by a release, and ``now`` (Unix seconds) may be
    moved forward. ``noise``: what befalls requests besides; by default nothing does, and devices
    report at once. ``nodes``: how what they call is, by the time (Unix seconds); asked anew for
    each request. ``exposed``: experiment → devices whose requests were treated, as only the world
    knows; ``last_treated``: when that was last so. ``harmed``: experiment → devices whose request
    failed while it was armed although no fault fired in it.
    """

    def __init__(
        self,
        database: Database,
        programs: Mapping[str, Application] | None = None,
        edges: int = 1,
        *,
        engine: Engine | None = None,
        limits: Limits | None = None,
        noise: Noise | None = None,
        nodes: Callable[[float], Nodes] | None = None,
    ) -> None:
        self.database = database
        self.engine = engine or Engine(database, now=START, limits=limits)
        self.programs = dict(programs or {"/boot": PROGRAM})
        self.edges = [Edge(f"edge{number}") for number in range(edges)]
        self.now = START
        self.devices = 2003
        self.exposed: defaultdict[str, set[str]] = defaultdict(set)
        self.last_treated: dict[str, float] = {}
        self.harmed: defaultdict[str, set[str]] = defaultdict(set)
        self.noise = noise or (lambda _device, _arm, _now: Fate())
        self.nodes = nodes or (lambda _now: Nodes())
        self._reports: list[tuple[float, int, Outcome]] = []
        """Those that are under way, and when they arrive."""
        self._ids = itertools.count(1)

    @classmethod
    @contextmanager
    def in_memory(
        cls,
        programs: Mapping[str, Application] | None = None,
        edges: int = 1,
        *,
        limits: Limits | None = None,
        noise: Noise | None = None,
    ) -> Iterator[Self]:
        """Make a world whose database is in memory and goes with the block."""
        database = Database("sqlite://")
        try:
            yield cls(database, programs, edges, limits=limits, noise=noise)
        finally:
            database.close()

    def start(
        self, settings: Settings | None = None, *, classes: tuple[str, ...] = (), who: str = "test"
    ) -> Campaign:
        """Begin a campaign now, as the API does. Raises Halted."""
        definition = Definition(settings or Settings(), classes)
        return self.engine.scheduler.commands.start(definition, who, self.now)

    def finish(self, campaign: Campaign, limit: int = 1000) -> None:
        """Let traffic go on until a campaign is over.

        Raises AssertionError after ``limit`` steps; the message has what it waits for.
        """
        for _ in range(limit):
            if not campaign.live():
                return
            self.step()
        raise AssertionError(f"not over after {limit} steps; it waits for {campaign.waiting}")

    def findings(self) -> dict[tuple[str, ...], str]:
        """Return what is on record: the faults of each finding, and its state."""
        with self.database.read() as session:
            return {tuple(row.faults): row.state for row in session.scalars(select(FindingRow))}

    def step(self, requests: int = 40, seconds: float = 1.0) -> None:
        """Let each path be asked for so many times, then ``seconds`` go by and the engine tick."""
        for edge in self.edges:
            edge.poll(self.engine, self.now)
        for _ in range(requests):
            for path in self.programs:
                self._request(path)
        self.now += seconds
        self._deliver()
        for edge in self.edges:
            edge.poll(self.engine, self.now)
        self.engine.tick(self.now)

    def steps(self, count: int) -> None:
        """Step so many times."""
        for _ in range(count):
            self.step()

    def rules(self) -> list[str]:
        """Return the experiments that are armed."""
        return self.engine.board.armed()

    def until_armed(self, limit: int = 50) -> str:
        """Step until an experiment is armed and fetched; returns its id.

        Raises AssertionError after ``limit`` steps.
        """
        for _ in range(limit):
            self.step()
            if self.rules():
                return self.rules()[0]
        raise AssertionError(f"nothing was armed in {limit} steps")

    def device(self, number: int) -> str:
        """Return which device sends the request of this number: by default each in its turn."""
        return f"d{number % self.devices}"

    def _request(self, path: str) -> None:
        number = next(self._ids)
        device, trace_id = self.device(number), f"{number:032x}"
        edge = self.edges[number % len(self.edges)]
        claimed = edge.claim(path, device, self.now)
        faults: frozenset[str] = frozenset()
        marks, would = {}, frozenset[str]()
        arm: Arm | None = None
        if claimed is not None:
            rule, arm, again = claimed
            marks = {"experiment": rule.experiment, "arm": arm}
            marks |= {"again": "true"} if again else {}
            chosen = frozenset(map(str, rule.faults))
            if arm == "treatment":
                faults = chosen
                self.exposed[rule.experiment].add(device)
                self.last_treated[rule.experiment] = self.now
            else:
                would = chosen
        nodes = self.nodes(self.now)
        nature = frozenset(f"nature@{point}" for point in nodes.gone)
        run = Run(faults, nature, now=self.now, lags=nodes.lags, draw_key=trace_id)
        run.execute(self.programs[path])
        fate = self.noise(device, arm, self.now)
        good = run.good and not fate.fails
        if not good and not any(each.operation.fired for each in run.spans):
            for experiment in self.rules():
                self.harmed[experiment].add(device)
        fields = {"method": "GET", "url": f"http://api{path}", **marks}
        began = int(self.now * 1e9) + 1_000 * number
        spans = [_rewritten(each, trace_id, began, fields, would) for each in run.spans]
        self.engine.receive_spans(spans, self.now)
        if not fate.lost:
            mark = mark_of(device)
            outcome = Outcome(trace_id, device, "", good, duration=0.1, mark=mark)
            heapq.heappush(self._reports, (self.now + fate.late, number, outcome))
        self._deliver()

    def _deliver(self) -> None:
        while self._reports and self._reports[0][0] <= self.now:
            self.engine.receive_outcomes([heapq.heappop(self._reports)[2]], self.now)


def _rewritten(
    each: Span, trace_id: str, began: int, fields: dict[str, str], would: frozenset[str]
) -> Span:
    """Make the span of a run part of a trace that ``began`` then (nanoseconds since the epoch), and
    for the root with what the edge wrote on it."""
    what = each.operation
    at = (began + each.start, began + each.end)
    if what.serves:
        return span("root", kind="server", trace=trace_id, failed=what.failed, at=at, **fields)
    shown = (shown_as(fault).partition("@") for fault in would)
    kinds = [kind for kind, _, at in shown if at == what.point]
    if kinds:
        marks = {"point": str(what.point), "would_fire": ",".join(kinds)}
        marks |= {"library": what.library} if what.library else {}
        return span(
            each.span_id, each.parent_id, trace=trace_id, failed=what.failed, at=at, **marks
        )
    return each._replace(trace_id=trace_id, start=at[0], end=at[1])
