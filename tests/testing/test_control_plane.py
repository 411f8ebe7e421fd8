"""The stub that an edge asks for its rules, with a real edge before it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.fit import baggage
from ldfi.fit.edge import Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.allocation import mark_of
from ldfi.fit.protocol.context import FailureContext, decode
from ldfi.fit.protocol.features import request_features
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.runtime import Runtime, activate
from ldfi.testing import ControlPlane
from tests.fit.edges import eventually
from tests.kit.service import GIVEN, bearer, client_of, service

FAULT = "error@shop>http:GET:ratings/titles/*"


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def edge(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edge]:
    """An edge as a service has it that was given the plane's environment."""
    for name, value in plane.environment().items():
        monkeypatch.setenv(name, value)
    poll = RulesPoll.from_environment()
    assert poll is not None
    activate(Runtime("shop", Keys.parse(plane.environment()["FIT_KEYS"])))
    yield Edge(poll)
    poll.stop()
    activate(None)


def stamped(edge: Edge, device: str, path: str = "/items/17", inbound: str = "") -> str:
    """What a request goes on with; empty for nothing."""
    onward = edge.baggage_onward(inbound, device, lambda: request_features("GET", path))
    return baggage.find(onward) or ""


def read(plane: ControlPlane, stamp: str) -> FailureContext:
    """What a service reads that has the plane's keys."""
    return decode(Keys.parse(plane.environment()["FIT_KEYS"]), stamp, time.time())


def test_an_armed_fault_is_stamped_on_its_class_and_on_no_other(
    plane: ControlPlane, edge: Edge
) -> None:
    experiment = plane.arm(FAULT, on="GET /items/17", delay=2.5)
    stamped(edge, "d1")
    plane.until_held()

    context = read(plane, stamped(edge, "d1"))
    assert (context.experiment, context.arm) == (experiment, "treatment")
    assert context.at(FAULT.partition("@")[2]) is not None
    assert stamped(edge, "d1", "/items/99")
    assert not stamped(edge, "d1", "/basket")
    # And the plane hears who was treated
    eventually(lambda: plane.used(experiment) == 1)

    plane.disarm()
    plane.until_held()
    assert not stamped(edge, "d1")


def test_devices_are_treated_by_name(plane: ControlPlane, edge: Edge) -> None:
    plane.arm(FAULT, devices=("mine", "hers"), others=("his", "theirs"))
    stamped(edge, "mine")
    plane.until_held()
    found = [each for each in ("mine", "hers", "his", "theirs") if stamped(edge, each)]
    assert found == ["mine", "hers"]


def test_shares_of_all_devices(plane: ControlPlane, edge: Edge) -> None:
    predicate = Predicate.of([Condition("method", "GET")])
    plane.arm(FAULT, on=predicate, treatment=0.2, control=0.1, members=40)
    stamped(edge, "d0")
    plane.until_held()
    found = [stamped(edge, f"d{number}") for number in range(300)]
    arms = [read(plane, each).arm for each in found if each]
    assert arms.count("treatment") == 40
    assert 5 < arms.count("control") < 60


def test_experiments_beside_each_other_share_no_device_and_end_one_by_one(
    plane: ControlPlane, edge: Edge
) -> None:
    first, second = plane.arm(FAULT, treatment=0.5), plane.arm(FAULT, treatment=0.5)
    stamped(edge, "d0")
    plane.until_held()

    def experiments() -> set[str]:
        found = [stamped(edge, f"d{number}") for number in range(100)]
        return {read(plane, each).experiment for each in found if each}

    assert experiments() == {first, second}
    plane.disarm(first)
    plane.until_held()
    assert experiments() == {second}


def test_leases_of_no_length_disarm_and_longer_ones_arm_again(
    plane: ControlPlane, edge: Edge
) -> None:
    plane.arm(FAULT)
    stamped(edge, "d1")
    plane.until_held()
    plane.expire()
    eventually(lambda: not stamped(edge, "d1"))
    plane.lease = 5.0
    eventually(lambda: stamped(edge, "d1"))


