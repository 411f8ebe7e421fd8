"""Traffic of a made world, through the service's own engine: devices, edges, spans, reports.

Edges, scheduler, store, leases, levels and budgets are the service's own; what is made is the
application, its devices and the time. The service hears of them by its doors alone: edges poll and
ask, spans come when they end, devices report.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from sqlalchemy import select

from ldfi.experiments.api.ingest import _outcome
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.campaign.lifecycle import HURTING
from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler import shared_state
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.kinds import shown_as
from ldfi.fit.protocol.rules import Rule
from ldfi.lineage.span import Span
from ldfi.testing.spans import span
from ldfi.testing.world import START, Edge

STEP: Final = 0.5
"""Seconds between two ticks; the service's own are closer together."""
EXPORT: Final = 0.1
"""Seconds until a span that has ended is with the service."""
KNOWN: Final = 60.0
"""Seconds of traffic before a campaign begins."""
LONGEST: Final = 3_000.0
"""Seconds that a campaign may take."""
REFUSED: Final = 300.0
"""Seconds after which a campaign is over that has armed nothing, since too few devices report."""
SETTINGS: Final = Settings(kinds=("error",), max_size=1, treatment=0.2, control=0.4)
LIMITS: Final = Limits(
    members_per_hour=1_000_000, members_per_day=1_000_000, protected_points=("api>message:*",)
)

Report = tuple[float, str, bool]
"""Seconds after the answer, the device that says so, whether it is content."""


@dataclass(eq=False)
class Device:
    """``lost``: it has lost what its next request needs."""

    name: str
    lost: bool = False


class Request:
    """One request as it is served. ``clock``: when it is, for it (Unix seconds); ``ended``: when it
    was answered, where more is called later; ``hit``: where faults have fired in it."""

    def __init__(self, device: Device, trace: str, began: float) -> None:
        self.device, self.trace = device, trace
        self.began = self.clock = began
        self.ended: float | None = None
        self.good = True
        self.hit: set[str] = set()
        self.arm: Arm | None = None
        self.skew = 0.0
        self.spans: list[tuple[float, Span]] = []
        self.fields = {"method": "GET", "url": "http://api/boot"}
        self._ids = itertools.count()
        self._kinds: dict[str, str] = {}
        self._expires = math.inf

    def claim(self, rule: Rule, arm: Arm, expires: float, *, again: bool) -> None:
        """Put it under an experiment."""
        self.arm, self._expires = arm, expires
        self._kinds = {fault.point: fault.kind for fault in rule.faults}
        self.fields |= {"experiment": rule.experiment, "arm": arm}
        self.fields |= {"again": "true"} if again else {}

    def new_id(self) -> str:
        """Name a span that is yet to be written."""
        return f"s{next(self._ids)}"

    def call(self, point: str, *, under: str = "root", hangs: float = 0.0) -> bool:
        """Call a point; whether it went well. ``hangs``: it times out by itself, after so long."""
        began, kind = self.clock, self._kinds.get(point)
        marks, failed = dict[str, str](), hangs > 0
        if kind and self.clock >= self._expires:
            marks = {"expired": "true"}
        elif kind and self.arm == "treatment":
            marks, failed, hangs = {"fired": kind}, True, 0.0
            self.hit.add(point)
        elif kind:
            marks = {"would_fire": shown_as(f"{kind}@{point}").partition("@")[0]}
        self.clock += hangs or 0.02
        self.write(self.new_id(), under, began, failed=failed, point=point, **marks)
        return not failed

    def write(
        self, name: str, above: str | None, began: float, kind: str = "client", **fields: Any
    ) -> None:
        """Write a span that ends now."""
        at = (int((began + self.skew) * 1e9), int((self.clock + self.skew) * 1e9))
        what = name if kind == "server" else kind
        one = span(what, above, kind, trace=self.trace, at=at, **fields)._replace(span_id=name)
        self.spans.append((self.clock + EXPORT, one))


def prompt(request: Request, rng: random.Random) -> Sequence[Report]:
    """Report once, at once."""
    return [(rng.uniform(0.05, 0.2), request.device.name, request.good)]


def twice(rng: random.Random) -> Sequence[float]:
    """Ask two times, some seconds apart."""
    return [rng.uniform(3, 20)]


