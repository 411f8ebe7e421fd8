"""What the checker works out is what the service said: the two share no line of code."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.statistics import (
    CLOSE,
    JudgingRule,
    failed_of,
    level,
    nearest,
    threshold,
    weigh,
    weigh_looks,
)
from ldfi.experiments.domain.judging import two_slots
from ldfi.experiments.domain.judging.counted_outcomes import CountedTests
from ldfi.experiments.domain.judging.sequential_tests import (
    Counts,
    SequentialTests,
    ThresholdRule,
    project,
)
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.settings import Thresholds

SEEDS = st.integers(0, 2**32)


def thresholds(rng: random.Random) -> Thresholds:
    return Thresholds(
        alpha_harmful=10 ** -rng.uniform(1, 6),
        alpha_tolerated=10 ** -rng.uniform(0.5, 3),
        delta=rng.uniform(0.02, 0.6),
        min_samples=rng.randint(1, 20),
    )


def rule_of(given: Thresholds, ratio: float = 1.0, name: str = "sequential") -> JudgingRule:
    return JudgingRule(
        name, given.alpha_harmful, given.alpha_tolerated, given.delta, given.min_samples, ratio
    )


def outcomes(rng: random.Random) -> list[tuple[bool, bool]]:
    rates = rng.choice([(0.01, 0.95), (0.01, 0.01), (0.3, 0.5), (0.0, 0.0), (0.9, 0.2)])
    share = rng.choice([0.5, 0.1, 0.03])
    drawn = [rng.random() < share for _ in range(rng.randint(0, 600))]
    return [(treated, rng.random() < rates[treated]) for treated in drawn]


def written(each: tuple[bool, bool], rng: random.Random) -> str:
    treated, failed = each
    good = rng.choice("td") if treated else "c"
    return ("T" if treated else "C") if failed else good


@given(SEEDS)
def test_ordered_outcomes_weigh_what_the_service_says(seed: int) -> None:
    rng = random.Random(seed)
    given, ratio = thresholds(rng), rng.choice([0.5, 1.0, 3.0, 10.0])
    tests = SequentialTests(given, ratio)
    order = outcomes(rng)
    for treated, failed in order:
        tests.add(treated=treated, failed=failed)
    found = weigh(rule_of(given, ratio), "".join(written(each, rng) for each in order))

    assert found.worse == pytest.approx(tests.log_worse, abs=CLOSE)
    assert found.not_worse == pytest.approx(tests.log_not_worse, abs=CLOSE)
    assert tests.final() in found.verdicts()
    assert len(found.verdicts()) == 1


@given(SEEDS)
def test_devices_that_were_followed_weigh_what_the_service_says(seed: int) -> None:
    """Those that failed later, and those of which it is not known what their requests relied on."""
    rng = random.Random(seed)
    given, ratio = thresholds(rng), rng.choice([1.0, 3.0, 10.0])
    first, own = SequentialTests(given, ratio), SequentialTests(given, ratio)
    order = ""
    for treated, failed in outcomes(rng):
        later, unproved = rng.random() < 0.05, treated and rng.random() < 0.2
        good = ("uv" if unproved else "ty" if treated else "cx")[later]
        order += ("T" if treated else "C") if failed else good
        first.add(treated=treated, failed=failed, proved=not unproved)
        own.add(treated=treated, failed=failed or later, proved=not unproved)
    for tests, stays in ((first, False), (own, True)):
        found = weigh(rule_of(given, ratio), failed_of(order, stays=stays))
        assert found.worse == pytest.approx(tests.log_worse, abs=CLOSE)
        assert found.not_worse == pytest.approx(tests.log_not_worse, abs=CLOSE)
        assert found.verdicts() == {tests.final()}


def test_by_an_earlier_rule_tolerated_stood_whoever_came_after() -> None:
    rule = rule_of(Thresholds(), 3.0)
    order = "ccct" * 40 + "cccT" * 12
    assert weigh(rule, order, stands=True).says() == "tolerated"
    assert weigh(rule, order).says() != "tolerated"


@given(SEEDS)
def test_counted_outcomes_weigh_what_the_service_says(seed: int) -> None:
    rng = random.Random(seed)
    given, tests = thresholds(rng), None
    tests = CountedTests(given)
    p0, p1 = rng.choice([(0.01, 0.95), (0.01, 0.01), (0.3, 0.5), (0.0, 0.0)])
    looks = []
    for _ in range(rng.randint(0, 12)):
        n0, n1 = rng.choice([0, 1, 7, 300]), rng.choice([0, 1, 5, 90])
        f0, f1 = (sum(rng.random() < p for _ in range(n)) for n, p in ((n0, p0), (n1, p1)))
        looks.append((n0, f0, n1, f1))
        tests.look(Counts(n0, f0, n1, f1))
    found = weigh_looks(rule_of(given), looks)

    assert found.worse == pytest.approx(tests.log_worse, abs=CLOSE)
    assert found.not_worse == pytest.approx(tests.log_not_worse, abs=CLOSE)
    assert tests.final() in found.verdicts()


@given(SEEDS)
def test_the_published_rule_says_what_the_service_says(seed: int) -> None:
    rng = random.Random(seed)
    given, order = thresholds(rng), outcomes(rng)
    tests = ThresholdRule(given)
    for treated, failed in order:
        tests.add(treated=treated, failed=failed)
    said = threshold(rule_of(given), ((1, failed) for treated, failed in order if treated))
    assert said == tests.final()


@given(
    st.floats(1e-4, 1 - 1e-4), st.floats(1e-4, 1 - 1e-4), st.floats(0.01, 0.9), st.floats(0.05, 60)
)
def test_the_nearest_point_of_the_null_is_found(
    p0: float, p1: float, delta: float, k: float
) -> None:
    if p1 < p0 + delta:
        mine = nearest(p0, p1, delta, k)
        far = _distance(mine, p0, p1, delta, k)
        assert far == pytest.approx(_distance(project(p0, p1, delta, k), p0, p1, delta, k))
        for step in (-1e-4, 1e-4):
            if 0 < mine + step < 1 - delta:
                assert _distance(mine + step, p0, p1, delta, k) >= far - 1e-12


def _distance(a: float, p0: float, p1: float, delta: float, k: float) -> float:
    def kl(p: float, x: float) -> float:
        return p * math.log(p / x) + (1 - p) * math.log((1 - p) / (1 - x))

    return k * kl(p0, a) + kl(p1, a + delta)


@given(
    st.floats(1e-6, 0.5),
    st.none() | st.floats(1e-9, 1),
    st.booleans(),
    st.none() | st.tuples(st.floats(0, 30), st.floats(1e-9, 0.1)),
)
def test_the_level_is_that_of_one_proof_over_two_slots(
    own: float, taken: float | None, confirms: bool, left: tuple[float, float] | None
) -> None:
    opening = None if left is None else Opening(*left)
    alone = own if taken is None else min(own, taken)
    said = two_slots.alpha(alone, confirms=confirms, opening=opening)
    assert level(own, taken, "second" if confirms else "first", left) == pytest.approx(said)
    assert level(own, taken, "alone", left) == alone


def test_an_order_that_is_another_weighs_something_else() -> None:
    rule = replace(rule_of(Thresholds()), ratio=10.0)
    assert weigh(rule, "ccccTccccT").worse != weigh(rule, "TccccccccT").worse
