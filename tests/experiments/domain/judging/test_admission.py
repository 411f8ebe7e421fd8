"""Admission in stages: a few at first, and more as it becomes known how they have fared."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.admission import (
    FEWEST,
    FIRST,
    FIRST_OF_UNION,
    LEAP,
    MORE,
    WELL,
    first,
    following,
    least_lacking,
    still_lacking,
)
from ldfi.experiments.domain.judging.sequential_tests import SequentialTests
from ldfi.experiments.domain.settings import Settings


def test_a_union_begins_with_one_and_a_possible_finding_with_two() -> None:
    assert (first(1, 2), first(2, 2), first(3, 2)) == (FIRST, FIRST, FIRST_OF_UNION)


@given(st.integers(1, 1_000), st.integers(0, 1_000), st.integers(0, 1_000))
def test_more_are_let_in_but_fewer_after_harm(admitted: int, counted: int, failed: int) -> None:
    counted = min(counted, admitted)
    failed = min(failed, counted)
    total = following(admitted, counted, failed)
    assert total > admitted
    if counted:
        assert total <= max(WELL, following(admitted, counted, 0))
    if counted and 2 * failed >= counted:
        assert total == admitted + 1


def test_a_hundred_take_few_stages_where_nobody_is_hurt() -> None:
    """Each waits until those before have reported, and the window ends."""
    admitted, stages = first(1, 2), 1
    while admitted < 120:
        admitted, stages = following(admitted, admitted, 0), stages + 1
    assert stages <= 8


@given(st.integers(2, 20))
def test_where_one_in_so_many_reaches_the_point_it_takes_hardly_more_stages(one_in: int) -> None:
    admitted, stages = first(1, 2), 1
    while admitted // one_in < 120:
        total = following(admitted, admitted // one_in, 0)
        # never more than the first of all, among whom nobody was hurt, would have been
        assert (total - admitted) / one_in <= max(WELL, admitted / one_in)
        admitted, stages = total, stages + 1
    assert stages <= 14


@given(
    st.lists(st.sampled_from([False, False, False, False, True]), max_size=60),
    st.sampled_from([0.05, 0.15, 0.3]),
    st.sampled_from([1, 2, 10]),
)
def test_tolerated_never_takes_fewer_than_are_said_to_be_lacking(
    hurt: list[bool], delta: float, ratio: int
) -> None:
    settings = Settings(delta=delta)
    tests = SequentialTests(settings, ratio)

    def counts(*, failed: bool) -> None:
        for _ in range(ratio):
            tests.add(treated=False, failed=False)
        tests.add(treated=True, failed=failed)

    for failed in hurt:
        counts(failed=failed)
    lacking = least_lacking(tests.log_not_worse, len(hurt), settings)
    taken = 0
    while tests.verdict() is None and taken < 1_000:
        counts(failed=False)
        taken += 1
    assert tests.verdict() == "harmful" or math.isinf(lacking) or taken >= lacking


@given(st.integers(1, 1_000), st.integers(1, 1_000), st.floats(-5, 500))
def test_no_more_are_let_in_than_are_lacking_and_a_few_always(
    admitted: int, counted: int, lacking: float
) -> None:
    counted = min(counted, admitted)
    more, freely = following(admitted, counted, 0, lacking), following(admitted, counted, 0)
    assert admitted + FEWEST <= more <= freely
    reach = (more - admitted) * (counted + FIRST) / (admitted + FIRST)
    assert more == freely or lacking <= reach < max(FEWEST, lacking) + 1


@given(st.integers(1, 1_000), st.floats(-5, 0.999))
def test_so_many_are_let_in_as_what_is_lacking_takes(admitted: int, shown: float) -> None:
    more = still_lacking(admitted, shown) - admitted
    if shown <= 0:
        assert admitted + more == following(admitted, admitted, 0)
    else:
        assert MORE <= more <= max(MORE, (LEAP - 1) * admitted)
        assert shown < 1 / LEAP or (admitted + more) * shown >= admitted
