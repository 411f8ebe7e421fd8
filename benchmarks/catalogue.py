"""What it costs to know a thousand request classes: time for each request, memory for each class.

    python -m benchmarks.catalogue --json

Steady traffic over a thousand entries, in three steps: every entry's first sample, then as many
whole samples as asked for. A tenth of the entries hit a cache half of the time, a tenth rely on
what a query parameter says, and in one request of twenty some call fails. Every request comes as a
trace that :func:`ldfi.lineage.lineage.learn` has seen the shape of, as nearly all do; the learning
itself is measured by ``benchmarks.ingest``.

``before``: what the same requests cost in the simple way, one :class:`Traffic` for each method and
path; the catalogue's cost is what comes on top.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from benchmarks.outcome import Row, at_most, say
from ldfi.experiments.domain.traffic import catalogue as catalogue_module
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.lineage import lineage as lineage_module
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace

ON_TOP = 50.0
"""Microseconds that the catalogue may add to each request."""

DISCOVERING = 0.25
"""Share of the catalogue's time that may go into looking for classes."""

MEMORY = 100.0
"""Kilobytes that a class may cost."""

CALLS = 12
"""Calls of a request to other services, each with a query inside."""


@dataclass
class Entries:
    """Many entries, each with the few ways in which its requests go."""

    ways: list[list[tuple[Lineage, bool, float]]]

    @classmethod
    def of(cls, count: int, seed: int = 0) -> Entries:
        """Make so many entries."""
        rng = random.Random(seed)
        return cls([_ways(rng, number) for number in range(count)])

    def requests(self, each: int, seed: int) -> Iterator[Observation]:
        """Make so many requests of each entry, in any order."""
        rng = random.Random(seed)
        order = [number for number in range(len(self.ways)) for _ in range(each)]
        rng.shuffle(order)
        for serial, number in enumerate(order):
            ways = self.ways[number]
            (run, good, _) = rng.choices(ways, [weight for _, _, weight in ways])[0]
            trace_id = f"{seed:08x}{serial:024x}"
            run = replace(run, trace_id=trace_id, trace=Trace(trace_id, run.trace.spans))
            yield Observation(run, Outcome(trace_id, f"d{serial}", "", good))


def _ways(rng: random.Random, number: int) -> list[tuple[Lineage, bool, float]]:
    calls = frozenset(range(CALLS))
    lost = rng.randrange(CALLS)
    ways = [(_run(number, calls), True, 0.95)]
    ways.append((_run(number, calls, failed=lost), lost > 0, 0.05))
    if number % 10 == 1:
        ways.append((_run(number, calls - {3}), True, 0.95))
    if number % 10 == 2:
        ways.append((_run(number, calls - {4}, query="brief=1"), True, 0.95))
    return ways


def _run(number: int, calls: frozenset[int], failed: int = -1, query: str = "") -> Lineage:
    def span(name: str, above: str | None, at: int, kind: str, status: int, **fields: str) -> Span:
        service = f"s{number}" if above == "root" or above is None else above
        what = operation(service, name, kind, status, False, tuple(sorted(fields.items())))
        return Span("0" * 32, name, above, at, 1000 - at, what)

    path = f"/shelves/{_word(number)}"
    spans = [span("root", None, 0, "server", 1, method="GET", path=path, query=query)]
    for i in sorted(calls):
        point = f"api>http:GET:dependency-{i}/{_word(number)}/items/*"
        status = 2 if i == failed else 1
        spans.append(span(f"c{i}", "root", 2 * i + 1, "client", status, point=point))
        if i != failed:
            inner = f"dependency-{i}>db:SELECT:store/{_word(number)}"
            spans.append(span(f"q{i}", f"c{i}", 2 * i + 2, "client", 1, point=inner))
    run = learn(Trace.of("0" * 32, spans))
    assert run is not None
    return run