@dataclass(frozen=True)
class Crowd:
    """Devices that are alike. ``rate``: visits a second; ``pool``: how many devices there are, each
    a new one with 0; ``gaps``: seconds between the requests of a visit."""

    rate: float | Callable[[float], float] = 5.0
    pool: int = 3_000
    gaps: Callable[[random.Random], Sequence[float]] = twice
    name: str = "d"

    def next(self, now: float, rng: random.Random) -> float:
        """Draw when the next visit is."""
        return now + rng.expovariate(self.rate(now) if callable(self.rate) else self.rate)


@dataclass
class Scene:
    """A drawn world. ``serve``: what its application does for a request. ``planted``: the points
    whose failing hurts; none where nothing does. ``fails``: whether a request fails by itself."""

    serve: Callable[[Request], object]
    story: str = ""
    planted: frozenset[str] = frozenset()
    settings: Settings = SETTINGS
    crowds: tuple[Crowd, ...] = (Crowd(),)
    fails: Callable[[Request], bool] = lambda _request: False
    report: Callable[[Request, random.Random], Sequence[Report]] = prompt
    early: bool = False
    """Whether what fails by itself does so before anything else is called, or when all is done."""
    skews: tuple[float, float] = (0.0, 0.0)
    """How wrong the clocks of the two edges go, in seconds."""


@dataclass(kw_only=True)
class Told:
    """What a campaign came to. ``false``: findings that are; ``refused``: it has treated nobody,
    and says that too few devices report; ``left``: points that it names as out of reach, where
    nothing else is open; ``devices``: that were treated."""

    found: bool
    false: list[str]
    complete: bool
    refused: bool
    left: list[str]
    devices: int
    experiments: int
    seconds: float
    story: list[str]


