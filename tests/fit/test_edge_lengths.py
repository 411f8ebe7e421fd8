"""The edge draws the length of a delay once for each request that it stamps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ldfi.fit import baggage
from ldfi.fit.edge import Edge
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.lengths import lengths_of
from ldfi.fit.protocol.rules import Rule
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS
from tests.fit.edges import Held, a_rule

POINT, OTHER = "api>http:GET:ratings/titles/*", "api>cache:get:home"
ASKED = {"method": "GET", "path": "/boot"}
RUNTIME = Runtime("api", KEYS)


@pytest.fixture(autouse=True)
def keys() -> Iterator[None]:
    activate(RUNTIME)
    yield
    activate(None)


def stamped(edge: Edge, device: str = "d1") -> str:
    (value,) = baggage.values(edge.baggage_onward("", device, lambda: ASKED))
    return value


def injected(value: str, point: str = POINT) -> Injection:
    context = RUNTIME.verify(value)
    assert context is not None
    injection = context.at(point)
    assert injection is not None
    return injection


def drawing(kind: str, **more: Any) -> Rule:
    return a_rule(faults=(Fault(POINT, kind), Fault(OTHER, kind)), **more)


@pytest.mark.parametrize("kind", ["delay:0.5..2", "delay:p50=0.8..p99=3"])
@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_each_request_has_lengths_of_its_own_within_the_bound(kind: str, arm: str) -> None:
    shares = {"treatment": float(arm == "treatment"), "control": float(arm == "control")}
    edge = Edge(Held(drawing(kind, delay_ms=1500, **shares)))
    values = [stamped(edge, f"d{number % 7}") for number in range(200)]

    lengths = [(injected(each).delay_ms, injected(each, OTHER).delay_ms) for each in values]

    assert {injected(each).kind for each in values} == {"delay"}
    assert len(set(lengths)) > 50
    assert sum(one != other for one, other in lengths) > 50, "and so has each of its points"
    assert all(1 <= each <= 1500 for pair in lengths for each in pair)
    median = 1000 * lengths_of(kind.partition(":")[2]).at(0.5)
    assert 70 < sum(one <= median for one, _ in lengths) < 130  # a chance below 10⁻⁴ of not


def test_a_restarted_edge_draws_the_same_for_the_same_requests() -> None:
    one, other = Edge(Held(drawing("delay:0.5..2"))), Edge(Held(drawing("delay:0.5..2")))
    for _ in range(10):
        assert injected(stamped(one)) == injected(stamped(other))


def test_what_is_not_drawn_is_signed_once_for_all() -> None:
    edge = Edge(Held(a_rule(faults=(Fault(POINT, "delay"),), delay_ms=700)))
    assert stamped(edge, "d1") == stamped(edge, "d2")
    assert injected(stamped(edge)).delay_ms == 700


def test_a_rule_that_draws_reads_back() -> None:
    rule = drawing("delay:p50=0.8..p99=3", delay_ms=3000)
    assert Rule.from_json(rule.to_json()) == rule
    assert Rule.from_json(rule.to_json()).draws
