"""What becomes of traces whose spans come in pieces, late, or never.

    python -m benchmarks.late_spans [--json] [--requests N] [--seeds N]

A generated application of one to seven services behind an edge. Devices send a ``traceparent``
that nobody exports. Every service exports every five seconds, as OpenTelemetry does by default,
each at a phase of its own, and has a clock of its own, wrong by up to five seconds. One span in
twenty is lost or comes up to a minute late. Half of the requests are under an experiment, in which
``fit`` announces calls; half of the applications have an edge that marks its requests. All of it
goes through what a worker does with a partition, and is held against the truth, which only the
generator knows.

``announced``: a trace taken as whole that lacks a span which another span in it tells of: the
parent it names, the callee of a call that was answered, one of the calls that it counts.
``unannounced``: one that lacks a leaf of which nothing tells. ``intact``: requests of which nothing
went astray, and whose device reported.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.domain.traffic.waiting import Waiting
from ldfi.experiments.streams.partition import PartitionWork, Patience
from ldfi.lineage.span import Span
from ldfi.testing.spans import span

DEPTHS = range(1, 8)
REQUESTS = 600
RATE = 4.0
"""Requests a second."""

EXPORT = 5.0
SKEW = 5.0
"""By so many seconds a clock may be wrong, either way."""

ASTRAY = 0.05
"""Share of spans that are lost or late, half of them each."""

LATEST = 60.0
SILENT = 0.03
"""Share of devices that never report."""

TICK = 0.25
TAKEN_IN_PARTS = 0.001
USED = 0.99

EDGE = "s0"


@dataclass
class Sent:
    """One request as it was: its spans by id, and those that went astray."""

    spans: dict[str, Span]
    astray: frozenset[str]


@dataclass
class Application:
    """Services in a chain, each with a query and an optional one, and a second callee now and
    then. ``marks``: its edge marks what comes in."""

    rng: random.Random
    depth: int
    marks: bool
    phases: dict[str, float] = field(default_factory=dict)
    clocks: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(self.depth + 1):
            self.phases[f"s{number}"] = self.rng.uniform(0, EXPORT)
            self.clocks[f"s{number}"] = self.rng.uniform(-SKEW, SKEW)

    def request(self, trace: str, now: float, experiment: bool) -> dict[str, Span]:
        """Make the spans of one request."""
        spans = list(self._served(0, "device", trace, now, experiment))
        return {each.span_id: each for each in spans}

    def _served(
        self, number: int, above: str, trace: str, now: float, experiment: bool
    ) -> Iterator[Span]:
        """One service's part, and all that lies behind it."""
        service, me = f"s{number}", f"{trace[-6:]}-{number}"
        calls = [("query", f"{service}>db:SELECT:store/rows")]
        if self.rng.random() < 0.3:
            calls.append(("extra", f"{service}>db:SELECT:store/extras"))
        if number < self.depth:
            calls.append(("call", f"{service}>http:GET:s{number + 1}/work"))
        end = now + 0.01 * (self.depth - number + 1)
        at = self._at(service, now, end)
        marks = {"route": "/work", "method": "GET", "path": "/work"}
        if experiment:
            marks |= {"calls": str(len(calls)), "experiment": "e1", "arm": "treatment"}
        if number == 0 and self.marks:
            marks["edge"] = "True"
        yield span(f"{me}-served", above, "server", service, False, at, trace, **marks)
        for name, point in calls:
            called = f"{me}-{name}"
            within = self._at(service, now + 0.001, end - 0.001)
            yield span(called, f"{me}-served", "client", service, False, within, trace, point=point)
            if name == "call":
                yield from self._served(number + 1, called, trace, now + 0.002, experiment)

    def _at(self, service: str, start: float, end: float) -> tuple[int, int]:
        """Tell the time by a service's own clock, in nanoseconds."""
        wrong = self.clocks[service] + 1_000.0
        return int((start + wrong) * 1e9), int((end + wrong) * 1e9)

    def exported(self, each: Span) -> float:
        """Return when a span is exported: with the first batch after it has ended."""
        service = each.operation.service
        ended = each.end / 1e9 - self.clocks[service] - 1_000.0
        phase = self.phases[service]
        return ended + EXPORT - (ended - phase) % EXPORT + self.rng.uniform(0.0, 0.3)


