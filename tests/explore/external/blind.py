"""A page that needs one call which is lost to sight, in a process of its own.

    python -m tests.explore.external.blind

``WAY`` says how, by name; ``seen`` loses nothing. All of it speaks to ``STORE``, which is traced;
what sells best is asked for besides, in sight, and not needed. ``POLLS``: the page also looks at
the store now and then by itself.
"""

from __future__ import annotations

import http.client
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit
from wsgiref.simple_server import make_server

import requests
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.requests import RequestsInstrumentor
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


def by_another_session() -> bool:
    class Plain(requests.adapters.HTTPAdapter):
        """Sends as it is: what is around it would write a span."""

    request = requests.Request("GET", STORE + PATH).prepare()
    with suppress(requests.RequestException):
        return Plain().send(request, timeout=3).ok
    return False


WAYS: dict[str, Callable[[], bool]] = {
    "seen": needed,
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
    provider = TracerProvider(sampler=fit.Sampler(ALWAYS_ON))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    fit.install()
    RequestsInstrumentor().instrument(tracer_provider=provider, excluded_urls=":4318")
    threading.Thread(target=works, daemon=True).start()
    if os.environ.get("POLLS"):
        threading.Thread(target=polls, daemon=True).start()
    served = OpenTelemetryMiddleware(application(page))
    server = make_server("127.0.0.1", int(os.environ["PORT"]), served, Server, Quiet)
    server.serve_forever()


if __name__ == "__main__":
    main()
