"""A front in Node as the edge: under the rules of a service, and of one in trouble."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from ldfi.fit import baggage
from ldfi.fit.context import FailureContext, encode, point_hash
from ldfi.fit.faults import Fault
from ldfi.fit.keys import Keys
from ldfi.fit.predicate import Condition, Predicate
from ldfi.fit.rules import Rule
from ldfi.fit.runtime import Runtime
from ldfi.fit.scenario import scenario_of
from ldfi.testing import ControlPlane
from ldfi.testing.serving import served
from tests.experiments.applications import GIVEN, client_of, service
from tests.fit.applications import echo_app
from tests.fit.edges import eventually
from tests.fit.test_js import HERE, JS, node

__all__ = ["node"]

FAULT = Fault("api>http:GET:ratings/titles/*", "status:503", first=2)
TITLES = Predicate.of([Condition("method", "GET"), Condition("path", "/titles/*")])
KEYS = "k1:0123456789abcdef"


class Front:
    """A Node process that is the edge."""

    def __init__(self, url: str, process: subprocess.Popen[str], keys: str) -> None:
        self.url = url
        self.process = process
        self.reader = Runtime("reader", Keys.parse(keys))

    def ask(self, device: str, path: str = "/titles/17", **headers: str) -> FailureContext | None:
        """Send a request, and read the context that it goes on with, if any is obeyed."""
        value = baggage.find(self.onward(device, path, **headers))
        context = self.reader.verify(value) if value else None
        assert (value is None) == (context is None), value
        return context

    def onward(self, device: str, path: str = "/titles/17", **headers: str) -> str:
        given = {"x-device-id": device, **headers} if device else headers
        raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        return httpx.get(f"{self.url}{path}", headers=raw, trust_env=False, timeout=10).text


@contextmanager
def front(node: str, environment: dict[str, str]) -> Iterator[Front]:
    with served(echo_app()) as upstream:
        given = {
            "PATH": os.environ["PATH"],
            "FIT_JS": (JS / "index.js").as_uri(),
            "UPSTREAM": upstream,
            "OTEL_SERVICE_NAME": "front",
            **environment,
        }
        with subprocess.Popen(
            [node, str(HERE / "edge.mjs")], env=given, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
                yield Front(url, process, environment["FIT_KEYS"])
            finally:
                process.kill()


def armed(app: FastAPI, rule: Rule) -> None:
    board, now = app.state.engine.board, time.time()
    board.renew(now + 60)
    board.put(rule, 10, now)


def test_the_services_rules_are_applied_and_a_halt_ends_it(node: str, tmp_path: Path) -> None:
    rule = Rule("e1", "salt", TITLES, 0.4, 0.4, (FAULT,))
    app = service(f"sqlite:///{tmp_path / 'x.sqlite3'}", halt_at=("127.0.0.1", 0))
    with client_of(app, GIVEN["operator"]) as client:
        assert client.get("/healthz").is_success
        app.state.halt_door._engines_loop.call_soon_threadsafe(armed, app, rule)
        environment = {
            "LDFI_URL": str(client.base_url),
            "LDFI_TOKEN": GIVEN["edge"],
            "FIT_KEYS": KEYS,
        }
        with front(node, environment) as edge:
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


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(lease=3.0) as plane:
        yield plane


def test_each_device_is_in_the_arm_that_python_says(node: str, plane: ControlPlane) -> None:
    with front(node, plane.environment()) as edge:
        plane.arm(FAULT, on=TITLES, treatment=0.3, control=0.4)
        edge.ask("d0")
        plane.until_held()
        (rule,) = plane.rules
        devices = [f"device-{number}" for number in range(60)] + ["d\xe9j\xe0"]
        for device in devices:
            context = edge.ask(device)
            assert (context and context.arm) == rule.arm_of(device), device
        arms = [rule.arm_of(device) for device in devices]
        assert {"treatment", "control", None} == set(arms)
        # And the service hears how many were treated
        eventually(lambda: plane.used(rule.experiment) == arms.count("treatment"))


def test_nobody_is_stamped_beyond_the_allowance(node: str, plane: ControlPlane) -> None:
    with front(node, plane.environment()) as edge:
        experiment = plane.arm(FAULT, members=3)
        edge.ask("")
        plane.until_held()
        first = [edge.ask(f"d{number}") is not None for number in range(8)]
        assert first == [True] * 3 + [False] * 5
        assert edge.ask("d1")  # who is enrolled stays so
        eventually(lambda: plane.used(experiment) == 3)


def test_contexts_from_outside_go_and_an_engineers_own_stays(
    node: str, plane: ControlPlane
) -> None:
    environment = plane.environment()
    keys, soon = Keys.parse(environment["FIT_KEYS"]), int(time.time()) + 60
    with front(node, environment) as edge:
        foreign = encode(keys, "e9", "treatment", soon, [FAULT])
        own = encode(keys, scenario_of("mine"), "treatment", soon, [FAULT])
        assert edge.onward("mine", baggage=f"a=b,fit={foreign}") == "a=b"
        assert edge.onward("", baggage=f"a=b,%C2%85fit={own}") == "a=b"
        assert edge.onward("hers", baggage=f"fit={own}") == ""
        plane.arm(FAULT)
        plane.until_held()
        kept = edge.ask("mine", baggage=f"fit={foreign},fit={own}")
        assert kept is not None
        assert kept.experiment == scenario_of("mine")


def test_a_file_halts_an_edge_by_itself(node: str, plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "halt"
    with front(node, {**plane.environment(), "FIT_HALT_FILE": str(file)}) as edge:
        plane.arm(FAULT)
        edge.ask("d")
        plane.until_held()
        assert edge.ask("d")
        file.touch()
        eventually(lambda: edge.ask("d") is None, 1.0)
        file.unlink()
        eventually(lambda: edge.ask("d"), 1.0)


def test_a_variable_halts_an_edge(node: str, plane: ControlPlane) -> None:
    with front(node, {**plane.environment(), "FIT_HALT": "1"}) as edge:
        plane.arm(FAULT)
        edge.ask("d")
        plane.until_held()
        assert edge.ask("d") is None


def test_without_the_service_the_lease_runs_out_and_comes_back_with_it(
    node: str, plane: ControlPlane
) -> None:
    plane.lease = 1.5
    with front(node, plane.environment()) as edge:
        plane.arm(FAULT)
        edge.ask("d")
        plane.until_held()
        context = edge.ask("d")
        assert context is not None
        assert context.expires <= time.time() + plane.lease + 1
        plane.go_away()
        eventually(lambda: edge.ask("d") is None, plane.lease + 1)
        assert edge.onward("d", baggage="a=b") == "a=b"
        plane.come_back()
        eventually(lambda: edge.ask("d"))


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b'{"rules": [{}]}', b"[" * 5_000_000])
def test_an_answer_that_is_not_understood_silences_it_at_once(
    node: str, plane: ControlPlane, body: bytes
) -> None:
    plane.lease = 60.0
    with front(node, plane.environment()) as edge:
        plane.arm(FAULT)
        edge.ask("d")
        plane.until_held()
        assert edge.ask("d")
        plane.answer_with(body)
        eventually(lambda: edge.ask("d") is None)
        plane.answer_well()
        eventually(lambda: edge.ask("d"), 10)


def test_redirects_are_not_followed(node: str, plane: ControlPlane) -> None:
    with ControlPlane() as other, front(node, plane.environment()) as edge:
        plane.answer_with(status=302, headers={"location": f"{other.url}/api/v1/edge/rules"})
        edge.ask("d")
        eventually(lambda: len(plane.polls) > 1)
        assert not other.polls


def test_an_edge_that_polls_keeps_no_process_alive(node: str, plane: ControlPlane) -> None:
    with front(node, plane.environment()) as edge:
        plane.arm(FAULT)
        edge.ask("d")
        plane.until_held()
        edge.process.send_signal(signal.SIGTERM)  # it closes its server, and ends by itself
        assert edge.process.wait(5) == 0
