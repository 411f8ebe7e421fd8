"""A small system in processes of their own: ``python -m tests.explore.external.shop ROLE``.

``page`` asks ``store`` for the price of a product, its reviews, and, where there are none, what
sells best. ``SHOP`` says what is wrong with it, in words: ``silent`` exports nothing, ``alone``
begins a trace of its own, ``keyless`` does not obey the context, ``slow`` takes its time,
``restarts`` ends with every fifth request that it serves; ``mortal`` ends where it gets no price,
and writes a line into ``DEATHS``. ``remembers``: nothing is, but it looks
into a cache of its own before, or ``grpc``: it exports over gRPC,
and a channel that met a closed port keeps away for a quarter of a minute.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ldfi import fit
from ldfi.fit.protocol.errors import InjectedFault

WRONG = frozenset(os.environ.get("SHOP", "").split())
STORE = os.environ.get("STORE", "")
served = count(1)

Answer = tuple[int, object]


def page(path: str) -> Answer:
    """Does without reviews if it has what sells best; not without a price."""
    if path == "/health":
        return 200, {}
    if "slow" in WRONG:
        time.sleep(1.0)
    if "remembers" in WRONG:
        with suppress(InjectedFault):
            remembered()
    price = asked("/price/17")
    if price is None and "mortal" in WRONG:
        with Path(os.environ["DEATHS"]).open("a", encoding="utf-8") as deaths:
            print(os.getpid(), file=deaths)
        os._exit(4)
    listed = asked("/reviews/17")
    if listed is None:
        listed = asked("/bestsellers")
    if price is None or listed is None:
        return 500, {}
    return 200, {"price": price, "listed": listed}


@fit.point("cache", "get")
def remembered() -> None:
    """Look into a cache of this process, which has nothing."""


def store(path: str) -> Answer:
    """Answers whatever it is asked."""
    return 200, path


def asked(path: str) -> object | None:
    """Ask the store; None where that fails."""
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(STORE + path, timeout=3)
    except requests.RequestException:
        return None
    return answer.json() if answer.ok else None


def application(role: Callable[[str], Answer]) -> Any:
    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if "restarts" in WRONG and environ["PATH_INFO"] != "/health" and next(served) % 5 == 0:
            os._exit(3)
        status, body = role(environ["PATH_INFO"])
        start(f"{status} OK", [("content-type", "application/json")])
        return [json.dumps(body).encode()]

    return answer


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def main() -> None:
    role = {"page": page, "store": store}[sys.argv[1]]
    server = make_server("127.0.0.1", int(os.environ["PORT"]), application(role), Server, Quiet)
    if WRONG & {"restarts", "mortal"}:
        begun_again()
    provider = TracerProvider(sampler=fit.Sampler(ALWAYS_ON))
    if "silent" not in WRONG:
        exporter = OverOneChannel() if "grpc" in WRONG else OTLPSpanExporter()
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    if "keyless" not in WRONG:
        fit.install()
    RequestsInstrumentor().instrument(tracer_provider=provider, excluded_urls=":4318")
    served_by = application(role)
    if "alone" in WRONG:
        served_by = without_trace(OpenTelemetryMiddleware(served_by))
    else:
        served_by = OpenTelemetryMiddleware(served_by)
    server.set_app(served_by)
    server.serve_forever()


class OverOneChannel(SpanExporter):
    """Exports over one channel for all its life, as Go's and Java's exporters do; Python's makes a
    new one where nobody listens."""

    def __init__(self) -> None:
        import grpc

        away = [(f"grpc.{each}_reconnect_backoff_ms", 15_000) for each in ("initial", "min", "max")]
        to = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"].rpartition("/")[2]
        self._failed: type[Exception] = grpc.RpcError
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        channel = grpc.insecure_channel(to, options=away)
        self._export = channel.unary_unary(f"/{service}/Export")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            self._export(encode_spans(spans).SerializeToString(), timeout=5)
        except self._failed as error:
            sys.stderr.write(f"{error}\n")
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def begun_again() -> None:
    """Return in a process that may end: there is another one at once."""
    while child := os.fork():
        os.waitpid(child, 0)


def without_trace(served_by: Any) -> Any:
    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        environ.pop("HTTP_TRACEPARENT", None)
        return served_by(environ, start)  # type: ignore[no-any-return]

    return answer


if __name__ == "__main__":
    main()
