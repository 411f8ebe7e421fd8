"""Outcomes that somebody else counts: totals at each look, and no order within one."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.counted_outcomes import CountedTests
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.domain.settings import PromqlOutcome, Settings, Thresholds
from ldfi.fit.protocol.faults import Fault
from tests.experiments.simulated import BOOT

IMPOSSIBLE = 1e-300
COUNTS = st.tuples(st.integers(0, 200), st.integers(0, 200)).flatmap(
    lambda n: st.builds(
        Counts, st.just(n[0]), st.integers(0, n[0]), st.just(n[1]), st.integers(0, n[1])
    )
)


def drawn(rng: random.Random, requests: int, control: float, treated: float) -> Counts:
    failed = [sum(rng.random() < rate for _ in range(requests)) for rate in (control, treated)]
    return Counts(requests, failed[0], requests, failed[1])


def verdicts(requests: int, control: float, treated: float, runs: int = 60) -> Counter[str]:
    rng, found = random.Random(1), Counter[str]()
    for _ in range(runs):
        tests = CountedTests(Thresholds(delta=0.15))
        for _ in range(12):
            tests.look(drawn(rng, requests, control, treated))
        found[tests.final()] += 1
    return found


@pytest.mark.parametrize("requests", [20, 1_000])
def test_plain_harm_is_harmful(requests: int) -> None:
    assert verdicts(requests, 0.02, 0.95) == {"harmful": 60}


@pytest.mark.parametrize("requests", [50, 1_000])
def test_no_effect_is_tolerated(requests: int) -> None:
    assert verdicts(requests, 0.02, 0.02) == {"tolerated": 60}


def test_trouble_that_begins_in_both_arms_is_no_effect() -> None:
    rng = random.Random(2)
    for _ in range(60):
        tests = CountedTests(Thresholds(delta=0.15))
        for look in range(12):
            rate = 0.02 if look < 1 else 0.5
            tests.look(drawn(rng, 30, rate, rate))
        assert tests.final() != "harmful"


@given(
    st.lists(COUNTS, max_size=5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.05, 0.9),
)
def test_after_any_past_the_next_look_gains_nothing_on_average_under_its_null(
    past: list[Counts], n0: int, n1: int, x: float, y: float, delta: float
) -> None:
    """Over all counts that the next look may bring: exact, not simulated."""
    thresholds = Thresholds(IMPOSSIBLE, IMPOSSIBLE, delta)
    no_worse = (max(x, y), min(x, y))
    worse_by_delta = (low := x * (1 - delta), low + delta + y * (1 - delta - low))
    growth = {"worse": 0.0, "not worse": 0.0}
    for bad0, bad1 in product(range(n0 + 1), range(n1 + 1)):
        tests = CountedTests(thresholds)
        for each in past:
            tests.look(each)
        tests.look(Counts(1, 0, 1, 0))  # so that no counts of one arm wait
        before = tests.log_worse, tests.log_not_worse
        tests.look(Counts(n0, bad0, n1, bad1))
        for name, (p0, p1), gain in (
            ("worse", no_worse, tests.log_worse - before[0]),
            ("not worse", worse_by_delta, tests.log_not_worse - before[1]),
        ):
            chance = math.comb(n0, bad0) * p0**bad0 * (1 - p0) ** (n0 - bad0)
            chance *= math.comb(n1, bad1) * p1**bad1 * (1 - p1) ** (n1 - bad1)
            growth[name] += chance * math.exp(gain)

    assert growth["worse"] <= 1 + 1e-9
    assert growth["not worse"] <= 1 + 1e-9


@given(st.lists(COUNTS, max_size=6))
def test_counts_of_one_arm_wait_for_the_other(looks: list[Counts]) -> None:
    """Who asks for one arm first and for the other a moment later learns the same."""
    together, apart = (CountedTests(Thresholds(IMPOSSIBLE, IMPOSSIBLE)) for _ in range(2))
    for each in looks:
        together.look(each)
        if not (each.control and each.treated):
            apart.look(each)
            continue
        waiting = apart._waiting
        if waiting.treated:
            apart.look(Counts(0, 0, each.treated, each.treated_failed))
            apart.look(Counts(each.control, each.control_failed, 0, 0))
        else:
            apart.look(Counts(each.control, each.control_failed, 0, 0))
            apart.look(Counts(0, 0, each.treated, each.treated_failed))
    assert together.log_worse == pytest.approx(apart.log_worse)
    assert together.seen == apart.seen


@given(st.lists(COUNTS, min_size=1, max_size=6))
def test_a_verdict_never_changes(looks: list[Counts]) -> None:
    tests = CountedTests(Thresholds())
    while tests.verdict() is None:
        tests.look(Counts(100, 1, 100, 96))
    evidence = (tests.verdict(), tests.log_worse, tests.log_not_worse, tests.curve)
    for each in looks:
        tests.look(each)
    assert (tests.verdict(), tests.log_worse, tests.log_not_worse, tests.curve) == evidence


@pytest.mark.parametrize("wrong", [(1, 2, 1, 0), (1, 0, 1, 2), (1, -1, 1, 0)])
def test_more_failures_than_requests_cannot_be(wrong: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="requests failed: that cannot be"):
        Counts(*wrong)


OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40)


@given(
    st.lists(OUTCOMES, max_size=6), st.randoms(use_true_random=False), st.sampled_from([1.0, 1e-9])
)
def test_any_order_within_a_look_gives_the_same_verdict(
    looks: list[list[tuple[bool, bool]]], rng: random.Random, level: float
) -> None:
    """Of whole experiments, after every look: counters rise one request at a time, and are read
    when all of a look have been counted."""

    def told(order: list[list[tuple[bool, bool]]]) -> list[tuple[object, ...]]:
        settings = Settings(promql=PromqlOutcome("failed", "all"), guardrail=1.0)
        fault = Fault("a", "error")
        experiment = Experiment(
            *("e", "GET /", BOOT, frozenset({str(fault)}), (fault,), settings), level=level
        )
        experiment.arm(0.0, level)
        experiment.taken()
        totals = Counts()
        seen: list[tuple[object, ...]] = []
        for look in order:
            for treated, failed in look:
                totals += Counts(not treated, failed and not treated, treated, failed and treated)
            experiment.count(totals)
            tests = experiment.tests
            seen.append((tests.verdict(), tests.log_worse, tests.log_not_worse, tests.curve))
        return seen

    assert told(looks) == told([rng.sample(look, len(look)) for look in looks])
