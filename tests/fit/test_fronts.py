"""Fronts that are the edge, each a process of its own as somebody deploys it, under the rules of a
service. What every edge does is asked by the conformance test (test_conformance.py)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI

from ldfi.fit.conformance.front import Front
from ldfi.fit.context import point_hash
from ldfi.fit.faults import Fault
from ldfi.fit.keys import Keys
from ldfi.fit.predicate import Condition, Predicate
from ldfi.fit.rules import Rule
from ldfi.testing.serving import served
from tests.experiments.applications import GIVEN, client_of, service
from tests.fit.applications import echo_app
from tests.fit.edges import eventually
from tests.fit.golang import built
from tests.fit.test_js import HERE, JS, node

__all__ = ["node"]

FAULT = Fault("api>http:GET:ratings/titles/*", "status:503", first=2)
TITLES = Predicate.of([Condition("method", "GET"), Condition("path", "/titles/*")])
KEYS = "k1:0123456789abcdef"

Words = Callable[[str], list[str]]
"""The upstream → the command that stands before it, and says its port."""


@pytest.fixture(params=["node", "go", "ldfi-proxy"])
def words(request: pytest.FixtureRequest, tmp_path: Path) -> Words:
    if request.param == "node":
        program = [request.getfixturevalue("node"), str(HERE / "edge.mjs")]
        return lambda _: program
    if request.param == "go":
        front = str(built("front", tmp_path, "./internal/front"))
        return lambda _: [front]
    proxy = str(built("ldfi-proxy", tmp_path))
    return lambda upstream: [proxy, "edge", "--listen", "127.0.0.1:0", "--upstream", upstream]


@contextmanager
def front(words: Words, url: str) -> Iterator[tuple[Front, subprocess.Popen[str]]]:
    """A front that asks the service at this URL for its rules."""
    with served(echo_app()) as upstream:
        given = {
            "PATH": os.environ["PATH"],
            "OTEL_SERVICE_NAME": "front",
            "UPSTREAM": upstream,
            "FIT_JS": (JS / "index.js").as_uri(),
            "FIT_KEYS": KEYS,
            "LDFI_URL": url,
            "LDFI_TOKEN": GIVEN["edge"],
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
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
        with front(words, str(client.base_url).rstrip("/")) as (edge, process):
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
