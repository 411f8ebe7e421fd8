"""Edges that were given their rules, and servers that they stand before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ldfi.fit.clock import steady
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import Lease, Rule

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


def eventually(holds: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not happen within {seconds} s"
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
