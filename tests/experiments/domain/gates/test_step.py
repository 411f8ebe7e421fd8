"""A step of an upgrade, watched: harm is seen, and calm is not taken for it."""

from __future__ import annotations

import random

from ldfi.experiments.domain.gates.maintenance import Maintenance, Step
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.domain.traffic.vital_signs import Sign
from ldfi.testing.programs import Call
from ldfi.testing.programs import Step as Part
from tests.experiments.simulated import Application, a_class, serving, traffic_of

PROGRAM = Call("root", (Part("fallback", (Call("replica-1"), Call("replica-2"))),))


def window(*down: str) -> Maintenance:
    return Maintenance("w", "ann", "upgrade", down, 0.0, 1000.0)


SEEN = Application(serving(PROGRAM)).request()


def passing(step: Step, known: KnownClass, failing: float, requests: int, seed: int) -> int | None:
    """So many requests, of which a share fails by chance; after how many it is told to hurt."""
    rng = random.Random(seed)
    for number in range(requests):
        outcome = Outcome("t", f"d{seed} {number}", "", rng.random() >= failing)
        step.pass_by(Observation(SEEN.lineage, outcome), known, number / 10)
        if step.suffers():
            return number
    return None


def known_class() -> KnownClass:
    return a_class(traffic_of(Application(serving(PROGRAM)), 200))


def test_a_class_that_suffers_is_named_soon() -> None:
    step, known = Step(window("replica-1")), known_class()
    assert passing(step, known, 0.0, 300, seed=1) is None

    found = [
        passing(Step(window("replica-1")), known_class(), 0.15, 2000, seed=seed)
        for seed in range(20)
    ]

    assert all(each is not None and each < 500 for each in found), found
    told = passing(step, known, 1.0, 20, seed=2)
    assert told is not None and told < 10
    assert step.suffers()[0].startswith(f"GET /: {told + 1} of {300 + told + 1} requests that")


def test_a_step_that_hurts_nobody_is_hardly_ever_said_to() -> None:
    """One in a hundred: of 60 steps, three is what one in a hundred sees (binomial)."""
    told = sum(
        passing(Step(window("replica-1")), known_class(), 0.005, 1_000, seed=seed) is not None
        for seed in range(60)
    )
    assert told <= 3


def test_what_a_window_does_not_touch_is_not_watched() -> None:
    step, known = Step(window("elsewhere")), known_class()
    assert passing(step, known, 1.0, 50, seed=1) is None
    assert not step.classes
    assert passing(Step(window()), known, 1.0, 50, seed=1) is not None


def test_what_the_step_takes_down_is_no_news() -> None:
    def sign(name: str) -> Sign:
        return Sign(name, "failing", (f"api>http:GET:{name}/x",), 20, 20, 0.0, "t")

    step = Step(window("store-1", "api>http:GET:cache/*"))
    assert not step.beside(sign("store-1"))
    assert not step.beside(sign("cache"))
    assert step.beside(sign("store-2"))
