"""The distributions of a comparison: held against brute force, and known values."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.scenarios.replays.distributions import holm, hypergeometric, student
from ldfi.scenarios.replays.intervals import (
    Interval,
    difference_interval,
    quantile,
    quantile_interval,
    ratio_interval,
    share_interval,
)


@given(st.data())
def test_the_chance_of_a_count_is_that_of_all_draws_listed(data: st.DataObject) -> None:
    total = data.draw(st.integers(2, 9))
    drawn, marked = data.draw(st.integers(1, total - 1)), data.draw(st.integers(0, total))
    draws = [sum(each < marked for each in draw) for draw in combinations(range(total), drawn)]
    found = data.draw(st.sampled_from(draws))
    below = sum(each <= found for each in draws) / len(draws)
    above = sum(each >= found for each in draws) / len(draws)
    expected = min(1.0, 2 * min(below, above))
    assert math.isclose(hypergeometric(found, drawn, marked, total), expected, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("statistic", "freedom", "expected"),  # R: 2 * pt(-t, df)
    [(0.0, 5, 1.0), (2.045229642, 29, 0.05), (2.756385904, 29, 0.01), (12.7062047, 1, 0.05)],
)
def test_students_t_is_as_in_tables(statistic: float, freedom: float, expected: float) -> None:
    assert math.isclose(student(statistic, freedom), expected, rel_tol=1e-6)
    assert student(-statistic, freedom) == student(statistic, freedom)
    assert student(math.inf, freedom) == 0.0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 1)), min_size=1, max_size=5))
def test_holm_claims_what_the_closure_of_weighted_bonferroni_does(
    given_: list[tuple[float, float]],
) -> None:
    p_values, weights = [each[0] for each in given_], [each[1] for each in given_]
    every = range(len(given_))

    def rejected(chosen: tuple[int, ...]) -> bool:
        whole = sum(weights[i] for i in chosen)
        return any(p_values[i] <= 0.05 * weights[i] / whole * (1 + 1e-12) for i in chosen)

    subsets = [each for size in range(1, len(given_) + 1) for each in combinations(every, size)]
    expected = [all(rejected(each) for each in subsets if i in each) for i in every]
    found = holm(p_values, weights, 0.05 * (1 + 1e-12))
    assert all(not one or two for one, two in zip(found, expected, strict=True))
    if not any(found):
        assert not rejected(tuple(every))


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_interval_of_a_quantile_holds_it_nineteen_times_in_twenty(share: float) -> None:
    rng, held, runs = random.Random(7), 0, 400
    for _ in range(runs):
        found = quantile_interval(sorted(rng.random() for _ in range(1_000)), share)
        held += found.low <= share <= found.high
        assert found.low <= found.value <= found.high
    assert held >= 0.93 * runs  # 95 % at least; 2 % are three standard deviations' worth of luck


def test_too_few_values_leave_an_interval_open() -> None:
    found = quantile_interval([1.0, 2.0, 3.0], 0.99)
    assert (found.value, found.high) == (3.0, math.inf)
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0


def test_of_values_that_cannot_be_divided_there_is_no_ratio() -> None:
    whole, nothing = Interval(2.0, 1.0, 3.0), Interval(0.0, 0.0, 1.0)
    assert ratio_interval(whole, nothing) is None
    assert ratio_interval(Interval(math.inf, 1.0, math.inf), whole) is None
    same = ratio_interval(whole, whole)
    assert same is not None
    assert same.value == 0.0
    assert same.low < 0 < same.high


@given(st.integers(0, 50), st.integers(1, 50))
def test_the_interval_of_a_share_is_around_it(found: int, more: int) -> None:
    each = share_interval(found, found + more)
    assert 0 <= each.low <= each.value <= each.high <= 1
    apart = difference_interval(each, each)
    assert apart.low <= apart.value == 0 <= apart.high
