"""Whom failed requests blame: is it what was planted, and is it named first?

    python -m benchmarks.blame --json

Applications drawn at random: needed calls one after the other or side by side, some of them a
service further in, some tried three times; optional calls before, between, beside and after them,
which fail now and then; what is always done at the end and often goes wrong when the rest has;
compensations and reports that only a failed request makes. In each failed request one needed call
fails for good, what is at work beside it is given up every second time, and what else fails is
drawn beside it.

Each request is blamed as ``ldfi analyze`` does, which has all requests of its class, and as the
service does on the request's arrival, which has those that came before it and blames nobody before
it has seen some go well. A row without a target: applications of which no good request is known,
where little but time tells who is to blame.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.analysis.suspects import suspected
from ldfi.experiments.domain.traffic.class_traffic import NATURAL_EVIDENCE, Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.lineage.blame import blame
from ldfi.lineage.classes import describe, discover
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.shapes import Shapes
from ldfi.lineage.span import Span, Trace

CLASSES, FAILED, GOOD = 40, 50, 300
"""Applications, and of each the failed requests and those that went well."""

UNSEEN = "analyze, where none went well"

Part = Literal["needed", "optional", "finally", "undo"]


@dataclass(frozen=True)
class Made:
    """One call of an application: what it is to it, how often it fails by itself (``alone``), and
    how often where the request has failed already (``fallout``)."""

    point: str
    part: Part
    within: str = "root"
    alone: float = 0.0
    fallout: float = 0.0
    tries: int = 1
    beside: bool = False
    """It begins together with the one before it."""


@dataclass
class Drawn:
    """One request as it is made up: its spans so far, and the time."""

    rng: random.Random
    serial: int
    spans: list[Span] = field(default_factory=list)
    clock: int = 1_000
    begun: int = 1_000

    def call(self, made: Made, *, fails: bool, within: str) -> None:
        """Make a call; what begins beside the one before is as long as a call may be."""
        begin = self.begun if made.beside else self.clock + self.rng.randint(1, 200)
        for attempt in range(made.tries if fails else self.rng.randint(1, made.tries)):
            failed = fails or (attempt + 1 < made.tries and self.rng.random() < 0.1)
            end = begin + self.rng.randint(100, 900)
            self.add(made.point, within, (begin, end), failed=failed)
            self.begun, begin = begin, end + 10
            self.clock = max(self.clock, end)
            if not failed:
                break
        else:
            if not fails:
                self.add(made.point, within, (begin, begin + 100), failed=False)
                self.clock = max(self.clock, begin + 100)

    def give_up(self, made: Made) -> None:
        """End a call that was at work beside the one before, which failed just now."""
        end = max(self.spans[-1].end + self.rng.randint(-2, 2), self.begun + 1)
        self.add(made.point, made.within, (self.begun, end), failed=True, how="thrown")

    def add(
        self, point: str, within: str, at: tuple[int, int], *, failed: bool, how: str = "status"
    ) -> None:
        """Note a span. ``how`` it says that it failed: by a status, or by what was thrown."""
        status = self.rng.choice(("500", "503", "503", "503")) if failed else "200"
        said = status if how == "status" else "CancelledError"
        fields = (("point", point), (how, said))
        what = operation("api", point, "client", 2 if failed else 1, False, fields)
        self.spans.append(Span(_trace(self.serial), f"s{len(self.spans)}", within, *at, what))


def _trace(serial: int) -> str:
    return f"{serial:032x}"


def application(rng: random.Random, number: int) -> list[Made]:
    """Draw what an application calls for a request, in its order."""
    names = [f"api>http:POST:{name}/{number}" for name in rng.sample(_NAMES, len(_NAMES))]
    hub = rng.random() < 0.4
    calls: list[Made] = []
    for place in range(rng.randint(2, 6)):
        within = "hub" if hub and place else "root"
        tries = rng.choice((1, 1, 1, 3))
        beside = bool(place > 1 and tries == 1 and rng.random() < 0.2)
        calls.append(Made(names.pop(), "needed", within, tries=tries, beside=beside))
    for _ in range(rng.randint(1, 4)):
        at, often = rng.randint(0, len(calls)), rng.choice((0.002, 0.01, 0.05, 0.2))
        within = calls[min(at, len(calls) - 1)].within
        beside = bool(at and rng.random() < 0.3)
        calls.insert(at, Made(names.pop(), "optional", within, often, often, beside=beside))
    for part, most in (("finally", 2), ("undo", 2)):
        for _ in range(rng.randint(0, most)):
            alone = rng.choice((0.0, 0.01, 0.05)) if part == "finally" else 0.0
            fallout = rng.choice((0.0, 0.2, 0.9))
            calls.append(Made(names.pop(), part, calls[-1].within, alone, fallout))  # type: ignore[arg-type]
    return calls


_NAMES = (
    *("ads", "audit", "basket", "cards", "deals", "email", "fraud", "geo", "history", "index"),
    *("journal", "kyc", "ledger", "mail", "notify", "orders", "pay", "quota", "rates", "stock"),
)


def request(rng: random.Random, calls: list[Made], serial: int, cause: Made | None) -> Lineage:
    """Make one request; with ``cause`` that call fails for good, and the request with it."""
    drawn, broken = Drawn(rng, serial), False
    for place, made in enumerate(calls):
        if broken and made.part in {"needed", "optional"} and not made.beside:
            continue
        if not broken and made.part == "undo":
            continue
        if broken and made.beside and cause is calls[place - 1] and rng.random() < 0.5:
            drawn.give_up(made)
            continue
        fails = made is cause or rng.random() < (made.fallout if broken else made.alone)
        drawn.call(made, fails=fails, within=made.within)
        broken = broken or made is cause
    spans = drawn.spans
    if any(made.within == "hub" for made in calls):
        inside = [span for span in spans if span.parent_id == "hub"]
        failed = broken and cause is not None and cause.within == "hub"
        begin = min((span.start for span in inside), default=drawn.clock)
        at = begin - 1, max((span.end for span in inside), default=begin) + 1
        drawn.add("api>http:POST:hub", "root", at, failed=failed)
        hub = drawn.spans[-1]
        spans = [s._replace(parent_id=hub.span_id) if s.parent_id == "hub" else s for s in spans]
    status = 2 if broken else 1
    fields = (("method", "POST"), ("path", "/order"))
    what = operation("api", "POST /order", "server", status, False, fields)
    root = Span(_trace(serial), "root", None, 0, drawn.clock + 2_000, what)
    run = learn(Trace.of(_trace(serial), [root, *spans]))
    assert run is not None
    return replace(run, start=serial)


@dataclass
class Count:
    """What came of the failed requests of some applications, blamed in one way."""

    first: int = 0
    innocent: int = 0
    total: int = 0

    def add(self, cause: str, found: tuple[str, ...]) -> None:
        """Count one request."""
        self.total += 1
        self.first += found[:1] == (cause,)
        self.innocent += found[:1] not in {(), (cause,)}

    def row(self, how: str) -> Row:
        """Say it in shares."""
        return {
            "blamed by": how,
            "requests": self.total,
            "cause first": round(self.first / self.total, 4),
            "innocent first": round(self.innocent / self.total, 4),
        }


def measure(seed: int) -> list[Row]:
    """Blame the failed requests of all applications."""
    rng, counts = random.Random(seed), defaultdict[str, Count](Count)
    for number in range(CLASSES + CLASSES // 4):
        calls, traffic, shapes = application(rng, number), Traffic(), Shapes()
        good = GOOD if number < CLASSES else 0
        needed = [made for made in calls if made.part == "needed"]
        causes = [*(rng.choice(needed) for _ in range(FAILED)), *[None] * good]
        rng.shuffle(causes)
        told: dict[str, str] = {}
        for serial, cause in enumerate(causes, 1):
            run = request(rng, calls, serial, cause)
            shapes.add(run)
            if cause is not None:
                told[run.trace_id] = cause.point
            if cause is not None and traffic.good >= NATURAL_EVIDENCE:
                found = blame(run.tree, traffic.usual_support(), traffic.record())
                counts["the service"].add(cause.point, found)
            seen = Outcome(run.trace_id, f"d{serial}", "", cause is None)
            traffic.observe(Observation(run, seen), serial / 10)
        for trace_id, found in _analysed(shapes):
            counts["analyze" if good else UNSEEN].add(told[trace_id], found)
    return [count.row(how) for how, count in counts.items()]


def _analysed(shapes: Shapes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Blame as ``ldfi analyze`` does; of each shape the requests that are kept as examples."""
    for each in discover(shapes):
        whole = describe(each.predicate, each.shapes)
        for shape, found in suspected(whole):
            for _, trace_id in shape.traces:
                yield trace_id, found


def targets(rows: list[Row]) -> dict[str, Target]:
    """Hold the worse of the two ways against what is promised."""
    held = [row for row in rows if row["blamed by"] != UNSEEN]
    return {
        "cause named first": at_least(min(float(str(r["cause first"])) for r in held), 0.97),
        "innocent named first": at_most(max(float(str(r["innocent first"])) for r in held), 0.01),
    }


def main() -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="whom failed requests blame")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = measure(given.seed)
    return 0 if say({"blame": rows}, targets(rows), as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