def _word(number: int) -> str:
    """Make a word that looks like no identifier."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


class Simply:
    """One class for each method and path, as the yardstick."""

    def __init__(self) -> None:
        self.classes: dict[str, Traffic] = {}

    def observe(self, observation: Observation, now: float) -> None:
        """Take in one request."""
        features = observation.lineage.features
        name = f"{features['method']} {features['path']}"
        traffic = self.classes.get(name)
        if traffic is None:
            traffic = self.classes[name] = Traffic()
        traffic.observe(observation, now)


def cost(observe: Callable[[Observation, float], None], requests: Iterator[Observation]) -> float:
    """Measure microseconds of CPU time for a request, their making not counted."""
    spent, count = 0.0, 0
    while batch := [each for each, _ in zip(requests, range(20_000), strict=False)]:
        begin = time.process_time()
        for each in batch:
            observe(each, 0.0)
        spent += time.process_time() - begin
        count += len(batch)
    return spent / count * 1e6


class Discovering:
    """Counts the time that goes into looking for classes, from outside."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.times = 0
        self._discover = vars(catalogue_module)["discover"]

    def __enter__(self) -> Discovering:
        vars(catalogue_module)["discover"] = self._timed
        return self

    def __exit__(self, *_: object) -> None:
        vars(catalogue_module)["discover"] = self._discover

    def _timed(self, shapes: object) -> object:
        begin = time.process_time()
        found = self._discover(shapes)
        self.seconds += time.process_time() - begin
        self.times += 1
        return found


def walking(run: Lineage, times: int = 2_000) -> tuple[float, float]:
    """Measure microseconds for a topology to learn a trace: of a new shape, and of one seen
    before."""
    begin = time.process_time()
    for _ in range(times):
        Topology().learn(run)
    new = time.process_time() - begin
    topology = Topology()
    begin = time.process_time()
    for _ in range(times):
        topology.learn(run)
    return new / times * 1e6, (time.process_time() - begin) / times * 1e6


def memory(count: int, each: int) -> tuple[float, float]:
    """Measure kilobytes for a class after so many requests of each entry: in memory, and written
    down.

    What goes when the catalogue goes, nothing else being left that shares its sets of points.
    """
    tracemalloc.start()
    catalogue, entries = Catalogue(), Entries.of(count)
    for request in entries.requests(each, seed=99):
        catalogue.observe(request, 0.0)
    classes = len(catalogue.classes)
    written = sum(len(json.dumps(row, separators=(",", ":"))) for row in catalogue.to_json())
    del entries, request
    lineage_module._known.clear()
    gc.collect()
    full, _ = tracemalloc.get_traced_memory()
    del catalogue
    gc.collect()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (full - left) / classes / 1e3, written / classes / 1e3


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="the cost of knowing request classes")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--entries", type=int, default=1_000)
    parser.add_argument("--samples", type=int, default=1, help="whole samples after the first")
    given = parser.parse_args()
    entries = Entries.of(given.entries)
    simply = cost(Simply().observe, entries.requests(500, seed=1))
    catalogue, rows = Catalogue(), list[Row]()
    for number in range(given.samples + 1):
        with Discovering() as discovering:
            took = cost(catalogue.observe, entries.requests(500, seed=number + 1))
        seconds = took * 500 * given.entries / 1e6
        rows.append(
            {
                "sample": number + 1,
                "requests": 500 * given.entries,
                "classes": len(catalogue.classes),
                "microseconds": round(took, 2),
                "before": round(simply, 2),
                "requests_per_second": round(1e6 / took),
                "discoveries": discovering.times,
                "discovering": round(discovering.seconds / seconds, 3),
            }
        )
    changed = sum(change.kind == "changed" for change in catalogue.changes())
    del catalogue
    new, again = walking(entries.ways[0][0][0])
    del entries
    in_memory, written = memory(given.entries, 600)
    worst = max(float(str(row["microseconds"])) for row in rows)
    share = max(float(str(row["discovering"])) for row in rows)
    targets = {
        "microseconds on top of the simple way": at_most(round(worst - simply, 2), ON_TOP),
        "share of the time in discovery": at_most(share, DISCOVERING),
        "kilobytes for a class": at_most(round(in_memory, 1), MEMORY),
        "classes said to have changed": at_most(changed, 0),
    }
    walked: Row = {"new_shape_us": round(new, 2), "seen_before_us": round(again, 3)}
    sizes: Row = {"kilobytes": round(in_memory, 1), "written": round(written, 1)}
    tables = {"requests": rows, "topology": [walked], "a class": [sizes]}
    say(tables, targets, as_json=given.json)


if __name__ == "__main__":
    main()