def test_while_it_is_away_leases_run_out_and_when_it_is_back_it_is_found(
    plane: ControlPlane, edge: Edge
) -> None:
    plane.lease = 1.5
    plane.arm(FAULT)
    stamped(edge, "d1")
    plane.until_held()
    before = plane.url
    began = time.monotonic()
    plane.go_away()
    assert time.monotonic() - began < 5  # whoever waited was hung up on
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(plane.url, timeout=1)  # noqa: S310 - our own
    eventually(lambda: not stamped(edge, "d1"))
    plane.come_back()
    assert plane.url == before
    eventually(lambda: stamped(edge, "d1"), 10.0)


def test_answers_that_are_late_or_rubbish(plane: ControlPlane, edge: Edge) -> None:
    plane.arm(FAULT)
    plane.answer_slowly(0.4)
    began = time.monotonic()
    stamped(edge, "d1")
    eventually(lambda: stamped(edge, "d1"))
    assert time.monotonic() - began >= 0.4
    plane.answer_slowly(0.0)
    plane.answer_with(b"<html>")
    eventually(lambda: not stamped(edge, "d1"))
    plane.answer_well()
    eventually(lambda: stamped(edge, "d1"), 10.0)


def test_a_caught_context_is_taken_out_and_an_engineers_own_is_let_in(
    plane: ControlPlane, edge: Edge
) -> None:
    assert not stamped(edge, "mine", inbound=plane.baggage(FAULT))
    own = plane.baggage(FAULT, device="mine")
    assert stamped(edge, "mine", inbound=own)
    assert not stamped(edge, "hers", inbound=own)


def test_an_edge_that_never_asks_is_reported() -> None:
    with ControlPlane() as plane, pytest.raises(TimeoutError, match="was never asked"):
        plane.until_held(0.05)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on": "/items/17"}, "write METHOD /PATH"),
        ({"devices": [f"d{number}" for number in range(13)]}, "up to 12"),
        ({"devices": ["mine"], "others": ["mine"]}, "each once"),
    ],
)
def test_what_cannot_be_armed_is_refused(
    plane: ControlPlane, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        plane.arm(FAULT, **arguments)


WAITS = ("&wait=soon", "&wait=31", "&wait=0")


class TestAsTheServiceDoes:
    """The stub and the service are asked the same questions."""

    def test_the_document(self, plane: ControlPlane) -> None:
        plane.arm(FAULT, on="GET /items/17", members=3)
        board = RulesBoard("epoch", 5.0)
        board.heard("edge", "", {}, 0.0)
        with closing(ask(plane.url, plane.token)) as answer:
            ours = json.load(answer)
        board.put(plane.rules[0], 3, 0.0)
        board.renew(100.0)
        theirs = board.lease("edge", 0.0)
        assert theirs.pop("asks")  # this stub is a service that knows no streams and no asks
        assert ours == {**theirs, "version": ours["version"]}

    def test_the_status(self, plane: ControlPlane, tmp_path: Path) -> None:
        queries = ["", "edge=E!", *(f"edge=e1{more}" for more in ("", *WAITS))]
        with client_of(service(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"), None) as client:
            for query in queries:
                for ours, theirs in ((plane.token, GIVEN["edge"]), ("wrong", "wrong"), ("", "")):
                    headers = bearer(theirs) if theirs else {}
                    answer = client.get(f"/api/v1/edge/rules?{query}", headers=headers)
                    assert status(plane.url, ours, query) == answer.status_code, (query, theirs)


def ask(url: str, token: str, query: str = "edge=e1") -> Any:
    request = urllib.request.Request(  # noqa: S310 - our own
        f"{url}/api/v1/edge/rules?{query}",
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )
    return urllib.request.urlopen(request, timeout=5)  # noqa: S310


def status(url: str, token: str, query: str) -> int:
    try:
        with closing(ask(url, token, query)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with closing(error):
            return error.code


def test_marks_of_devices_do_not_matter_to_the_choice() -> None:
    """However the devices are called, a salt is found."""
    with ControlPlane() as plane:
        for number in range(5):
            plane.disarm()
            devices = [f"{number}-{each}" for each in range(6)]
            others = [f"{number}-{each}" for each in range(6, 12)]
            plane.arm(FAULT, devices=devices, others=others)
            (rule,) = plane.rules
            assert all(rule.claim.arm_of(mark_of(each)) == "treatment" for each in devices)
            assert not any(rule.claim.arm_of(mark_of(each)) for each in others)
