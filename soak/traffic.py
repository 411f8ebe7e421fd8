"""Traffic with real edges, and a witness of what became of it: a process beside the service.

Two edges of ``fit`` fetch their rules over HTTP and stamp requests. Simulated services obey the
stamps they can verify, as real ones do, and send their spans as OTLP; devices report what they saw.
Who was treated goes to a file that the service knows nothing of. A tenth of the stamped requests is
held up for a while before it is served, so that contexts expire on their way.

    python -m soak.traffic --url URL --notes FILE

With ``--account`` nothing is dropped: each body is sent until it is taken, also after SIGTERM, and
what was taken is put down (:mod:`soak.account`).
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
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

from ldfi.cli.processes import end_with_parent
from ldfi.fit import baggage, poll
from ldfi.fit.edge import Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.context import FailureContext, decode
from ldfi.fit.protocol.features import request_features
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.runtime import Runtime, activate
from ldfi.lineage.operation import KINDS
from ldfi.lineage.span import Span
from ldfi.testing.programs import Call, Run, Step, points_of
from ldfi.testing.world import PROGRAM
from soak.account import Half, Served, put_down
from soak.service import TOKENS
from soak.treated import Treated, note

DEVICES = 3_000
EDGES = 2
EVERY_SECONDS = 0.05
SELDOM_SECONDS = 0.2
"""With an account: fewer bodies, since they pass through more hands."""

RETRY_SECONDS = 0.5
"""The edges ask again as soon as this; real ones wait longer, and then nothing would be armed."""

HELD = 0.1
HELD_SECONDS = 3.0
KEPT_BODIES = 60
"""Bodies of either half that wait while nobody takes them; the oldest are dropped."""

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


PLACES: dict[Half, tuple[str, str, str]] = {
    "spans": ("/v1/traces", "ingest", "x-protobuf"),
    "metrics": ("/api/v1/device-metrics", "devices", "json"),
}
"""Where a half goes, in what role, as what."""


def planted(paths: list[str], max_size: int = 2) -> set[tuple[str, tuple[str, ...]]]:
    """Return the findings there are, by trying every set: class and minimal failing set."""
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


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent of some requests: their spans, or what devices saw of them."""

    content: bytes
    requests: list[Served]


class Sender:
    """Sends bodies in their order, each until it is taken. ``account``: where that is put down."""

    def __init__(self, half: Half, url: str, account: TextIO | None) -> None:
        path, role, kind = PLACES[half]
        self._half, self._account, self._path = half, account, path
        headers = {
            "Authorization": f"Bearer {TOKENS[role]}",
            "Content-Type": f"application/{kind}",
        }
        self._client = httpx.Client(base_url=url, headers=headers, timeout=5.0, trust_env=False)
        self._unsent: deque[Body] = deque(maxlen=KEPT_BODIES if account is None else None)

    def add(self, body: Body) -> None:
        """Something to send."""
        self._unsent.append(body)

    def run(self, stopping: threading.Event, complete: threading.Event) -> None:
        """Send what there is, and again what failed; while nobody takes it, it waits.

        With an account until everything is sent, once it is ``complete``.
        """
        while not stopping.wait(EVERY_SECONDS):
            self._send_all(stopping.is_set)
        while self._account is not None and not (complete.is_set() and not self._unsent):
            self._send_all(lambda: False)
            time.sleep(EVERY_SECONDS)

    def _send_all(self, stopped: Callable[[], bool]) -> None:
        with suppress(IndexError):
            while not stopped():
                body = self._unsent.popleft()
                if not self._taken(body.content):
                    self._unsent.appendleft(body)
                    break
                if self._account is not None:
                    put_down(self._account, self._half, body.requests)

    def _taken(self, content: bytes) -> bool:
        try:
            answer = self._client.post(self._path, content=content)
        except httpx.TransportError:
            return False
        if answer.status_code < 500 and answer.status_code != 429:
            answer.raise_for_status()
        return answer.is_success


