"""Is ``demo/weaknesses.json`` exact? Every fault and every pair, tried on the real processes.

    python -m benchmarks.demo_oracle            everything: some minutes
    python -m benchmarks.demo_oracle --quick    every single fault, a sample of the pairs

It knows nothing of lineage: it starts the demo, listens for spans to learn which injection points
there are, signs failure contexts itself, and judges the answers as a device would. Points that
only a failure brings to light (fallbacks) are found on the way, until no new one appears. Besides
pairs it tries each shared peer as a whole and large random unions without a known failing set.

``delay@p`` counts as an error at p (``refused@p`` over HTTP) where both fail: the caller's timeout
makes one of the other. A set that fails is tried again, one request at a time.
Failing every time it is a failing set and is reduced to a minimal one; never again, it was the
machine (``noise``); sometimes, ``unstable``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.outcome import Target, at_most, say
from ldfi.demo.devices.fleet import ask, fleet
from ldfi.demo.devices.judge import judge
from ldfi.demo.limits import PATIENCE
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import FaultKind
from ldfi.fit.protocol.native_kinds import gone
from ldfi.fit.protocol.points import Point
from ldfi.fit.protocol.scenario import scenario_of

Faults = frozenset[Fault]

CLASSES = {"boot": "GET /boot", "play": "GET /play/*", "search": "GET /search"}
KEYS = "oracle:not-a-secret-of-anybody"
DELAY_MS = 3000
SPANS_ARRIVE_WITHIN = 0.8
ATTEMPTS = 2
CONFIRMATIONS = 4
WEAKNESSES = Path(__file__).parents[1] / "ldfi" / "demo" / "weaknesses.json"


class Sink(ThreadingHTTPServer):
    """Receives OTLP; remembers which points each trace passed, and which faults fired in it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.points: dict[str, set[str]] = {}
        self.fired: dict[str, set[Fault]] = {}
        Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore it: services that end hang up; that is no news."""

    def take(self, body: bytes) -> None:
        """Read one export."""
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    values = {a.key: a.value.string_value for a in span.attributes}
                    self._note(span.trace_id.hex(), values)

    def _note(self, trace_id: str, values: dict[str, str]) -> None:
        point, kind = values.get(attributes.POINT), values.get(attributes.FIRED)
        if point:
            self.points.setdefault(trace_id, set()).add(point)
        if point and kind:
            self.fired.setdefault(trace_id, set()).add(Fault.parse(f"{kind}@{point}"))


class _Receiver(BaseHTTPRequestHandler):
    server: Sink
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.take(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@dataclass
class Oracle:
    """Tries sets of faults on one class of requests."""

    kind: str
    client: httpx.AsyncClient
    sink: Sink
    concurrency: int
    chance: random.Random
    points: set[str] = field(default_factory=set)
    failing: set[Faults] = field(default_factory=set)
    tolerated: set[Faults] = field(default_factory=set)
    unstable: list[Faults] = field(default_factory=list)
    noise: list[str] = field(default_factory=list)
    never_all_fired: int = 0
    requests: int = 0

    async def request(self, faults: Faults) -> tuple[str, str | None]:
        """Send one request under these faults: its trace, and what a device would call it."""
        wanted = ask(self.kind, self.chance, sampled=1.0)
        device = self.chance.choice(DEVICES)
        context = encode(
            Keys.parse(KEYS),
            scenario_of(device.device),
            "treatment",
            int(time.time()) + 3600,
            faults,
            delay_ms=DELAY_MS,
        )
        headers = {
            "x-device-id": device.device,
            "x-device-type": device.type,
            "traceparent": wanted.traceparent,
            "baggage": f"fit={context}",
        }
        self.requests += 1
        try:
            async with asyncio.timeout(PATIENCE):
                response = await self.client.get(wanted.path, headers=headers)
        except TimeoutError:
            return wanted.trace_id, "timeout"
        return wanted.trace_id, judge(self.kind, response.status_code, response.content)

    async def learn_points(self, plain: int = 40) -> None:
        """See what requests touch when nothing is injected."""
        await self._many([frozenset()] * plain)

    async def try_all(self, sets: Collection[Faults]) -> None:
        """Try sets until each has failed, or survived with all of its faults fired."""
        waiting = [s for s in sets if s not in self.failing and s not in self.tolerated]
        suspects: dict[Faults, str] = {}
        for _ in range(ATTEMPTS):
            results = await self._many(waiting)
            suspects |= {faults: error for faults, error, _ in results if error}
            waiting = [faults for faults, error, fired in results if not error and not fired]
        self.never_all_fired += len(waiting)
        for faults, error in suspects.items():
            await self._judge_again(faults, error)
        self.tolerated |= set(sets) - self.failing

    async def _many(self, sets: Sequence[Faults]) -> list[tuple[Faults, str | None, bool]]:
        slots = asyncio.Semaphore(self.concurrency)

        async def one(faults: Faults) -> tuple[str, str | None]:
            async with slots:
                return await self.request(faults)

        results = await asyncio.gather(*map(one, sets))
        await asyncio.sleep(SPANS_ARRIVE_WITHIN)
        judged = []
        for faults, (trace_id, error) in zip(sets, results, strict=True):
            self.points |= self.sink.points.get(trace_id, set())
            judged.append((faults, error, faults <= self.sink.fired.get(trace_id, set())))
        return judged

    async def _judge_again(self, faults: Faults, error: str) -> None:
        if any(contains(faults, known) for known in self.failing):
            self.failing.add(faults)
            return
        again = [await self._fails(faults) for _ in range(CONFIRMATIONS)]
        if all(again):
            self.failing.add(await self._reduced(faults))
        elif any(again):
            self.unstable.append(faults)
        else:
            self.noise.append(f"{error}: {name(faults)}")

    async def _reduced(self, faults: Faults) -> Faults:
        """Leave out every fault without which the rest still fails."""
        for fault in sorted(faults):
            fewer = faults - {fault}
            if fewer and await self._fails(fewer) and await self._fails(fewer):
                faults = fewer
        return faults

    async def _fails(self, faults: Faults) -> bool:
        return (await self.request(faults))[1] is not None

    def faults(self) -> list[Fault]:
        """List every fault of every point seen so far."""
        return [Fault(point, kind) for point in sorted(self.points) for kind in kinds(point)]

    def minimal(self) -> set[Faults]:
        """List the minimal failing sets, with ``delay`` written as ``error`` where that fails
        too."""
        canonical = {as_errors(s) if as_errors(s) in self.failing else s for s in self.failing}
        return {s for s in canonical if not any(contains(s, o) for o in canonical - {s})}

    def open_pairs(self) -> list[Faults]:
        """List pairs at two points that contain no known failing set."""
        known = self.minimal()
        return [
            pair
            for pair in map(frozenset, combinations(self.faults(), 2))
            if len({fault.point for fault in pair}) == 2
            and not any(contains(pair, other) for other in known)
        ]

    def domains(self) -> dict[str, Faults]:
        """List peers with more than one caller, as errors at every point of theirs."""
        peers: dict[str, set[Fault]] = {}
        for point in self.points:
            peers.setdefault(Point.parse(point).peer, set()).add(Fault(point, gone(point)))
        return {peer: frozenset(s) for peer, s in peers.items() if peer and len(s) > 1}

    def union(self) -> Faults:
        """Draw a largest set of faults, one for each point, without a known failing set."""
        known, united = self.minimal(), frozenset[Fault]()
        points = sorted(self.points)
        self.chance.shuffle(points)
        bias = self.chance.choice((0.0, 0.5, 1.0))
        for point in points:
            kind = kinds(point)[self.chance.random() < bias]
            larger = united | {Fault(point, kind)}
            if not any(contains(larger, other) for other in known):
                united = larger
        return united


DEVICES = fleet(400)


def kinds(point: str) -> tuple[FaultKind, FaultKind]:
    """List the ways in which a campaign lets a point fail by default."""
    return gone(point), "delay"


def as_errors(faults: Faults) -> Faults:
    """Make the same points fail at once."""
    return frozenset(Fault(fault.point, gone(fault.point)) for fault in faults)


def contains(faults: Faults, smaller: Faults) -> bool:
    """Return whether ``faults`` does at least what ``smaller`` does; a delay does what an error
    does."""
    return all(f in faults or Fault(f.point, "delay") in faults for f in smaller)


async def explore(oracle: Oracle, pairs: int | None, unions: int) -> None:
    """Explore singles and shared peers, pairs, unions; again while new points appear."""
    await oracle.learn_points()
    known = -1
    while known != len(oracle.points):
        known = len(oracle.points)
        await oracle.try_all([frozenset({fault}) for fault in oracle.faults()])
        await oracle.try_all(list(oracle.domains().values()))
        todo = oracle.open_pairs()
        if pairs is not None and len(todo) > pairs:
            todo = oracle.chance.sample(todo, pairs)
        await oracle.try_all(todo)
        show(oracle, f"{known} points, {len(todo)} pairs")
    await oracle.try_all([oracle.union() for _ in range(unions)])
    show(oracle, f"{unions} unions")


def show(oracle: Oracle, what: str) -> None:
    """Show progress, on standard error."""
    found = sorted(map(name, oracle.minimal()))
    sys.stderr.write(f"{CLASSES[oracle.kind]}: {what}; failing: {found}\n")


def name(faults: Faults) -> list[str]:
    """Name a set as the weaknesses are written."""
    return sorted(map(str, faults))


def expected(oracle: Oracle) -> set[Faults]:
    """Read the written-down weaknesses of a class, shared peers spelt out."""
    written = json.loads(WEAKNESSES.read_text())
    sets = set()
    for entry in (e for e in written if e["class"] == CLASSES[oracle.kind]):
        faults: set[Fault] = set()
        for text in entry["faults"]:
            kind, _, rest = text.partition("@")
            faults |= oracle.domains()[rest] if kind == "down" else {Fault.parse(text)}
        sets.add(frozenset(faults))
    return sets


def report(oracle: Oracle) -> dict[str, Any]:
    """Report what was found in one class, against what is written."""
    found, written = oracle.minimal(), expected(oracle)
    return {
        "points": len(oracle.points),
        "requests": oracle.requests,
        "tolerated": len(oracle.tolerated),
        "failing": len(oracle.failing),
        "never_all_fired": oracle.never_all_fired,
        "unstable": [name(s) for s in oracle.unstable],
        "noise": oracle.noise,
        "found": [name(s) for s in sorted(found, key=name)],
        "missing": [name(s) for s in written - found],
        "unwritten": [name(s) for s in found - written],
        "exact": found == written,
    }


async def examine(gateway: str, sink: Sink, options: argparse.Namespace) -> dict[str, Any]:
    """Examine all classes, one after the other."""
    reports = {}
    async with httpx.AsyncClient(base_url=gateway, timeout=None, trust_env=False) as client:  # noqa: S113
        for kind in options.classes.split(","):
            chance = random.Random(f"{options.seed}/{kind}")
            oracle = Oracle(kind, client, sink, options.concurrency, chance)
            await explore(oracle, 150 if options.quick else None, 10 if options.quick else 100)
            reports[CLASSES[kind]] = report(oracle)
    return reports


def main() -> int:
    """Examine the demo; exit status 0 when what fails is exactly what is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--classes", default=",".join(CLASSES))
    options = parser.parse_args()
    sink = Sink()
    environment = {
        **os.environ,
        "FIT_KEYS": KEYS,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.server_address[1]}",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "http",
    }
    demo = subprocess.Popen(
        [sys.executable, "-m", "ldfi.demo", "--no-devices"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert demo.stdout is not None
        gateway = json.loads(demo.stdout.readline())["gateway"]
        start = time.monotonic()
        reports = asyncio.run(examine(gateway, sink, options))
    finally:
        demo.terminate()
        demo.communicate()
    rows = [{"class": name, **each} for name, each in reports.items()]
    spent = {"seconds": round(time.monotonic() - start)}
    return 0 if say({"classes": rows, "time": [spent]}, targets(rows), as_json=options.json) else 1


def targets(rows: list[dict[str, Any]]) -> dict[str, Target]:
    """Hold the rows against the targets: what fails is what is written, and fails every time."""
    return {
        f"{what}: {row['class']}": at_most(len(row[what]), 0)
        for row in rows
        for what in ("missing", "unwritten", "unstable")
    }


if __name__ == "__main__":
    sys.exit(main())
