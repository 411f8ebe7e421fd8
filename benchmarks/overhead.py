"""``python -m benchmarks.overhead [--json]``: what an injection point costs a request.

In one run, and for every client: a call that passes the client's injection point, less the same
call without one. The call itself does nothing, so what is left is the point's. It is compared with
starting and ending one span, the barest there is: without attributes, and nobody exports it.

- no context: all traffic but a handful of requests;
- a context that means another point: a request under experiment, at a point it does not mean;
- a mark, which leaves by OTLP over HTTP before a fault fires, and in the control arm alike.

Figures are microseconds, each the median over rounds of the differences (or quotients) within a
round, so that both sides saw the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

import httpcore
from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind
from yarl import URL

from benchmarks.outcome import Target, at_most, say
from ldfi.explore.external.receiver import ANY_PORT, Receiver
from ldfi.fit import send_mark
from ldfi.fit.clients import (
    aiohttp,
    aiokafka,
    asyncpg,
    botocore,
    confluent_kafka,
    grpc,
    grpc_aio,
    httpx,
    kafka_python,
    psycopg,
    redis,
    requests_urllib3,
    sqlalchemy,
)
from ldfi.fit.clients.httpx_failures import in_tasks, in_threads
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.runtime import Runtime, activate

KEYS = Keys.parse("bench:0123456789abcdef")
ENDS = int(time.time()) + 3600
Case = tuple[str, Callable[[], Any], Callable[[], Any]]
"""A client's name, its call without a point, and with it."""


