"""Allowance on demand, as an edge asks for it: in time, in either arm alike, or not at all."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ldfi.fit import allowance_requests
from ldfi.fit.allowance_requests import ASK_SECONDS, LONGEST_PAUSE_SECONDS, Asks, Question
from ldfi.fit.asgi import EdgeMiddleware
from ldfi.fit.clock import steady
from ldfi.fit.edge import Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.allowance import REFUSED_SECONDS
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Lease, Rule
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS
from tests.fit.edges import a_rule, eventually

ASKED = {"method": "GET", "path": "/boot"}


@dataclass
class Plane:
    """A service that can be asked. ``slow``: seconds that an answer takes."""

    granted: bool = True
    slow: float = 0.0
    status: int = 200
    version: str = "e-1"
    asks: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def answer(self, ask: dict[str, Any]) -> tuple[int, bytes]:
        self.asks.append(ask)
        time.sleep(self.slow)
        answer = {"granted": self.granted, "lease_seconds": 9.0, "version": self.version}
        return self.status, json.dumps(answer).encode()


@pytest.fixture
def plane() -> Iterator[Plane]:
    plane = Plane()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = plane.answer(asked)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # who asked is gone
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        plane.url = f"http://127.0.0.1:{server.server_port}"
        yield plane
        server.shutdown()


class Offered(RulesPoll):
    """Rules that were offered, not fetched."""

    def __init__(self, url: str, *rules: Rule) -> None:
        super().__init__(url, "token")
        self.asks.answered = True
        self.offer(Lease(rules, 0.0, "e-1"))

    def start(self) -> None:
        pass

    def keep(self) -> None:
        pass


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is late on a machine that is busy."""
    monkeypatch.setattr(allowance_requests, "ASK_SECONDS", 30.0)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by which it is asked again, as far as a test moves it."""
    at = [steady()]
    monkeypatch.setattr("ldfi.fit.allowance_requests.steady", lambda: at[0])
    return at


@pytest.fixture(autouse=True)
def active() -> Iterator[None]:
    activate(Runtime("front", KEYS))
    yield
    activate(None)


def stamped(poll: RulesPoll, device: str) -> bool:
    return "fit=" in Edge(poll).baggage_onward("", device, lambda: ASKED)


def devices(rule: Rule, arm: Arm | None, count: int) -> list[str]:
    found = (f"d{number}" for number in range(10_000) if rule.arm_of(f"d{number}") == arm)
    return [next(found) for _ in range(count)]


@pytest.mark.usefixtures("patient")
def test_a_device_of_either_arm_is_asked_for_once_and_enrolled_if_granted(plane: Plane) -> None:
    rule = a_rule("e1", 0.3, 0.3, members=0)
    poll = Offered(plane.url, rule)
    treated, control = devices(rule, "treatment", 1)[0], devices(rule, "control", 1)[0]
    for device in (treated, control, treated, control):
        assert stamped(poll, device)
    assert not stamped(poll, devices(rule, None, 1)[0])
    assert [(each["arm"], each["ask"]) for each in plane.asks] == [("treatment", 1), ("control", 2)]
    assert {each["version"] for each in plane.asks} == {"e-1"}
    enrolled = poll.allowances.report()["e1"]
    assert (enrolled.treatment, enrolled.control) == (1, 1)
    assert poll.asks.settled == 2
    poll.stop()


@pytest.mark.usefixtures("patient")
def test_while_the_own_allowance_lasts_nobody_asks(plane: Plane) -> None:
    rule = a_rule("e1", 0.3, 0.3, members=2)
    poll = Offered(plane.url, rule)
    poll.hold(Lease((rule,), steady() + 9, "e-1"))
    first, second, third = devices(rule, "treatment", 3)
    control = devices(rule, "control", 2)
    assert stamped(poll, first)
    assert stamped(poll, control[0])
    assert stamped(poll, second)
    assert plane.asks == []
    assert stamped(poll, third)
    assert stamped(poll, control[1])
    assert [each["arm"] for each in plane.asks] == ["treatment", "control"]
    poll.stop()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("told", ["refused", "other rules", "an error", "nonsense"])
def test_without_a_good_answer_a_device_is_in_neither_arm(plane: Plane, told: str) -> None:
    plane.granted = told != "refused"
    plane.version = "e-2" if told == "other rules" else "e-1"
    plane.status = 500 if told == "an error" else 200
    if told == "nonsense":
        plane.answer = lambda _ask: (200, b"[]")  # type: ignore[method-assign,assignment]
    rule = a_rule("e1", 0.3, 0.3, members=0)
    poll = Offered(plane.url, rule)
    for device in (devices(rule, "treatment", 1)[0], devices(rule, "control", 1)[0]):
        assert not stamped(poll, device)
        assert poll.allowances.report() == {}
    assert poll.asks.settled == poll.asks._numbers.last > 0
    assert (poll.asks.late() > 0) == (told in ("an error", "nonsense"))
    poll.stop()


@pytest.mark.usefixtures("patient")
def test_after_a_refusal_nobody_asks_for_it_for_a_moment(plane: Plane, now: list[float]) -> None:
    plane.granted = False
    rules = [a_rule("e1", 0.3, 0.3, members=0)]
    poll = Offered(plane.url, *rules)
    for device in devices(rules[0], "treatment", 5):
        assert not stamped(poll, device)
    assert len(plane.asks) == 1
    now[0] += REFUSED_SECONDS
    stamped(poll, devices(rules[0], "control", 1)[0])
    assert len(plane.asks) == 2
    poll.stop()


def test_an_answer_that_is_late_counts_for_nothing_and_then_nobody_asks_for_a_while(
    plane: Plane, now: list[float]
) -> None:
    plane.slow = 10 * ASK_SECONDS
    rule = a_rule("e1", 0.3, 0.3, members=0)
    poll = Offered(plane.url, rule)
    for device in devices(rule, "treatment", 5):
        assert not stamped(poll, device)
    assert poll.asks.late() == 5
    assert len(plane.asks) <= 1
    time.sleep(plane.slow + 0.1)
    assert poll.allowances.report() == {}, "the answer has come"
    assert not poll.lease().ends
    assert poll.asks.settled == poll.asks._numbers.last
    poll.stop()


def test_after_failures_it_is_asked_again_within_a_second(
    plane: Plane, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = a_rule("e1", 1.0, 0.0, members=0)
    poll = Offered(plane.url, rule)
    # Given asks that failed again and again, some of them together
    for number in range(20):
        again = poll.asks._pause_until
        now[0] += 0.001
        poll.asks.give_up(Question("e1", "treatment", "e-1", number, asked_at=now[0] + 60 * number))
        poll.asks.give_up(Question("e1", "treatment", "e-1", number, asked_at=now[0]))
        assert again != poll.asks._pause_until
        # Then the next one is due within a second
        assert 0 < poll.asks._pause_until - now[0] <= LONGEST_PAUSE_SECONDS == 1.0
    assert poll.asks.late() == 40
    # And once one is answered, failures count from nought
    poll.asks._pause_until = 0.0
    with monkeypatch.context() as patient:
        patient.setattr(allowance_requests, "ASK_SECONDS", 30.0)
        assert stamped(poll, "d1")
    plane.slow = 10 * ASK_SECONDS
    assert not stamped(poll, "d2")
    assert 0 < poll.asks._pause_until - now[0] <= 0.25
    poll.stop()


def test_the_event_loop_never_waits_for_an_answer(plane: Plane) -> None:
    plane.slow = 1.0
    rule = a_rule("e1", 1.0, 0.0, members=0)
    poll = Offered(plane.url, rule)
    passed: list[bool] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        passed.append(any(name == b"baggage" for name, _ in scope["headers"]))

    async def beat(gaps: list[float]) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - began)

    async def run() -> list[float]:
        edge, gaps = EdgeMiddleware(app, poll), list[float]()
        beating = asyncio.create_task(beat(gaps))
        headers = [(b"x-device-id", b"d1")]
        scope = {"type": "http", "method": "GET", "path": "/boot", "headers": headers}
        await edge(scope, None, None)  # type: ignore[arg-type]
        beating.cancel()
        return gaps

    gaps = asyncio.run(run())
    assert passed == [False]
    assert len(gaps) >= 3, "the loop went on meanwhile"
    poll.stop()


def test_a_request_that_is_cancelled_while_it_asks_settles_its_ask(plane: Plane) -> None:
    plane.slow = 0.2
    rule = a_rule("e1", 1.0, 0.0, members=0)
    poll = Offered(plane.url, rule)
    decision = Edge(poll).decide("", "d1", lambda: ASKED)
    question = next(decision)
    assert question.number == 1
    assert poll.asks.settled == 0
    decision.close()
    assert poll.asks.settled == 1
    assert poll.allowances.report() == {}
    poll.stop()


def test_offers_alone_stamp_nobody(plane: Plane) -> None:
    rule = a_rule("e1", 1.0, 0.0, members=5)
    poll = Offered(plane.url, rule)
    assert poll.lease().rules
    assert not stamped(poll, "d1")
    poll.hold(Lease((rule,), steady() + 9, "e-1"))
    assert stamped(poll, "d1")
    poll.stop()


def test_rules_that_are_older_replace_nothing() -> None:
    poll = RulesPoll("http://127.0.0.1:9", "t")
    poll.offer(Lease((a_rule("e2"),), 0.0, "e-10"))
    poll.hold(Lease((a_rule("e1"),), steady() + 9, "e-9"))
    assert [rule.experiment for rule in poll.lease().rules] == ["e2"]
    poll.hold(Lease((a_rule("e3"),), steady() + 9, "other-1"))
    assert [rule.experiment for rule in poll.lease().rules] == ["e3"]
    poll.stop()


def test_numbers_settle_in_order() -> None:
    asks = Asks("http://127.0.0.1:9", "t", "edge")
    with asks.asking("e", "control", "v") as first:
        with asks.asking("e", "treatment", "v") as second:
            assert first is not None
            assert second is not None
            assert asks.settled == 0
        assert asks.settled == 0, "the first is still open"
        assert asks.untold
    assert asks.settled == 2
    asks.told(2)
    assert not asks.untold


def test_connections_are_kept(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance_requests, "ASK_SECONDS", 30.0)
    rule = a_rule("e1", 1.0, 0.0, members=0)
    poll = Offered(plane.url, rule)
    for number in range(5):
        assert stamped(poll, f"d{number}")
    eventually(lambda: len(poll.asks._line._idle) == 1)
    poll.stop()
    assert poll.asks._line._idle == []
