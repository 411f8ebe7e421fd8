"""The arrays that explorations are compared with are arrays, and what is planted is found."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from benchmarks.covering_arrays import covers, greedy, orthogonal, product
from benchmarks.kinds import KINDS, STATUSES, explore, world


@pytest.mark.parametrize("columns", [2, 6, 7, 20])
def test_a_covering_array_shows_every_pair(columns: int) -> None:
    assert covers(orthogonal(5), 6, 5)
    assert covers(product(columns, 5), columns, 5)
    assert covers(greedy([5] * columns, random.Random(0)), columns, 5)
    assert not covers(orthogonal(5)[1:], 6, 5)


def test_columns_may_have_different_numbers_of_values() -> None:
    levels = [2, 5, 3, 10]
    rows = greedy(levels, random.Random(0))
    for one, other in combinations(range(len(levels)), 2):
        assert len({(row[one], row[other]) for row in rows}) == levels[one] * levels[other]


@pytest.mark.parametrize("alike", [False, True])
def test_five_kinds_cost_little_more_than_one_and_nothing_is_missed(alike: bool) -> None:
    every = STATUSES if alike else KINDS
    one, five = (explore(world(0, 1, kinds, alike=alike), 0) for kinds in (every[:1], every))
    assert (five["missed"], five["extra"], five["complete"]) == (0, 0, True)
    assert int(str(five["experiments"])) <= 2 * int(str(one["experiments"]))
    specific = 0 if alike else 4
    assert int(str(five["failed"])) <= int(str(one["failed"])) + 2 * specific