class _Nowhere(SpanExporter):
    def export(self, _: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def _nothing(*_: Any, **__: Any) -> None:
    return None


async def _nothing_async(*_: Any, **__: Any) -> None:
    return None


def _run(coroutine: Any) -> None:
    """Run a coroutine that waits for nothing. Its loop is there, but not in its way."""
    try:
        coroutine.send(None)
    except StopIteration:
        return


def _of_asyncpg(original: Any) -> Any:
    return asyncpg._async(original, original)


def _producer() -> Any:
    brokers = {"bootstrap_servers": "kafka:9092", "bootstrap.servers": "kafka:9092"}
    kafka = SimpleNamespace(_bootstrap_servers="kafka:9092")
    return SimpleNamespace(config=brokers, client=kafka)


def _callee() -> Any:
    channel = SimpleNamespace(target=lambda: b"prices:443")
    return SimpleNamespace(_method="/shop.Prices/Get", _channel=channel)


def cases() -> list[Case]:
    """Make every client's case: its wrapper around a call that does nothing."""
    request = httpcore.Request("GET", "http://ratings/titles/17?page=2")
    pool = SimpleNamespace(host="ratings", port=80)
    client_request = SimpleNamespace(
        method="GET", url=URL("http://ratings/titles/17?page=2"), headers={}
    )
    redis_pool = SimpleNamespace(connection_kwargs={"host": "sessions", "port": 6379})
    client = SimpleNamespace(connection_pool=redis_pool)
    url = SimpleNamespace(database="records")
    engine = SimpleNamespace(url=url, dialect=SimpleNamespace(name="postgresql"))
    dialect = SimpleNamespace(is_async=False)
    execution = SimpleNamespace(root_connection=SimpleNamespace(engine=engine), dialect=dialect)
    statement = "SELECT name FROM titles WHERE id = %s"
    details = SimpleNamespace(method="/shop.Prices/Get", timeout=1, metadata=None)
    info = SimpleNamespace(dbname="records")
    cursor = SimpleNamespace(connection=SimpleNamespace(info=info))
    connection = SimpleNamespace(_params=SimpleNamespace(database="records"))
    topic = SimpleNamespace(topic="plays")
    consumer = SimpleNamespace(subscription=lambda: {"plays"}, assignment=lambda: [topic])
    endpoint = SimpleNamespace(host="https://s3.eu-west-1.amazonaws.com")
    operation = SimpleNamespace(name="GetObject", service_model=SimpleNamespace(service_id="S3"))

    def both(name: str, wrap: Any, *given: Any, **named: Any) -> Case:
        wrapped = wrap(_nothing)
        return name, lambda: _nothing(*given, **named), lambda: wrapped(*given, **named)

    def both_async(name: str, wrap: Any, *given: Any) -> Case:
        wrapped = wrap(_nothing_async)
        return name, lambda: _run(_nothing_async(*given)), lambda: _run(wrapped(*given))

    return [
        both("httpx", partial(httpx._sync, in_threads(httpcore)), None, request),
        both_async("httpx async", partial(httpx._async, in_tasks(httpcore)), None, request),
        both("requests, urllib3", requests_urllib3._sync, pool, None, "GET", "/titles/17?page=2"),
        both_async("aiohttp", aiohttp._async, client_request, None),
        both("grpc", grpc._wrap(grpc._RAISED), _callee(), b"", 1.0),
        (
            "grpc.aio",
            lambda: _run(_nothing_async(details, b"")),
            lambda: _run(grpc_aio._pass(None, "", _nothing_async, details, b"")),
        ),
        (
            "sqlalchemy",
            _nothing,
            lambda: sqlalchemy._execute(None, statement, (), execution),
        ),
        both("redis", redis._sync, client, None, "GET", "GET", "k"),
        both_async("redis async", redis._async, client, None, "GET", "GET", "k"),
        both("kafka-python", kafka_python._sync, _producer(), "plays", b"x"),
        both("kafka-python, consumer", kafka_python._sync_poll, consumer, 0),
        both_async("aiokafka", aiokafka._async, _producer(), "plays", b"x"),
        both_async("aiokafka, consumer", aiokafka._async_receiving, consumer),
        both("confluent-kafka", confluent_kafka._sync, _producer(), "plays", b"x"),
        both("confluent-kafka, consumer", confluent_kafka._sync_poll, consumer, 0.1),
        both("psycopg", psycopg._sync(_nothing), cursor, statement),
        both_async("psycopg async", psycopg._async(_nothing), cursor, statement),
        both_async("asyncpg", _of_asyncpg, connection, statement),
        both("botocore", botocore._sync, endpoint, None, operation, None),
    ]


@contextmanager
def carrying(*, armed: bool) -> Iterator[None]:
    """Carry a request with a user's baggage, and with a context that means another point."""
    around = baggage.set_baggage("user", "u1", context.Context())
    if armed:
        elsewhere = [Fault(f"api>http:GET:elsewhere/{i}", "error") for i in range(10)]
        value = encode(KEYS, "e1", "treatment", ENDS, elsewhere)
        around = baggage.set_baggage("fit", value, around)
    token = context.attach(around)
    try:
        yield
    finally:
        context.detach(token)


def took(call: Callable[[], Any], times: int) -> float:
    """Measure microseconds of one call."""
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times * 1e6


def measure(span: Callable[[], Any], case: Case, rounds: int, times: int) -> dict[str, Any]:
    """Measure one client's row: what it costs, and that as a share of a span."""
    name, without, with_point = case
    costs, shares = [], []
    for _ in range(rounds):
        cost = took(with_point, times) - took(without, times)
        costs.append(cost)
        shares.append(cost / took(span, times // 4))
    return {
        "client": name,
        "microseconds": round(median(costs), 4),
        "share of a span": round(median(shares), 5),
    }


def growth(calls: int) -> int:
    """Measure bytes that are still allocated after so many calls at one point, armed elsewhere
    or not."""
    passed = [with_point for _, _, with_point in cases()]

    def run(times: int) -> None:
        for armed in (False, True):
            with carrying(armed=armed):
                for call in passed:
                    for _ in range(times):
                        call()

    run(100)
    gc.collect()
    tracemalloc.start()
    run(1_000)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    run(max(1, calls // (2 * len(passed))))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before


def marks(times: int) -> list[dict[str, Any]]:
    """Measure how long a call waits for its mark to leave, in both arms by turns."""
    waited: dict[str, list[float]] = {"treatment": [], "control": []}
    collector = Receiver(ANY_PORT, "", _nothing)
    exporter = OTLPSpanExporter(f"http://{collector.address}/v1/traces")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    for _ in range(times):
        for arm, each in waited.items():
            leave = partial(send_mark.leave, arm, "e1", "refused", "api>http:GET:ratings/")
            each.append(took(leave, 1) / 1e3)
    provider.shutdown()
    collector.close()
    names = ("milliseconds, median", "milliseconds, 99 of 100")
    figures = ((median(each), quantiles(each, n=100)[-1]) for each in waited.values())
    return [
        {"arm": arm, **{name: round(figure, 3) for name, figure in zip(names, pair, strict=True)}}
        for arm, pair in zip(waited, figures, strict=True)
    ]


async def main() -> int:
    """Print the tables; 1 if a target is missed. A coroutine: some clients look for a loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--times", type=int, default=10_000, help="calls in each round")
    parser.add_argument("--calls", type=int, default=1_000_000, help="for the memory")
    parser.add_argument("--marks", type=int, default=1_000, help="in each arm")
    given = parser.parse_args()
    activate(Runtime("api", KEYS))
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_Nowhere(), max_queue_size=1 << 20))
    starting = provider.get_tracer("benchmark")
    bare = TracerProvider().get_tracer("benchmark")
    described = {"http.request.method": "GET", "url.full": "http://ratings/titles/17?page=2"}

    def span() -> None:
        with starting.start_as_current_span("GET", kind=SpanKind.CLIENT, attributes=described):
            pass

    def bare_span() -> None:
        bare.start_span("GET", kind=SpanKind.CLIENT).end()

    def table(*which: Case) -> list[dict[str, Any]]:
        return [measure(span, case, given.rounds, given.times) for case in which]

    with carrying(armed=False):
        unarmed = table(*cases())
    with carrying(armed=True), starting.start_as_current_span("GET", kind=SpanKind.CLIENT):
        elsewhere = table(*cases())
    spans = [
        {"span": name, "microseconds": round(median(took(each, 2_000) for _ in range(21)), 2)}
        for name, each in (("as instrumentation makes it", span), ("bare", bare_span))
    ]
    provider.shutdown()  # its thread allocates as well
    left, marked = growth(given.calls), marks(given.marks)

    def worst(rows: list[dict[str, Any]], column: str) -> float:
        return max(float(row[column]) for row in rows)

    targets: dict[str, Target] = {
        "no context, worst client, share of a span": at_most(
            worst(unarmed, "share of a span"), 0.02
        ),
        "no context, worst client, microseconds": at_most(worst(unarmed, "microseconds"), 1.0),
        "another point's context, worst client, share of a span": at_most(
            worst(elsewhere, "share of a span"), 0.10
        ),
        "a mark, milliseconds, either arm's median": at_most(
            worst(marked, "milliseconds, median"), 5.0
        ),
        f"bytes left by {given.calls:,} calls": at_most(left, 1024),
    }
    tables = {
        "a span": spans,
        "no context": unarmed,
        "another point's context": elsewhere,
        "a mark": marked,
    }
    return 0 if say(tables, targets, as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
