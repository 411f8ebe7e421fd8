"""A service under gevent, in a process of its own, which says as JSON what became of its requests.

    python -m tests.fit.gevent_host first|late

``first``: gevent is there before everything else; ``late``: after ``fit``, as it is under
``opentelemetry-instrument``.
"""

# ruff: noqa: E402 - when gevent takes the standard library over is what this is about
from __future__ import annotations

import sys

LATE = sys.argv[1] == "late"
if not LATE:
    from gevent import monkey

    monkey.patch_all()

import contextvars
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
from opentelemetry import trace
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.threading import ThreadingInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ldfi import fit
from ldfi.fit import contextless_calls, reporting
from ldfi.fit.clients import patch_all
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS
from tests.fit.clients.contract import Requests

if LATE:
    from gevent import monkey

    monkey.patch_all()

import gevent
from gevent.event import AsyncResult
from gevent.pool import Group, Pool
from gevent.pywsgi import WSGIServer
from gevent.queue import Queue
from gevent.threadpool import ThreadPool

Call = Callable[[], int]

JOBS: Queue[tuple[Call, Any]] = Queue()


def _by(begin: Callable[[Callable[[], None]], object]) -> Callable[[Call], int]:
    def run(call: Call) -> int:
        answer = AsyncResult()
        begin(lambda: answer.set(call()))
        return int(answer.get(timeout=30))

    return run


def _of_a_pool(call: Call) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def works() -> None:
    while True:
        call, answer = JOBS.get()
        answer.set(call())


def _by_a_worker(call: Call) -> int:
    answer = AsyncResult()
    JOBS.put((call, answer))
    return int(answer.get(timeout=30))


CARRIERS: dict[str, Callable[[Call], int]] = {
    "itself": lambda call: call(),
    "spawn": lambda call: gevent.spawn(call).get(),
    "spawn_later": lambda call: gevent.spawn_later(0.001, call).get(),
    "spawn_raw": _by(gevent.spawn_raw),
    "pool": lambda call: Pool(2).spawn(call).get(),
    "map": lambda call: Pool(2).map(lambda _: call(), [1])[0],
    "group": lambda call: next(Group().imap(lambda _: call(), [1])),
    "thread pool of gevent": lambda call: ThreadPool(1).apply(call),
    "worker": _by_a_worker,
    "copy": lambda call: gevent.spawn(contextvars.copy_context().run, call).get(),
    "thread": _by(lambda work: threading.Thread(target=work).start()),
    "timer": _by(lambda work: threading.Timer(0, work).start()),
    "thread pool": _of_a_pool,
}
THREADS = ("thread", "thread pool")
"""Where OpenTelemetry's instrumentation of threads hands the context on. Where it comes after
gevent, no timer fires any more."""


class Host:
    """The service: what it calls, and by which point."""

    def __init__(self, port: int) -> None:
        self.made = Requests()
        self.made.provider = TracerProvider(
            sampler=fit.Sampler(ALWAYS_ON), resource=self.made.provider.resource
        )
        self.made.provider.add_span_processor(SimpleSpanProcessor(self.made.exporter))
        trace.set_tracer_provider(self.made.provider)
        self.url = f"http://127.0.0.1:{port}/titles/17"
        self.point = f"api>http:GET:127.0.0.1:{port}/titles/*"

    def call(self) -> int:
        with requests.Session() as session:  # gevent's sockets stay within their thread
            session.trust_env = False
            return session.get(self.url, timeout=30).status_code

    def carried(self, carrier: str) -> dict[str, object]:
        """One request, whose call is made so."""
        told = reporting._bare
        told.clear()
        contextless_calls._calls.clear()
        with self.made.request(f"error@{self.point}"):
            status = CARRIERS[carrier](self.call)
        alone = [span for span in self.made.calls() if span.parent is None]
        return {"status": status, "bare": told.get("requests_urllib3", 0), "alone": len(alone)}

    def beside(self) -> list[dict[str, object]]:
        """Many requests at once, each with a fault of its own or with none."""
        faults = ["error", "", "delay", "status:404", "", "reset"] * 3
        started = time.monotonic()

        def serve(kind: str) -> dict[str, object]:
            began = time.monotonic()
            said: object
            with self.made.request(*([f"{kind}@{self.point}"] if kind else []), delay_ms=500):
                gevent.sleep(0.001)
                try:
                    said = self.call()
                except requests.RequestException as failure:
                    said = type(failure).__name__
            ended = time.monotonic()
            return {"kind": kind, "said": said, "took": ended - began, "ended": ended - started}

        return [each.get() for each in [gevent.spawn(serve, kind) for kind in faults]]

    def outlived(self) -> int:
        """What a greenlet with a request's context does when that has been answered."""
        over = AsyncResult()
        with self.made.request(f"error@{self.point}"):
            inside = self.made.provider.get_tracer("test").start_span("work")
            later = gevent.spawn(
                contextvars.copy_context().run, lambda: (over.get(timeout=30), self.call())[1]
            )
            inside.end()
        over.set(None)
        return int(later.get())


def answer(_environment: object, start: Callable[..., object]) -> list[bytes]:
    start("200 OK", [("content-type", "text/plain")])
    gevent.sleep(0.01)
    return [b"fine"]


def main() -> None:
    activate(Runtime("api", KEYS))
    patch_all()
    server = WSGIServer(("127.0.0.1", 0), answer, log=None)
    server.start()
    gevent.spawn(works)
    host = Host(server.server_port)
    found: dict[str, object] = {"plain": {each: host.carried(each) for each in CARRIERS}}
    instrumentors = RequestsInstrumentor(), ThreadingInstrumentor()
    instrumentors[0].instrument(tracer_provider=host.made.provider)
    found["instrumented"] = {each: host.carried(each) for each in CARRIERS}
    found["beside"] = host.beside()
    found["outlived"] = host.outlived()
    instrumentors[1].instrument()
    found["threads"] = {each: host.carried(each) for each in THREADS}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
