"""Admission in stages: a few at first, and more as it becomes known how they have fared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.admission import (
    FIRST,
    FIRST_OF_UNION,
    LEAP,
    WELL,
    first,
    following,
    still_lacking,
)


def test_a_union_begins_with_one_and_a_possible_finding_with_two() -> None:
    assert (first(1, 2), first(2, 2), first(3, 2)) == (FIRST, FIRST, FIRST_OF_UNION)


@given(st.integers(1, 1_000), st.integers(0, 1_000), st.integers(0, 1_000))
def test_more_are_let_in_each_time_and_the_fewer_the_more_were_hurt(
    admitted: int, counted: int, failed: int
) -> None:
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


@given(st.integers(1, 1_000), st.floats(-5, 0.999))
def test_so_many_are_let_in_as_what_is_lacking_takes(admitted: int, shown: float) -> None:
    total, stage = still_lacking(admitted, shown), following(admitted, admitted, 0)
    assert stage <= total <= max(stage, LEAP * admitted)
    if shown <= 0:
        assert total == stage
    elif shown >= 1 / LEAP:
        assert total >= round(admitted / shown)
