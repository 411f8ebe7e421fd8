"""The interval that the benchmark of proxies prints holds the median as often as it says."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.proxy import CONFIDENCE, interval


@pytest.mark.parametrize("many", [6, 9, 12, 15])
def test_the_median_lies_in_the_interval_as_often_as_it_says_and_no_narrower_one_would_do(
    many: int,
) -> None:
    low, high = interval([float(i) for i in range(many)])
    first = int(low)
    assert high == many - 1 - first

    def held(first: int) -> float:
        """Of all ways in which values may fall below or above the true median: the share in which
        the order statistics from ``first`` on enclose it."""
        enclosing = sum(
            first < sum(below) < many - first for below in product((False, True), repeat=many)
        )
        return enclosing / float(2**many)

    assert held(first) >= CONFIDENCE > held(first + 1)


def test_of_few_values_there_is_no_more_than_all_of_them() -> None:
    assert interval([3.0, 1.0, 2.0]) == [1.0, 3.0]