class Town:
    """A scene and the service that watches it."""

    def __init__(self, scene: Scene, rng: random.Random, database: Database) -> None:
        self.scene, self._rng = scene, rng
        self.engine = Engine(database, now=START, limits=LIMITS)
        self._database = database
        self._edges = [Edge("edge0"), Edge("edge1")]
        self.now = START
        self._numbers = itertools.count(1)
        self._devices: dict[str, Device] = {}
        self._asked: list[tuple[float, int, Device | Crowd]] = []
        self._spans: list[tuple[float, int, Span]] = []
        self._reports: list[tuple[float, int, Outcome]] = []
        self._ends: list[tuple[float, int, tuple[str, Counts]]] = []
        self._counts: dict[str, Counts] = {}
        for crowd in scene.crowds:
            self._push(self._asked, crowd.next(START, rng), crowd)

    def step(self) -> None:
        """Let half a second go by."""
        until = self.now + STEP
        for edge in self._edges:
            edge.poll(self.engine, self.now)
        while self._asked[0][0] <= until:
            at, _, who = heapq.heappop(self._asked)
            if isinstance(who, Crowd):
                self._push(self._asked, who.next(at, self._rng), who)
                who = self._visit(who, at)
            self._serve(who, at)
        self.now = until
        self.engine.receive_spans(_due(self._spans, until), until)
        self.engine.receive_outcomes(_due(self._reports, until), until)
        if self.scene.settings.promql is not None:
            self._count(until)
        self.engine.tick(until)

    def campaign(self) -> Told:
        """Run one campaign to its end."""
        while self.now < START + KNOWN:
            self.step()
        commands, definition = self.engine.scheduler.commands, Definition(self.scene.settings)
        campaign = commands.start(definition, "benchmark", self.now)
        began = self.now
        while campaign.live() and self.now < began + LONGEST:
            self.step()
            if self.now >= began + REFUSED and not campaign.active() and _refused(campaign):
                break
        return self._told(campaign)

    def _visit(self, crowd: Crowd, at: float) -> Device:
        number = self._rng.randrange(crowd.pool) if crowd.pool else next(self._numbers)
        device = self._devices.setdefault(f"{crowd.name}{number}", Device(f"{crowd.name}{number}"))
        for gap in crowd.gaps(self._rng):
            at += gap
            self._push(self._asked, at, device)
        return device

    def _serve(self, device: Device, at: float) -> None:
        scene, number = self.scene, self._rng.randrange(2)
        request = Request(device, f"{next(self._numbers):032x}", at)
        request.skew = scene.skews[number]
        edge = self._edges[number]
        claimed = edge.claim("/boot", device.name, at)
        if claimed is not None:
            rule, arm, again = claimed
            expires = math.ceil(at + max(edge.lease.ends - at, rule.patience))
            request.claim(rule, arm, expires, again=again)
        fails = scene.fails(request)
        if not (fails and scene.early):
            scene.serve(request)
        request.good &= not fails
        ended = request.clock if request.ended is None else request.ended
        last, request.clock = request.clock, ended + 0.01
        request.write("root", None, at, "server", failed=not request.good, **request.fields)
        for when, each in request.spans:
            self._push(self._spans, when, each)
        if request.arm is not None:
            one = [1, not request.good, 0, 0]
            one = one[2:] + one[:2] if request.arm == "treatment" else one
            self._push(self._ends, last, (request.fields["experiment"], Counts(*map(int, one))))
        for late, who, content in scene.report(request, self._rng):
            metric = {
                "device": who,
                "member": who,
                "trace_id": request.trace,
                "outcome": "success" if content else "failure",
                "duration_ms": 1_000 * (request.clock - at),
            }
            said = max(request.clock, last) + late
            self._push(self._reports, said, _outcome(metric, b"the key of a benchmark"))

    def _count(self, until: float) -> None:
        """Have what has ended counted elsewhere, as a Prometheus would."""
        for name, one in _due(self._ends, until):
            self._counts[name] = self._counts.get(name, Counts()) + one
        for _, experiment in self.engine.scheduler.state.active():
            experiment.count(self._counts.get(experiment.id, Counts()))

    def _push(self, where: list[Any], at: float, what: object) -> None:
        heapq.heappush(where, (at, next(self._numbers), what))

    def _told(self, campaign: Campaign) -> Told:
        with self._database.read() as session:
            rows = list(session.scalars(select(ExperimentRow).order_by(ExperimentRow.created_at)))
            found = select(FindingRow.faults).where(FindingRow.state.in_(HURTING))
            hurt = list(session.scalars(found))
        planted = self.scene.planted
        points = {" + ".join(f): frozenset(e.partition("@")[2] for e in f) for f in hurt}
        kind = campaign.ending.kind if campaign.ending else None
        began = START + KNOWN
        return Told(
            found=bool(planted) and planted in points.values(),
            false=[name for name, of in points.items() if not planted or not planted <= of],
            complete=kind == "complete" and not campaign.live(),
            refused=not rows and _refused(campaign),
            left=_left(campaign),
            devices=sum(row.members_charged for row in rows),
            experiments=len(rows),
            seconds=round(self.now - began, 1),
            story=[
                *(_line(row, began) for row in rows),
                f"{self.now - began:.0f} s: {campaign.state}, {campaign.reason}; "
                f"found {list(points)}, waits for {campaign.waiting}",
            ],
        )


def _refused(campaign: Campaign) -> bool:
    return any("tolerated takes" in each for each in campaign.waiting.values())


def _left(campaign: Campaign) -> list[str]:
    left = campaign.ending.left if campaign.ending else ()
    if any(each.why or each.silent or each.unseen for each in left):
        return []
    return sorted(point for each in left for point in each.unreached)


def _due(where: list[Any], until: float) -> list[Any]:
    """Take out all that is due."""
    due = []
    while where and where[0][0] <= until:
        due.append(heapq.heappop(where)[2])
    return due


def _line(row: ExperimentRow, began: float) -> str:
    at = (row.armed_at or row.created_at) - began
    return (
        f"{at:.0f} s: {row.purpose} {' + '.join(row.hypothesis)}: {row.verdict or row.state}, "
        f"{row.members_hurt} of {row.members_charged} hurt: {row.reason}"
    )


def run(scene: Scene, rng: random.Random) -> Told:
    """Run a campaign in a scene; the same one for the same seed."""
    ids = SimpleNamespace(token_hex=lambda octets: rng.randbytes(octets).hex())
    database = Database("sqlite://")
    try:
        with patch.object(shared_state, "secrets", ids):
            return Town(scene, rng, database).campaign()
    finally:
        database.close()
