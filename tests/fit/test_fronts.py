"""Fronts that are the edge, each a process of its own as somebody deploys it, under the rules of a
service. What every edge does is asked by the conformance test (test_conformance.py)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
from fastapi import FastAPI

from ldfi.fit.protocol.context import encode, point_hash
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import Rule
from ldfi.lineage.readers.formats import read_message
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Tree, build
from ldfi.testing import ControlPlane
from ldfi.testing.conformance.front import Front
from ldfi.testing.live import served
from tests.fit.applications import echo_app
from tests.fit.edges import eventually
from tests.fit.golang import PROXY, built
from tests.fit.test_js import HERE, JS, node
from tests.kit.service import GIVEN, client_of, service
from tests.scenarios.export.proxy import envoy_binary

pytestmark = pytest.mark.languages

__all__ = ["node"]

FAULT = Fault("api>http:GET:ratings/titles/*", "status:503", first=2)
TITLES = Predicate.of([Condition("method", "GET"), Condition("path", "/titles/*")])
KEYS = "k1:0123456789abcdef"

Words = Callable[[str], list[str]]
"""The upstream → the command that stands before it, and says its port."""


def proxy(folder: Path) -> Words:
    binary = str(built(PROXY, folder))
    return lambda upstream: [binary, "edge", "--listen", "127.0.0.1:0", "--upstream", upstream]


def gateway(folder: Path) -> Words:
    """Envoy, and beside it what it asks."""
    envoy_binary()
    binary = str(built(PROXY, folder))
    script = Path(__file__).with_name("gateway.py")
    return lambda upstream: [sys.executable, str(script), binary, upstream]


@pytest.fixture(params=["node", "go", "ldfi-proxy", "gateway"])
def words(request: pytest.FixtureRequest, tmp_path: Path) -> Words:
    if request.param == "node":
        program = [request.getfixturevalue("node"), str(HERE / "edge.mjs")]
        return lambda _: program
    if request.param == "go":
        front = str(built("internal/front", tmp_path))
        return lambda _: [front]
    return gateway(tmp_path) if request.param == "gateway" else proxy(tmp_path)


@contextmanager
def front(
    words: Words, url: str, token: str, collector: str = ""
) -> Iterator[tuple[Front, subprocess.Popen[str]]]:
    """A front that asks the service at this URL for its rules."""
    with served(echo_app()) as upstream:
        given = {
            "PATH": os.environ["PATH"],
            "OTEL_SERVICE_NAME": "front",
            "UPSTREAM": upstream,
            "FIT_JS": (JS / "index.js").as_uri(),
            "FIT_KEYS": KEYS,
            "LDFI_URL": url,
            "LDFI_TOKEN": token,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector or url,
        }
        with subprocess.Popen(
            words(upstream), env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            try:
                said = re.search(r"(\d+)(?: →|$)", process.stdout.readline().strip())
                assert said is not None
                yield Front(f"http://127.0.0.1:{said[1]}", Keys.parse(KEYS)), process
            finally:
                process.kill()


def armed(app: FastAPI, rule: Rule) -> None:
    board, now = app.state.engine.board, time.time()
    board.renew(now + 60)
    board.put(rule, 10, now)


def test_the_services_rules_are_applied_and_a_halt_ends_it(words: Words, tmp_path: Path) -> None:
    rule = Rule("e1", "salt", TITLES, 0.4, 0.4, (FAULT,))
    app = service(f"sqlite:///{tmp_path / 'x.sqlite3'}", halt_at=("127.0.0.1", 0))
    with client_of(app, GIVEN["operator"]) as client:
        assert client.get("/healthz").is_success
        app.state.halt_door._engines_loop.call_soon_threadsafe(armed, app, rule)
        with front(words, str(client.base_url).rstrip("/"), GIVEN["edge"]) as (edge, process):
            treated = next(d for d in map(str, range(99)) if rule.arm_of(d) == "treatment")
            eventually(lambda: edge.ask(treated))
            found = edge.ask(treated)
            assert found is not None
            assert (found.experiment, found.arm) == ("e1", "treatment")
            assert found.injections[point_hash(FAULT.point)].kind == "status:503"
            assert edge.ask(treated, "/basket") is None
            # When somebody halts
            assert client.post("/api/v1/halt", json={"reason": "release"}).is_success
            # Then nothing is stamped any more
            eventually(lambda: edge.ask(treated) is None)
            # And an edge that polls keeps no process alive
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0


class Collected(BaseHTTPRequestHandler):
    """Takes OTLP, and keeps it."""

    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def trees() -> list[Tree]:
    """What was collected, as the lineage reads it."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for body in Collected.bodies:
        for span in read_message(body).spans:
            spans[span.trace_id].append(span)
    built = (build(Trace.of(trace, came)) for trace, came in spans.items())
    return [tree for tree in built if tree is not None]


@pytest.mark.parametrize("made", [proxy, gateway])
def test_a_request_through_the_proxy_is_a_tree_with_its_class_and_its_proof(
    tmp_path: Path, made: Callable[[Path], Words]
) -> None:
    Collected.bodies.clear()
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Collected) as collector,
        ControlPlane() as plane,
    ):
        Thread(target=collector.serve_forever, args=(0.05,), daemon=True).start()
        upstream = ""
        stands = made(tmp_path)

        def before(url: str) -> list[str]:
            nonlocal upstream
            upstream = url.removeprefix("http://")
            return stands(url)

        where = f"http://127.0.0.1:{collector.server_port}"
        with front(before, plane.url, plane.token, where) as (edge, _):
            called = upstream if made is proxy else edge.url.removeprefix("http://")
            point = f"edge>http:GET:{called}/titles/*"
            experiment = plane.arm(Fault(point, "status:404"), on="GET /titles/17")
            edge.hold(plane)
            edge.onward("d1", "/titles/17?sort=new")
            eventually(lambda: [tree for tree in trees() if tree.experiment], 10)
        collector.shutdown()
    (tree,) = (tree for tree in trees() if tree.experiment)
    assert (tree.service, tree.experiment, tree.arm) == ("edge", experiment, "treatment")
    assert {"path": "/titles/*", "query.sort": "new"}.items() <= dict(tree.features).items()
    assert [(call.point, call.fired) for call in tree.calls] == [(point, ("status:404",))]
    assert tree.orphans == 0


def test_a_gateway_whose_edge_is_gone_goes_on_and_lets_no_context_in(tmp_path: Path) -> None:
    fault = Fault("api>http:GET:ratings/titles/*", "error")
    own = encode(Keys.parse(KEYS), "e9", "treatment", int(time.time()) + 60, [fault])
    with (
        ControlPlane() as plane,
        front(gateway(tmp_path), plane.url, plane.token) as (edge, process),
    ):
        plane.arm(fault, on="GET /titles/17")
        edge.hold(plane)
        inside = edge.ask("d1")
        assert inside is not None and inside.experiment != "e9"
        assert edge.onward("d1", "/basket", f"a=b,fit={own}", "c=d").startswith("a=b")
        assert edge.ask("d1", "/basket", f"a=b,fit={own}") is None
        process.send_signal(signal.SIGUSR1)
        eventually(lambda: edge.onward("d1") == "")
        assert edge.onward("d1", "/basket", f"a=b,fit={own}") == ""
