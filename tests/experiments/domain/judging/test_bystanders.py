"""Bystanders: the evidence against brute force, and what it takes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.bystanders import (
    ENOUGH,
    LONGEST,
    NEWEST,
    Bystanders,
    systems_of,
)
from ldfi.experiments.domain.traffic.baseline import Baseline, Spell

OUTCOMES = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.booleans()), max_size=60)


def beside(failed: int = 0, total: int = 200) -> Bystanders:
    bystanders = Bystanders(frozenset({"ratings"}))
    bystanders.note("GET /list", Spell(failed, total))
    return bystanders


def feed(bystanders: Bystanders, outcomes: list[tuple[str, bool]]) -> Bystanders:
    for device, success in outcomes:
        bystanders.add("GET /list", device, success=success, reached=False)
    return bystanders


RATE = 40
"""Requests in a second."""


def lived(fails: Callable[[int], bool], seconds: int, rng: random.Random) -> Baseline:
    """How a class has fared in so many seconds before an experiment."""
    baseline = Baseline()
    for number in range(seconds * RATE):
        at = number // RATE
        baseline.add(f"d{rng.random()}", float(at), success=not fails(at))
    return baseline


def after(baseline: Baseline) -> Bystanders:
    bystanders = Bystanders(frozenset({"ratings"}), delta=0.15)
    bystanders.note("GET /list", baseline.worst(1_000.0))
    return bystanders


@given(OUTCOMES, st.integers(0, 40))
def test_they_are_hurt_where_some_run_of_outcomes_says_so(
    outcomes: list[tuple[str, bool]], failed: int
) -> None:
    """By the largest sum over all runs of outcomes, which is what the sum kept at zero finds."""
    usual = (failed + 1) / 202
    worse = usual + 0.25 * (1 - usual)
    seen, gains = set[str](), list[float]()
    for device, success in outcomes:
        if success:
            gains.append(math.log((1 - worse) / (1 - usual)))
        elif device not in seen:
            seen.add(device)
            gains.append(math.log(worse / usual))
    best = max((math.fsum(gains[i:j]) for j in range(len(gains) + 1) for i in range(j)), default=0)
    if abs(best - ENOUGH) > 1e-9:
        hurt = feed(beside(failed), outcomes).hurt is not None
        assert hurt is (best >= ENOUGH)


def test_a_few_failures_in_a_row_are_enough_and_the_figures_are_told() -> None:
    hurt = feed(beside(), [("calm", True)] * 50 + [(f"d{n}", False) for n in range(5)]).hurt
    assert hurt == (
        "3 of 53 requests that nobody injected into failed, which reach ratings too; 0 of 200 had "
        "before, at worst"
    )


def test_one_device_that_tries_again_and_again_is_one() -> None:
    assert feed(beside(), [("d1", False)] * 1_000).hurt is None


@pytest.mark.parametrize("known", [10, 60])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2])
def test_what_failed_before_as_often_is_no_harm(share: float, known: int) -> None:
    """Of a hundred experiments of a thousand bystanders at most one is stopped in vain, however
    many seconds were seen before."""
    rng = random.Random(1)
    stopped = 0
    for _ in range(100):
        baseline = lived(lambda _: rng.random() < share, known, rng)
        told = [(f"d{n}", rng.random() >= share) for n in range(1_000)]
        stopped += feed(after(baseline), told).hurt is not None
    assert stopped <= 1


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_bursts_as_there_were_before_are_no_harm(share: float) -> None:
    """Everybody behind a network fails while it is bad, for ten seconds: in fifty
    experiments of twenty seconds, with two minutes known before, none is stopped."""
    stopped = 0
    for seed in range(50):
        rng = random.Random(seed)
        bad: dict[int, list[bool]] = {}

        def fails(at: int, rng: random.Random = rng, bad: dict[int, list[bool]] = bad) -> bool:
            networks = bad.setdefault(at // 10, [rng.random() < share for _ in range(25)])
            return rng.choice(networks)

        baseline = lived(fails, 120, rng)
        told = [(f"d{n}", not fails(120 + n // RATE)) for n in range(20 * RATE)]
        stopped += feed(after(baseline), told).hurt is not None
    assert stopped == 0


def test_it_is_felt_until_the_newest_are_as_before_or_for_ten_minutes() -> None:
    bystanders = feed(beside(), [(f"d{n}", False) for n in range(10)])
    assert bystanders.felt(1.0)
    feed(bystanders, [("e", True)] * (NEWEST - 2))
    assert bystanders.felt(1.0)
    assert not bystanders.felt(LONGEST)
    feed(bystanders, [("e", True)])
    assert not bystanders.felt(1.0)


def test_a_point_is_its_own_system_where_nobody_knows_better() -> None:
    points = frozenset({"api>http:GET:ratings/x", "home>function:rank", "api>db:GET:sessions"})
    callees = {"api>db:GET:sessions": "redis"}
    assert systems_of(points, callees) == {"ratings", "home>function:rank", "redis"}