@dataclass
class Run:
    """What became of the requests to one application."""

    depth: int
    marks: bool
    sent: dict[str, Sent] = field(default_factory=dict)
    used: dict[str, Observation] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    drops: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)

    def row(self) -> Row:
        """Hold it against the truth."""
        parts = [self._lacking(trace_id) for trace_id in self.used]
        intact = [trace_id for trace_id, each in self.sent.items() if not each.astray]
        reported = [trace_id for trace_id in intact if trace_id in self.reported]
        joins = sum(count for reason, count in self.drops.items() if reason in _OF_OUTCOMES)
        return {
            "services": self.depth,
            "edge marks": self.marks,
            "requests": len(self.sent),
            "used": len(self.used),
            "announced": parts.count("announced"),
            "unannounced": parts.count("unannounced"),
            "intact": len(reported),
            "intact and used": sum(trace_id in self.used for trace_id in reported),
            "invented": sum(o.lineage.service != EDGE for o in self.used.values()),
            "cut": self.fates["cut"],
            "rootless": self.fates["rootless"],
            "late": self.fates["late"],
            "outcomes": len(self.reported),
            "uncounted": len(self.reported) - len(self.used) - joins,
        }

    def _lacking(self, trace_id: str) -> str:
        """Return what a trace that was used lacks, from all that was sent of it."""
        true = self.sent[trace_id].spans
        have = {each.span_id for each in self.used[trace_id].lineage.trace.spans}
        lacking = set(true) - have
        if not lacking:
            return ""
        named = {true[each].parent_id for each in have}
        for each in lacking:
            above = true[each].parent_id or ""
            counted = any(name == "calls" for name, _ in _fields(true, above))
            answers = true[each].operation.serves and above in have
            if each in named or answers or (counted and above in have) or above == "device":
                return "announced"
        return "unannounced"


_OF_OUTCOMES = frozenset({"join_unknown_trace", "join_trace_unusable", "join_duplicate"})


def _fields(true: dict[str, Span], span_id: str) -> tuple[tuple[str, str], ...]:
    return true[span_id].operation.fields if span_id in true else ()


def simulated(depth: int, marks: bool, requests: int, seed: int) -> Run:
    """Send requests to one application, and let time pass until all is over."""
    rng = random.Random(f"{seed} {depth} {marks}")
    application, run = Application(rng, depth, marks), Run(depth, marks)
    arrivals: list[tuple[float, int, Span | Outcome]] = []
    now = 0.0
    for number in range(requests):
        now += rng.expovariate(RATE)
        trace_id = f"{number + 1:032x}"
        spans = application.request(trace_id, now, experiment=number % 2 == 0)
        astray = {each for each in spans if rng.random() < ASTRAY}
        run.sent[trace_id] = Sent(spans, frozenset(astray))
        for each in spans.values():
            if each.span_id in astray and rng.random() < 0.5:
                continue
            late = rng.uniform(0.0, LATEST) if each.span_id in astray else 0.0
            heappush(arrivals, (application.exported(each) + late, len(arrivals), each))
        if rng.random() >= SILENT:
            run.reported.add(trace_id)
            told = Outcome(trace_id, f"d{number}", "", success=True)
            heappush(arrivals, (now + rng.uniform(0.0, 1.0), len(arrivals), told))
    _work(run, arrivals, now)
    return run


def _work(run: Run, arrivals: list[tuple[float, int, Span | Outcome]], last: float) -> None:
    """Do what a worker does with a partition."""
    waiting = Waiting.of()
    work = PartitionWork(Patience.of(waiting))
    offsets = {"spans": 0, "metrics": 0}
    now, end = 0.0, last + LATEST + 2 * (waiting.request + waiting.outcome)
    while now < end:
        now += TICK
        while arrivals and arrivals[0][0] <= now:
            at, _, each = heappop(arrivals)
            if isinstance(each, Outcome):
                work.read("metrics", offsets["metrics"], at, at)
                work.take_outcome(each, offsets["metrics"])
                offsets["metrics"] += 1
            else:
                work.read("spans", offsets["spans"], at, at)
                work.take_spans(each.trace_id, [each], offsets["spans"])
                offsets["spans"] += 1
        work.idle("spans", offsets["spans"], now)
        work.idle("metrics", offsets["metrics"], now)
        work.advance()
        joined = [observation for observation, _ in work.joined()]
        run.used |= {each.lineage.trace_id: each for each in joined}
        work.acknowledged(each.lineage.trace_id for each in joined)
    run.drops = work.drops()
    run.fates = Counter({str(fate): count for fate, count in work.fates().items()})


def measure(requests: int = REQUESTS, seeds: int = 1) -> tuple[list[Row], dict[str, Target]]:
    """Simulate all applications; the rows, and the targets."""
    rows = [
        simulated(depth, marks, requests, seed).row()
        for seed in range(seeds)
        for depth in DEPTHS
        for marks in (True, False)
    ]

    def total(column: str) -> int:
        return sum(int(str(row[column])) for row in rows)

    targets = {
        "taken_as_whole_although_announced": at_most(
            total("announced") / max(1, total("used")), TAKEN_IN_PARTS
        ),
        "intact_traces_used": at_least(total("intact and used") / max(1, total("intact")), USED),
        "inner_classes_invented": at_most(total("invented"), 0),
        "outcomes_lost_uncounted": at_most(total("uncounted"), 0),
    }
    return rows, targets


def main() -> int:
    """Simulate and say what came of it. The exit status: 0 where every target is met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    rows, targets = measure(options.requests, options.seeds)
    return 0 if say({"late spans": rows}, targets, as_json=options.json) else 1


if __name__ == "__main__":
    sys.exit(main())
