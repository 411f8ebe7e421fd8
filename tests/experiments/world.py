"""Everything around the engine, in simulated time: devices, edges, services.

The edges use the parts of ``fit`` that decide (leases, claims, allowances); only the sockets and
the clock are ours. The world knows what the service can only infer: who was exposed to what.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldfi.experiments.control.engine import Engine
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.fit.allocation import mark_of
from ldfi.fit.allowance import Allowances
from ldfi.fit.context import Arm
from ldfi.fit.rules import Lease, Rule, read_lease
from ldfi.lineage.span import Span
from tests.lineage.programs import Call, Run, Step
from tests.lineage.spans import span

PROGRAM = Call(
    "root",
    (
        Step("optional", (Call("ratings"),)),
        Step("fallback", (Call("playlist"), Call("popular"))),
        Step("critical", (Call("layout"),)),
    ),
)
"""Fails when ``layout`` does, or ``playlist`` and ``popular`` together."""

FOUND = {("error@layout",), ("error@playlist", "error@popular")}


@dataclass
class Edge:
    """One process of the edge. ``cut_off``: it cannot reach the service."""

    name: str
    cut_off: bool = False
    lease: Lease = field(default_factory=Lease)
    allowances: Allowances = field(default_factory=Allowances)

    def poll(self, engine: Engine, now: float) -> None:
        if self.cut_off:
            return
        report = self.allowances.report()
        engine.board.heard(self.name, self.lease.version, report, now)
        self.allowances.settle(report)
        self.lease = read_lease(engine.board.lease(self.name, now), now)
        self.allowances.renew(self.lease.rules)

    def claim(self, path: str, device: str, now: float) -> tuple[Rule, Arm] | None:
        if now >= self.lease.ends:
            return None
        claimed = self.lease.allocate({"method": "GET", "path": path}, device)
        if claimed is None:
            return None
        rule, arm = claimed
        admitted = self.allowances.admit(rule.experiment, arm, mark_of(device))
        return claimed if admitted else None


class World:
    """Devices ask for the paths of ``programs`` through the edges."""

    def __init__(
        self, engine: Engine, programs: Mapping[str, Call] | None = None, edges: int = 1
    ) -> None:
        self.engine = engine
        self.programs = dict(programs or {"/boot": PROGRAM})
        self.edges = [Edge(f"edge{number}") for number in range(edges)]
        self.now = 1000.0
        self.devices = 2003
        self.exposed: defaultdict[str, set[str]] = defaultdict(set)
        """Experiment → devices whose requests were treated, as only the world knows."""
        self.last_treated: dict[str, float] = {}
        self._ids = itertools.count(1)

    def step(self, requests: int = 40, seconds: float = 1.0) -> None:
        """Some traffic."""
        for edge in self.edges:
            edge.poll(self.engine, self.now)
        for _ in range(requests):
            for path in self.programs:
                self._request(path)
        self.now += seconds
        for edge in self.edges:
            edge.poll(self.engine, self.now)
        self.engine.tick(self.now)

    def steps(self, count: int) -> None:
        """A good deal of traffic."""
        for _ in range(count):
            self.step()

    def rules(self) -> list[str]:
        """The experiments that are armed."""
        return self.engine.board.armed()

    def until_armed(self, limit: int = 50) -> str:
        """Traffic, until an experiment is armed and fetched; its id."""
        for _ in range(limit):
            self.step()
            if self.rules():
                return self.rules()[0]
        raise AssertionError(f"nothing was armed in {limit} steps")

    def _request(self, path: str) -> None:
        number = next(self._ids)
        device, trace_id = f"d{number % self.devices}", f"{number:032x}"
        edge = self.edges[number % len(self.edges)]
        claimed = edge.claim(path, device, self.now)
        faults: frozenset[str] = frozenset()
        marks, would = {}, frozenset[str]()
        if claimed is not None:
            rule, arm = claimed
            marks = {"experiment": rule.experiment, "arm": arm}
            chosen = frozenset(map(str, rule.faults))
            if arm == "treatment":
                faults = chosen
                self.exposed[rule.experiment].add(device)
                self.last_treated[rule.experiment] = self.now
            else:
                would = chosen
        run = Run(faults).execute(self.programs[path])
        fields = {"method": "GET", "url": f"http://api{path}", **marks}
        spans = [_rewritten(each, trace_id, fields, would) for each in run.spans]
        self.engine.receive_spans(spans, self.now)
        outcome = Outcome(trace_id, device, "", run.good, duration=0.1)
        self.engine.receive_outcomes([outcome], self.now)


def _rewritten(each: Span, trace_id: str, fields: dict[str, str], would: frozenset[str]) -> Span:
    """The span of a run, as part of a trace, and for the root with what the edge wrote on it."""
    what = each.operation
    at = (each.start, each.end)
    if what.serves:
        return span("root", kind="server", trace=trace_id, failed=what.failed, at=at, **fields)
    if f"error@{what.point}" in would:
        marks = {"point": str(what.point), "would_fire": "error"}
        return span(
            each.span_id, each.parent_id, trace=trace_id, failed=what.failed, at=at, **marks
        )
    return each._replace(trace_id=trace_id)
