"""From bytes of OTLP to shapes: how fast, against the bare decoding of the same bytes.

    python -m benchmarks.ingest --json
    python -m benchmarks.ingest --spans 10000000     # memory over a long run

The yardstick is what nobody can avoid: ``ExportTraceServiceRequest.FromString`` on every body, in
the same process, in turns with the pipeline, best of several rounds of CPU time; every round has
traffic of its own, so that nothing is recognised that a running service would not recognise. The
pipeline is what the ingest role does with those bytes: decode, assemble, learn, collect shapes.
Traffic of services whose clocks disagree by up to a second is taken as well, with values of its
own: whoever comes second to the same ones finds them at hand.

**The physical limit** in CPython, without the extension (``ldfi-native``), is the number of
attributes. Handing over one attribute's bytes as a Python object and looking them up costs about
0.15 µs, and a span has ten: so about twice the bare decoding of the whole span goes into merely
*seeing* its attributes, however little is done with them. Reading each one's key and value through
the generated classes costs five times the decoding; that is why it is not done
(:mod:`ldfi.lineage.readers.slim`). Below that floor lie only other languages, or sampling.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from benchmarks.outcome import Row, at_most, say
from ldfi.lineage.assembly import Assembler
from ldfi.lineage.lineage import learn
from ldfi.lineage.machine_code import Way, way
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.shapes import Shapes

TARGETS: Final[dict[Way, float]] = {"python": 8.0, "native": 2.5}
"""Times the bare decoding that the whole pipeline may cost, by who decodes."""

SKEW_TARGET = 1.1
"""Times what it costs otherwise that it may cost where clocks disagree, with the extension; in
Python such traces are not recognised."""

SKEW = 10**9
"""Nanoseconds by which clocks may be wrong."""

ROUND = 20_000
"""Spans in one round. Every round has its own, with values that no other round had."""

TOGETHER = 20
"""Requests whose spans share the export bodies, one body for each service."""

_DEPENDENCIES = ("accounts", "ratings", "playlist", "bookmarks", "artwork", "search", "similar")


class Traffic:
    """Synthetic traffic like an instrumented system's: 31 spans a request, ten attributes a span.

    Ports, ids in paths and query strings differ from span to span, some calls are retried, some
    fail and are survived. Fresh trace ids are patched into recorded bodies, so that making the
    traffic costs next to nothing. ``skew``: nanoseconds by which services' clocks may be wrong.
    """

    def __init__(self, seed: int = 0, groups: int = 30, skew: int = 0) -> None:
        rng = random.Random(seed)
        self.groups = [_group(rng, skew) for _ in range(groups)]
        self.spans_per_group = sum(_count(body) for body in self.groups[0][1])

    def bodies(self, spans: int) -> Iterator[bytes]:
        """Export bodies with at least so many spans, every trace in them new."""
        made, serial = 0, 0
        while made < spans:
            ids, bodies = self.groups[serial % len(self.groups)]
            fresh = [serial.to_bytes(8, "big") + trace_id[8:] for trace_id in ids]
            for body in bodies:
                for old, new in zip(ids, fresh, strict=True):
                    body = body.replace(old, new)  # noqa: PLW2901
                yield body
            serial += 1
            made += self.spans_per_group


def _group(rng: random.Random, skew: int) -> tuple[list[bytes], list[bytes]]:
    by_service: dict[str, list[Span]] = {}
    ids = [rng.randbytes(16) for _ in range(TOGETHER)]
    for trace_id in ids:
        _request(rng, trace_id, by_service)
    for service, spans in by_service.items():
        wrong = random.Random(service).randrange(-skew, skew + 1)
        for span in spans:
            span.start_time_unix_nano += wrong
            span.end_time_unix_nano += wrong
    return ids, [_body(service, spans) for service, spans in by_service.items()]


def _request(rng: random.Random, trace_id: bytes, by_service: dict[str, list[Span]]) -> None:
    now = 1_800_000_000_000_000_000 + rng.randrange(10**12)
    made: dict[bytes, Span] = {}

    def add(service: str, parent: bytes, kind: Any, status: int, **attributes: str | int) -> bytes:
        nonlocal now
        now += rng.randrange(1000, 100_000)
        span = Span(trace_id=trace_id, span_id=rng.randbytes(8), parent_span_id=parent, kind=kind)
        span.start_time_unix_nano, span.end_time_unix_nano = now, now + rng.randrange(10**6)
        span.name = f"{attributes.get('http.method', 'SELECT')}"
        span.status.code = Status.STATUS_CODE_ERROR if status >= 500 else Status.STATUS_CODE_UNSET
        for key, value in attributes.items():
            value_kind = {"int_value": value} if isinstance(value, int) else {"string_value": value}
            span.attributes.add(key=key).value.MergeFrom(_VALUE(**value_kind))
        if kind == Span.SPAN_KIND_SERVER:
            span.events.add(name="handled", time_unix_nano=now)
        by_service.setdefault(service, []).append(span)
        made[span.span_id] = span
        return span.span_id

    title, device = rng.randrange(10**6), rng.choice(["tv", "phone", "web"])
    target = rng.choice(["/home", f"/titles/{title}", f"/titles/{title}?page={rng.randrange(9)}"])
    entry = _server(rng, "GET", target) | {"http.request.header.x-device-type": device}
    root = add("api", b"", Span.SPAN_KIND_SERVER, 200, **entry)
    for callee in _DEPENDENCIES:
        failing = callee == "similar" and rng.random() < 0.1
        attempts = 2 if callee == "ratings" and rng.random() < 0.2 else 1
        for attempt in range(attempts):
            status = 503 if failing or attempt + 1 < attempts else 200
            path = f"/{callee}/{title}"
            call = add("api", root, Span.SPAN_KIND_CLIENT, status, **_client(callee, path, status))
            if status == 200:
                served = _server(rng, "GET", path)
                server = add(callee, call, Span.SPAN_KIND_SERVER, status, **served)
                for table in ("members", callee):
                    add(callee, server, Span.SPAN_KIND_CLIENT, 200, **_query(table))
    for span in reversed(made.values()):  # nobody ends before what it waits for
        above = made.get(span.parent_span_id)
        if above is not None:
            latest = max(above.end_time_unix_nano, span.end_time_unix_nano + 1_000)
            above.end_time_unix_nano = latest


_VALUE: Any = type(Span().attributes.add().value)


def _server(rng: random.Random, method: str, target: str) -> dict[str, str | int]:
    return {
        "http.scheme": "http",
        "http.host": "10.2.0.7:8080",
        "net.host.port": 8080,
        "http.flavor": "1.1",
        "http.target": target,
        "http.method": method,
        "http.user_agent": "python-httpx/0.27",
        "net.peer.ip": f"10.1.{rng.randrange(256)}.{rng.randrange(256)}",
        "net.peer.port": rng.randrange(1024, 65536),
        "http.route": "/{kind}/{id}",
        "http.status_code": 200,
    }


def _client(callee: str, path: str, status: int) -> dict[str, str | int]:
    return {
        "http.method": "GET",
        "http.url": f"http://{callee}:8080{path}",
        "http.status_code": status,
        "net.peer.name": callee,
        "net.peer.port": 8080,
        "http.flavor": "1.1",
        "fit.point": f"api>http:GET:{callee}/{callee}/*",
    }


def _query(table: str) -> dict[str, str | int]:
    return {
        "db.system": "postgresql",
        "db.name": "shop",
        "db.user": "app",
        "db.statement": f"SELECT * FROM {table} WHERE id = $1",  # noqa: S608 - never run
        "net.peer.name": "postgres",
        "net.peer.port": 5432,
        "db.operation": "SELECT",
    }


def _body(service: str, spans: list[Span]) -> bytes:
    group = ResourceSpans()
    for key, value in {"service.name": service, "telemetry.sdk.language": "python"}.items():
        group.resource.attributes.add(key=key).value.string_value = value
    group.scope_spans.add().spans.extend(spans)
    return ExportTraceServiceRequest(resource_spans=[group]).SerializeToString()


def _count(body: bytes) -> int:
    request = ExportTraceServiceRequest.FromString(body)
    return sum(len(scope.spans) for group in request.resource_spans for scope in group.scope_spans)


def pipeline(bodies: Iterator[bytes], watch: Callable[[int], None] = lambda _: None) -> Shapes:
    """Do what the ingest role does. ``watch`` is called with the number of spans so far."""
    assembler, shapes = Assembler(quiet=2.0, max_age=60.0), Shapes()
    spans, popped = 0, 0.0
    for body in bodies:
        batch = decode_protobuf(body)
        spans += len(batch.spans)
        now = spans / 50_000  # as if fifty thousand spans arrived a second
        assembler.add(batch.spans, now)
        if now - popped >= 0.5:
            popped = now
            _collect(assembler.pop(now), shapes)
            watch(spans)
    _collect(assembler.flush(), shapes)
    return shapes


def _collect(traces: list[Any], shapes: Shapes) -> None:
    for trace in traces:
        run = learn(trace)
        if run is not None:
            shapes.add(run)


def bare(bodies: Iterator[bytes]) -> None:
    """Parse and do nothing else: the yardstick."""
    for body in bodies:
        ExportTraceServiceRequest.FromString(body)


Round = dict[str, list[bytes]]
"""Export bodies, by what is special about them: nothing (``plain``), or clocks (``skewed``)."""


def speed(rounds: Iterable[Round]) -> dict[str, float]:
    """Measure microseconds of CPU time for one span, best of the rounds, all in turns."""
    best: dict[str, float] = {}
    for bodies in rounds:
        for name, run, kind in _WAYS:
            spans = sum(map(_count, bodies[kind]))
            begin = time.process_time()
            run(iter(bodies[kind]))
            taken = (time.process_time() - begin) / spans * 1e6
            best[name] = min(best.get(name, taken), taken)
    return best


_WAYS: Final[tuple[tuple[str, Callable[[Iterator[bytes]], object], str], ...]] = (
    ("bare", bare, "plain"),
    ("pipeline", pipeline, "plain"),
    ("skewed", pipeline, "skewed"),
)


def memory(traffic: Traffic, spans: int) -> list[tuple[int, float]]:
    """Measure resident megabytes at ten moments of a run over so many spans."""
    seen: list[tuple[int, float]] = []

    def watch(done: int) -> None:
        if done >= (len(seen) + 1) * spans / 10:
            seen.append((done, _resident()))

    pipeline(traffic.bodies(spans), watch)
    return seen


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="bytes of OTLP to shapes, against bare decoding")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--spans", type=int, default=0, help="watch memory over so many spans")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)  # nothing here makes cycles; what the service sets, too
    bodies = list(Traffic(given.rounds).bodies(ROUND))
    cost = speed(
        {
            "plain": list(Traffic(seed).bodies(ROUND)),
            "skewed": list(Traffic(given.rounds + 1 + seed, skew=SKEW).bodies(ROUND)),
        }
        for seed in range(given.rounds)
    )
    ratio = cost["pipeline"] / cost["bare"]
    result: dict[str, Any] = {
        "decoded_by": way(),
        "spans": sum(map(_count, bodies)),
        "bytes_per_span": round(sum(map(len, bodies)) / sum(map(_count, bodies))),
        "bare_us": round(cost["bare"], 3),
        "pipeline_us": round(cost["pipeline"], 3),
        "ratio": round(ratio, 2),
        "spans_per_cpu_second": round(1e6 / cost["pipeline"]),
        "skewed_us": round(cost["skewed"], 3),
        "skew_ratio": round(cost["skewed"] / cost["pipeline"], 2),
    }
    if given.spans:
        seen = memory(Traffic(), given.spans)
        result["memory_mb"] = [{"spans": n, "resident": round(mb, 1)} for n, mb in seen]
    targets = {"times the bare decoding": at_most(result["ratio"], TARGETS[way()])}
    if way() == "native":
        name = "times as dear where clocks disagree"
        targets[name] = at_most(result["skew_ratio"], SKEW_TARGET)
    if given.spans:
        half = [mb for n, mb in seen if n >= given.spans / 2]
        targets["growth of memory over the second half"] = at_most(half[-1] / half[0], 1.1)
    tables: dict[str, list[Row]] = {
        "cost": [{name: value for name, value in result.items() if not isinstance(value, list)}],
        **{name: value for name, value in result.items() if isinstance(value, list)},
    }
    say(tables, targets, as_json=given.json)


if __name__ == "__main__":
    main()
