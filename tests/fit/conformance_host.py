"""The Python implementation as a host of the conformance test: `fit` under requests, and edges over
ASGI, or with ``--wsgi`` over WSGI."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests
from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import DEFAULT_ON
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ldfi import fit
from ldfi.fit.protocol import points
from ldfi.fit.protocol.context import decode, point_hash
from ldfi.fit.protocol.errors import ContextError
from ldfi.fit.protocol.keys import Keys
from ldfi.testing.live_service import served
from tests.fit.edges import wsgi_served

KINDS = [
    *("error", "delay", "refused", "reset", "timeout", "status", "empty", "truncated", "corrupt"),
    "slow",
]
SPANS = InMemorySpanExporter()


def about() -> dict[str, Any]:
    names = ["http", "rpc", "db", "connect", "command", "message"]
    return {
        "protocol": 1,
        "implementation": "Python",
        "service": "conformance",
        "reads": "sdk",
        "kinds": KINDS,
        "names": names,
        "edge": True,
    }


def decoded(case: dict[str, Any]) -> dict[str, Any]:
    try:
        read = decode(Keys.parse(case["keys"]), case["value"], case["now"])
    except ContextError as error:
        return {"result": error.reason}
    faults = [
        {"hash": at, "kind": do.kind, "delay_ms": do.delay_ms, "first": do.first}
        for at, do in read.injections.items()
    ]
    told = {"experiment": read.experiment, "arm": read.arm, "expires": read.expires}
    return {"result": "accepted", "context": {**told, "faults": faults}}


def named(case: dict[str, Any]) -> dict[str, str]:
    caller = case["caller"]
    if case["kind"] == "http":
        port = case["port"] or None
        name = points.http_point(
            caller, case["method"], case["host"], port, case["path"], case["template"]
        )
    elif case["kind"] == "rpc":
        peer = points.authority(case["peer"])
        name = points.rpc_point(caller, case["method"], peer)
    elif case["kind"] == "db":
        name = points.database_point(caller, case["statement"], case["peer"])
    elif case["kind"] == "connect":
        name = str(points.Point(caller, "db", "connect", case["peer"]))
    elif case["kind"] == "command":
        peer = points.address(case["host"], case["port"])
        name = points.database_point(caller, case["command"], peer)
    else:
        name = points.message_point(caller, case["operation"], case["system"], case["destination"])
    return {"name": name, "hash": point_hash(name)}


def run(asked: dict[str, Any]) -> dict[str, Any]:
    context = TraceContextTextMapPropagator().extract(asked["headers"])
    token = attach(W3CBaggagePropagator().extract(asked["headers"], context))
    try:
        with trace.get_tracer("host").start_as_current_span(
            "request", kind=trace.SpanKind.SERVER
        ) as span:
            seen = [called(asked["url"], asked["timeout_ms"] / 1000) for _ in range(asked["calls"])]
            of = span.get_span_context().trace_id
    finally:
        detach(token)
    return {"seen": seen, "spans": marks(of)}


def called(url: str, timeout: float) -> dict[str, Any]:
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(url, timeout=timeout)
    except requests.Timeout:
        return {"failed": "timeout"}
    except requests.exceptions.ChunkedEncodingError:
        return {"failed": "truncated"}
    except requests.ConnectionError as error:
        return {"failed": "refused" if "refused" in str(error) else "reset"}
    return {"status": answer.status_code, "length": len(answer.content)}


def marks(of: int) -> list[dict[str, str]]:
    found = []
    for span in SPANS.get_finished_spans():
        told = {k: str(v) for k, v in (span.attributes or {}).items() if k.startswith("fit.")}
        for event in span.events:
            told["event"] = event.name
        if span.context is not None and span.context.trace_id == of and "fit.point" in told:
            found.append(told)
    return found


EDGES = ExitStack()
ONE_BY_ONE = threading.Lock()


def edge(environment: dict[str, str]) -> dict[str, str]:
    """Set up an edge, as in a process with these variables."""
    with ONE_BY_ONE:
        for name in ("LDFI_URL", "LDFI_TOKEN", "FIT_HALT", "FIT_HALT_FILE", "FIT_DEVICE"):
            os.environ.pop(name, None)
        os.environ.update(environment)
        made: Any
        front: AbstractContextManager[str]
        if "--wsgi" in sys.argv:
            made = fit.WSGIEdgeMiddleware(wsgi_echo)
            front = wsgi_served(made)
        else:
            made = fit.EdgeMiddleware(asgi_echo)
            front = served(made)
        EDGES.callback(made._edge._poll.stop)
        return {"url": EDGES.enter_context(front)}


async def asgi_echo(scope: Any, receive: Any, send: Any) -> None:
    body = dict(scope.get("headers", ())).get(b"baggage", b"")
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


def wsgi_echo(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    body = environ.get("HTTP_BAGGAGE", "").encode("latin-1")
    start_response("200 OK", [("content-length", str(len(body)))])
    return [body]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.say(about())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/run":
            self.say(run(asked))
        elif self.path == "/edge":
            self.say(edge(asked["environment"]))
        else:
            each = decoded if self.path == "/decode" else named
            self.say([each(case) for case in asked["cases"]])

    def say(self, what: object) -> None:
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def provided() -> TracerProvider:
    """Return what records the spans of which the host tells."""
    provider = TracerProvider(sampler=fit.Sampler(DEFAULT_ON))
    provider.add_span_processor(SimpleSpanProcessor(SPANS))
    return provider


@contextmanager
def hosted() -> Iterator[str]:
    """Serve the host on loopback, in a thread; gives its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, EDGES:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    trace.set_tracer_provider(provided())
    fit.install()
    with hosted() as url:
        sys.stdout.write(f"{url.rpartition(':')[2]}\n")
        sys.stdout.flush()
        threading.Event().wait()  # until it is ended


if __name__ == "__main__":
    main()