class Gate:
    """One edge, the services behind it, and the devices before it."""

    def __init__(
        self,
        url: str,
        keys: Keys,
        notes: TextIO,
        senders: dict[Half, Sender],
        every: float,
        seed: int,
    ) -> None:
        self.complete = threading.Event()
        """Nothing will be sent any more but what waits."""
        self._every = every
        self._keys, self._notes, self._senders = keys, notes, senders
        self._chance = random.Random(seed)
        self._edge = Edge(RulesPoll(url, TOKENS["edge"]))
        self._held: list[tuple[float, int, Request]] = []
        self._numbers = itertools.count()

    def run(self, rate: float, paths: list[str], stopping: threading.Event) -> None:
        """Ask ``rate`` times a second, until told to stop; then serve what is held up."""
        due = 0.0
        while not stopping.wait(self._every):
            due += rate * self._every
            for _ in range(int(due)):
                self._arrive(self._chance.choice(paths))
            due -= int(due)
            self._serve(until=time.time())
        self._serve(until=float("inf"))  # for the notes, and for the account
        self.complete.set()

    def _arrive(self, path: str) -> None:
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
        scopes = _scopes(spans)
        seen, outcomes, requests = [], [], []
        while self._held and self._held[0][0] <= until:
            request = heapq.heappop(self._held)[2]
            trace_id = self._chance.getrandbits(128).to_bytes(16)
            good, experiment, treated = _served(request, trace_id, scopes)
            seen += [treated] if treated else []
            outcome = "success" if good else "failure"
            outcomes.append(
                f'{{"device": "{request.device}", "trace_id": "{trace_id.hex()}", '
                f'"outcome": "{outcome}", "duration_ms": 5}}'
            )
            requests.append(Served(trace_id.hex(), request.path, experiment))
        note(self._notes, seen)
        if outcomes:
            metrics = f'{{"metrics": [{",".join(outcomes)}]}}'.encode()
            self._senders["spans"].add(Body(spans.SerializeToString(), requests))
            self._senders["metrics"].add(Body(metrics, requests))


def _scopes(spans: ExportTraceServiceRequest) -> list[ScopeSpans]:
    """Of two processes, so that a Collector makes two messages of a trace."""
    found = []
    for number in range(2):
        group = spans.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = "api"
        group.resource.attributes.add(key="process.pid").value.int_value = number
        found.append(group.scope_spans.add())
    return found


def _served(
    request: Request, trace_id: bytes, scopes: list[ScopeSpans]
) -> tuple[bool, str, Treated | None]:
    """Run the program of a request as its services would; whether it went well, and under which
    experiment, as its spans say."""
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
    for number, each in enumerate(run.spans):
        would = frozenset() if treats else chosen
        _write(scopes[number % len(scopes)], each, trace_id, start, request.path, marks, would)
    if context is None or not treats:
        return run.good, marks.get(attributes.EXPERIMENT, ""), None
    fired = any(each.operation.fired for each in run.spans)
    treated = Treated(context.experiment, request.device, request.stamped, now if fired else None)
    return run.good, marks.get(attributes.EXPERIMENT, ""), treated


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
    parser = argparse.ArgumentParser(prog="python -m soak.traffic")
    parser.add_argument("--url", required=True)
    parser.add_argument("--spans", help="where spans go; default: --url")
    parser.add_argument("--account", type=Path, help="lose nothing, and put down what was taken")
    parser.add_argument("--notes", required=True, type=Path)
    parser.add_argument("--paths", default=",".join(PROGRAMS))
    parser.add_argument("--rate", type=float, default=320.0, help="requests a second, in all")
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keys = Keys.parse("crash:" + "k" * 32)
    activate(Runtime("api", keys))
    poll.LONGEST_RETRY_SECONDS = RETRY_SECONDS  # type: ignore[misc]
    end_with_parent()
    places: dict[Half, str] = {"spans": options.spans or options.url, "metrics": options.url}
    with ExitStack() as files:
        notes = files.enter_context(options.notes.open("a"))
        account = files.enter_context(options.account.open("a")) if options.account else None
        threads = []
        for number in range(options.edges):
            senders = {half: Sender(half, url, account) for half, url in places.items()}
            every = SELDOM_SECONDS if account else EVERY_SECONDS
            gate = Gate(options.url, keys, notes, senders, every, options.seed + number)
            made = (options.rate / options.edges, options.paths.split(","), stopping)
            threads.append(threading.Thread(target=gate.run, args=made))
            threads += [
                threading.Thread(target=sender.run, args=(stopping, gate.complete))
                for sender in senders.values()
            ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
