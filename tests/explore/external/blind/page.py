"""A page that needs one call which is lost to sight, in a process of its own.

    python -m tests.explore.external.blind.page

``WAY`` says how, by name; ``seen`` loses nothing. All of it speaks to ``STORE``, which is traced;
what sells best is asked for besides, in sight, and not needed. ``POLLS``: the page also looks at
the store now and then by itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import http.client
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit
from wsgiref.simple_server import make_server

import requests
from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.utils import (
    suppress_http_instrumentation,
    suppress_instrumentation,
)
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ldfi import fit
from tests.explore.external.shop import Answer, Quiet, Server, application, asked

STORE = os.environ["STORE"]
HOST, PORT = urlsplit(STORE).hostname or "", urlsplit(STORE).port or 0
PATH = "/price/17"
POOL = ThreadPoolExecutor(2)
WORK: queue.Queue[Future[bool]] = queue.Queue()
LOOP = asyncio.new_event_loop()
PROCESSES: list[ProcessPoolExecutor] = []
SIDECAR: list[subprocess.Popen[str]] = []
ASKS = (
    "import sys; from urllib.request import ProxyHandler, build_opener as made\n"
    "def fine():\n"
    "    try: return made(ProxyHandler({})).open(sys.argv[1], timeout=3).status == 200\n"
    "    except OSError: return False\n"
    "for _ in sys.stdin: print(fine(), flush=True)"
)


def needed() -> bool:
    return asked(PATH) is not None


def by_a_pool() -> bool:
    return POOL.submit(needed).result()


def by_map() -> bool:
    return all(POOL.map(lambda _: needed(), range(2)))


def by_a_thread() -> bool:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(needed()))
    thread.start()
    thread.join()
    return found == [True]


def by_a_timer() -> bool:
    found: Future[bool] = Future()
    threading.Timer(0.001, lambda: found.set_result(needed())).start()
    return found.result()


def by_a_worker() -> bool:
    found: Future[bool] = Future()
    WORK.put(found)
    return found.result()


def works() -> None:
    while True:
        WORK.get().set_result(needed())


def without_its_context() -> bool:
    token = context.attach(context.Context())
    try:
        return needed()
    finally:
        context.detach(token)


def by_http_client() -> bool:
    with suppress(OSError):
        connection = http.client.HTTPConnection(HOST, PORT, timeout=3)
        connection.request("GET", PATH)
        return connection.getresponse().status == 200
    return False


def by_urllib() -> bool:
    with suppress(OSError):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(STORE + PATH, timeout=3) as answer:
            return bool(answer.status == 200)
    return False


def by_a_socket() -> bool:
    with suppress(OSError), socket.create_connection((HOST, PORT), 3) as connection:
        connection.sendall(f"GET {PATH} HTTP/1.0\r\nhost: {HOST}\r\n\r\n".encode())
        return b" 200 " in connection.recv(100)
    return False


def by_a_child() -> bool:
    asks = (
        f"import urllib.request as u; u.build_opener(u.ProxyHandler({{}})).open({STORE + PATH!r})"
    )
    return subprocess.run([sys.executable, "-c", asks], check=False).returncode == 0


def by_a_fork() -> bool:
    if child := os.fork():
        return os.waitpid(child, 0)[1] == 0
    os._exit(0 if by_http_client() else 1)


def by_processes() -> bool:
    return PROCESSES[0].submit(by_http_client).result()


def by_a_sidecar() -> bool:
    """Whoever asks was started before, and is told through a pipe."""
    told, heard = SIDECAR[0].stdin, SIDECAR[0].stdout
    assert told is not None and heard is not None
    told.write("\n")
    told.flush()
    return heard.readline() == "True\n"


def by_a_bare_loop() -> bool:
    found: Future[bool] = Future()
    LOOP.call_soon_threadsafe(lambda: found.set_result(needed()), context=contextvars.Context())
    return found.result()


def unrecorded() -> bool:
    with suppress_instrumentation():
        return needed()


def by_hand() -> bool:
    """The context goes on, and no span tells of the call."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    with suppress_http_instrumentation(), suppress(requests.RequestException):
        return requests.get(STORE + PATH, headers=headers, timeout=3).ok
    return False


def in_a_new_trace() -> bool:
    tracer = trace.get_tracer(__name__)
    with tracer.start_as_current_span("work", context=context.Context()):
        return needed()


def by_a_loop() -> bool:
    async def asks() -> bool:
        return await asyncio.to_thread(needed)

    return asyncio.run_coroutine_threadsafe(asks(), LOOP).result()


def by_a_copy() -> bool:
    return POOL.submit(contextvars.copy_context().run, needed).result()


def within() -> bool:
    with trace.get_tracer(__name__).start_as_current_span("work"):
        return needed()


def by_another_session() -> bool:
    class Plain(requests.adapters.HTTPAdapter):
        """Sends as it is: what is around it would write a span."""

    request = requests.Request("GET", STORE + PATH).prepare()
    with suppress(requests.RequestException):
        return Plain().send(request, timeout=3).ok
    return False


WAYS: dict[str, Callable[[], bool]] = {
    "seen": needed,
    "loop": by_a_loop,
    "copy": by_a_copy,
    "within": within,
    "pool": by_a_pool,
    "map": by_map,
    "thread": by_a_thread,
    "timer": by_a_timer,
    "worker": by_a_worker,
    "context": without_its_context,
    "http.client": by_http_client,
    "urllib": by_urllib,
    "socket": by_a_socket,
    "child": by_a_child,
    "adapter": by_another_session,
    "fork": by_a_fork,
    "processes": by_processes,
    "sidecar": by_a_sidecar,
    "bare loop": by_a_bare_loop,
    "unrecorded": unrecorded,
    "hand": by_hand,
    "new trace": in_a_new_trace,
}


def page(path: str) -> Answer:
    if path == "/health":
        return 200, {}
    asked("/bestsellers")
    return (200, {}) if WAYS[os.environ["WAY"]]() else (500, {})


def polls() -> None:
    while True:
        time.sleep(0.13)
        asked("/news")


def main() -> None:
    PROCESSES.append(ProcessPoolExecutor(1, multiprocessing.get_context("spawn")))
    words = [sys.executable, "-c", ASKS, STORE + PATH]
    pipe = subprocess.PIPE
    SIDECAR.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True))
    provider = TracerProvider(sampler=fit.Sampler(ALWAYS_ON))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    fit.install()
    RequestsInstrumentor().instrument(tracer_provider=provider, excluded_urls=":4318")
    threading.Thread(target=works, daemon=True).start()
    threading.Thread(target=LOOP.run_forever, daemon=True).start()
    if os.environ.get("POLLS"):
        threading.Thread(target=polls, daemon=True).start()
    served = OpenTelemetryMiddleware(application(page))
    server = make_server("127.0.0.1", int(os.environ["PORT"]), served, Server, Quiet)
    server.serve_forever()


if __name__ == "__main__":
    main()
