"""Traffic with real edges, and a witness of what became of it: a process beside the service.

Two edges of ``fit`` fetch their rules over HTTP and stamp requests. Simulated services obey the
stamps they can verify, as real ones do, and send their spans as OTLP; devices report what they saw.
Who was treated goes to a file that the service knows nothing of. A tenth of the stamped requests is
held up for a while before it is served, so that contexts expire on their way.

    python -m tests.experiments.crash.traffic --url URL --notes FILE
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

from experiments.cli.processes import end_with_parent
from fit import attributes, baggage, poll
from fit.context import FailureContext, decode
from fit.edge import Edge
from fit.features import request_features
from fit.keys import Keys
from fit.poll import RulesPoll
from fit.runtime import Runtime, activate
from lineage.operation import KINDS
from lineage.span import Span
from tests.experiments.crash.service import TOKENS
from tests.experiments.crash.treated import Treated, note
from tests.experiments.world import PROGRAM
from tests.lineage.programs import Call, Run, Step, points_of

DEVICES = 3_000
EDGES = 2
EVERY_SECONDS = 0.05
RETRY_SECONDS = 0.5
"""The edges ask again as soon as this; real ones wait longer, and then nothing would be armed."""

HELD = 0.1
HELD_SECONDS = 3.0
KEPT_BODIES = 60
"""Bodies that wait for the service while it is down; the oldest are dropped."""

STORE = Call(
    "root",
    (
        Step("optional", (Call("banner"),)),
        Step("critical", (Call("cart"),)),
        Step("fallback", (Call("price"), Call("cached-price"))),
        Step("retry", (Call("stock"),)),
    ),
)
PROGRAMS = {"/boot": PROGRAM, "/play": PROGRAM, "/store": STORE, "/basket": STORE, "/top": PROGRAM}


def planted(paths: list[str], max_size: int = 2) -> set[tuple[str, tuple[str, ...]]]:
    """The findings there are, by trying everything: class and minimal failing set."""
    found: set[tuple[str, tuple[str, ...]]] = set()
    for path in paths:
        faults = [f"error@{point}" for point in points_of(PROGRAMS[path])]
        failing: list[frozenset[str]] = []
        for size in range(1, max_size + 1):
            for chosen in map(frozenset, itertools.combinations(faults, size)):
                minimal = not any(known <= chosen for known in failing)
                if minimal and not Run(chosen).execute(PROGRAMS[path]).good:
                    failing.append(chosen)
        found |= {(f"GET {path}", tuple(sorted(each))) for each in failing}
    return found


@dataclass(frozen=True, slots=True)
class Request:
    """A request behind the edge. ``context``: what the edge stamped it with."""

    path: str
    device: str
    stamped: float
    context: FailureContext | None


class Gate:
    """One edge, the services behind it, and the devices before it."""

    def __init__(self, url: str, keys: Keys, notes: TextIO, paths: list[str], seed: int) -> None:
        self._keys, self._notes, self._paths = keys, notes, paths
        self._chance = random.Random(seed)
        self._edge = Edge(RulesPoll(url, TOKENS["edge"]))
        self._client = httpx.Client(base_url=url, timeout=5.0, trust_env=False)
        self._held: list[tuple[float, int, Request]] = []
        self._numbers = itertools.count()
        self._unsent: deque[tuple[str, dict[str, str], bytes]] = deque(maxlen=KEPT_BODIES)

    def run(self, rate: float, stopping: threading.Event) -> None:
        """Ask ``rate`` times a second, until told to stop; then serve what is held up."""
        while not stopping.wait(EVERY_SECONDS):
            for _ in range(round(rate * EVERY_SECONDS)):
                self._arrive()
            self._serve(until=time.time())
        self._serve(until=float("inf"))  # for the notes; nobody waits for the outcomes any more

    def _arrive(self) -> None:
        path = self._chance.choice(self._paths)
        device = f"device-{self._chance.randrange(DEVICES)}"
        now = time.time()
        header = self._edge.baggage_onward("", device, lambda: request_features("GET", path))
        stamp = baggage.find(header)
        context = None if stamp is None else decode(self._keys, stamp, now)
        held = stamp is not None and self._chance.random() < HELD
        due = now + self._chance.uniform(0, HELD_SECONDS) if held else now
        heapq.heappush(self._held, (due, next(self._numbers), Request(path, device, now, context)))

    def _serve(self, until: float) -> None:
        spans = ExportTraceServiceRequest()
        group = spans.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = "api"
        scope, seen, outcomes = group.scope_spans.add(), [], []
        while self._held and self._held[0][0] <= until:
            request = heapq.heappop(self._held)[2]
            trace_id = self._chance.getrandbits(128).to_bytes(16)
            good, treated = _served(request, trace_id, scope)
            seen += [treated] if treated else []
            outcome = "success" if good else "failure"
            outcomes.append(
                f'{{"device": "{request.device}", "trace_id": "{trace_id.hex()}", '
                f'"outcome": "{outcome}", "duration_ms": 5}}'
            )
        note(self._notes, seen)
        if outcomes:
            metrics = f'{{"metrics": [{",".join(outcomes)}]}}'.encode()
            self._send("/v1/traces", "ingest", "x-protobuf", spans.SerializeToString())
            self._send("/api/v1/device-metrics", "devices", "json", metrics)

    def _send(self, path: str, role: str, kind: str, body: bytes) -> None:
        headers = {
            "Authorization": f"Bearer {TOKENS[role]}",
            "Content-Type": f"application/{kind}",
        }
        self._unsent.append((path, headers, body))

    def deliver(self, stopping: threading.Event) -> None:
        """Send what there is, and again what failed: while the service is down, it waits."""
        while not stopping.wait(EVERY_SECONDS):
            with suppress(IndexError):
                while not stopping.is_set():
                    body = self._unsent.popleft()
                    if not self._delivered(*body):
                        self._unsent.appendleft(body)
                        break

    def _delivered(self, path: str, headers: dict[str, str], body: bytes) -> bool:
        try:
            answer = self._client.post(path, content=body, headers=headers)
        except httpx.TransportError:
            return False
        if answer.status_code < 500:
            answer.raise_for_status()
        return answer.is_success


def _served(request: Request, trace_id: bytes, scope: ScopeSpans) -> tuple[bool, Treated | None]:
    """Run the program of a request as its services would; whether it went well."""
    program, context, now = PROGRAMS[request.path], request.context, time.time()
    chosen = frozenset[str]()
    alive = context is not None and context.expires > now
    if context is not None and alive:
        chosen = frozenset(f"error@{p}" for p in points_of(program) if context.at(p))
    treats = context is not None and context.arm == "treatment"
    run = Run(chosen if treats else frozenset()).execute(program)
    marks = {}
    if context is not None and alive:
        marks = {attributes.EXPERIMENT: context.experiment, attributes.ARM: context.arm}
    start = time.time_ns()
    for each in run.spans:
        would = frozenset() if treats else chosen
        _write(scope, each, trace_id, start, request.path, marks, would)
    if context is None or not treats:
        return run.good, None
    fired = any(each.operation.fired for each in run.spans)
    treated = Treated(context.experiment, request.device, request.stamped, now if fired else None)
    return run.good, treated


def _write(
    scope: ScopeSpans,
    each: Span,
    trace_id: bytes,
    start: int,
    path: str,
    marks: dict[str, str],
    would: frozenset[str],
) -> None:
    """One span, as OTLP has it."""
    what = each.operation
    span = scope.spans.add(
        trace_id=trace_id,
        span_id=_span_id(each.span_id),
        parent_span_id=_span_id(each.parent_id) if each.parent_id else b"",
        name="GET",
        kind=KINDS.index(what.kind),
        start_time_unix_nano=start + each.start,
        end_time_unix_nano=start + each.end,
    )
    span.status.code = 2 if what.failed else 1  # type: ignore[assignment]
    told = {attributes.POINT: str(what.point)}
    if what.serves:
        told = {"http.request.method": "GET", "url.full": f"http://api{path}", **marks}
    elif what.fired:
        told[attributes.FIRED] = ",".join(what.fired)
    elif f"error@{what.point}" in would:
        told[attributes.WOULD_FIRE] = "error"
    for key, value in told.items():
        span.attributes.add(key=key).value.string_value = value


def _span_id(name: str) -> bytes:
    return (2**63 if name == "root" else int(name) + 1).to_bytes(8)


def main() -> None:
    """Make traffic until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.experiments.crash.traffic")
    parser.add_argument("--url", required=True)
    parser.add_argument("--notes", required=True, type=Path)
    parser.add_argument("--paths", default=",".join(PROGRAMS))
    parser.add_argument("--rate", type=float, default=320.0, help="requests a second, in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keys = Keys.parse("crash:" + "k" * 32)
    activate(Runtime("api", keys))
    poll.LONGEST_RETRY_SECONDS = RETRY_SECONDS  # type: ignore[misc]
    end_with_parent()
    with options.notes.open("a") as notes:
        gates = [
            Gate(options.url, keys, notes, options.paths.split(","), options.seed + number)
            for number in range(EDGES)
        ]
        threads = [
            threading.Thread(target=work, args=arguments)
            for gate in gates
            for work, arguments in (
                (gate.run, (options.rate / EDGES, stopping)),
                (gate.deliver, (stopping,)),
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
