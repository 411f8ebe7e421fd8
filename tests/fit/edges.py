"""Edges that were given their rules, and a control plane over a real socket."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs, urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ldfi.fit.clock import steady
from ldfi.fit.faults import Fault
from ldfi.fit.poll import RulesPoll
from ldfi.fit.predicate import Condition, Predicate
from ldfi.fit.rules import Lease, Rule

BOOT = Predicate.of([Condition("method", "GET"), Condition("path", "/boot")])
ANY = Predicate()


def a_rule(
    experiment: str = "e1", treatment: float = 1.0, control: float = 0.0, **more: Any
) -> Rule:
    faults = (Fault("api>http:GET:ratings/titles/*", "error"),)
    named: dict[str, Any] = {"predicate": BOOT, "faults": faults, **more}
    return Rule(experiment, f"salt-{experiment}", treatment=treatment, control=control, **named)


class Held(RulesPoll):
    """Rules that were given, not fetched."""

    def __init__(self, *rules: Rule, seconds: float = 10.0) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self.hold(Lease(rules, steady() + seconds, "v"))

    def start(self) -> None:
        pass


class ControlPlane:
    """Answers polls with ``rules``; notes what was asked, and when."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self.lease_seconds: Any = 5.0
        self.body: bytes | None = None
        self.status = 200
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[float, dict[str, str]]] = []
        self.authorized: list[str] = []
        self.patient = True
        self.url = ""
        self._changed = threading.Condition()
        self._count = 0

    def put(self, *rules: Rule) -> None:
        with self._changed:
            self.rules = [rule.to_json() for rule in rules]
            self._count += 1
            self._changed.notify_all()

    @property
    def version(self) -> str:
        return f"v{self._count}"

    def used(self) -> list[str]:
        return [asked.get("used", "") for _, asked in self.asked]

    def answer(self, asked: dict[str, str]) -> bytes:
        self.asked.append((time.monotonic(), asked))
        if self.body is not None:
            return self.body
        with self._changed:
            if self.patient and asked["version"] == self.version:
                self._changed.wait(float(asked["wait"]))
            document = {
                "version": self.version,
                "lease_seconds": self.lease_seconds,
                "rules": self.rules,
            }
            return json.dumps(document).encode()


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    plane = ControlPlane()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            plane.authorized.append(self.headers.get("Authorization", ""))
            query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
            body = plane.answer({name: values[0] for name, values in query.items()})
            self.send_response(plane.status)
            for name, value in plane.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the edge hung up
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    plane.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield plane
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def eventually(holds: Callable[[], object], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def wsgi_served(app: Any) -> Iterator[str]:
    """Serve a WSGI application on loopback, a thread for each request; gives its URL."""

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with make_server("127.0.0.1", 0, app, server_class=Server, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(5)
