"""Verdicts on replays: never fixed without proof, never failing because of something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.outline import Outline, Row
from ldfi.scenarios.reproduction import (
    Attempt,
    Reproduction,
    ReproductionVerdict,
    telling,
)

FIRED = (Outline("a", failed=True, fired=("error",)),)
CALM = (Outline("a"),)


def attempt(
    faulty: bool, failure: str | None = None, lineage: tuple[Outline, ...] | None = None
) -> Attempt:
    return Attempt(faulty, "0" * 32, 200, failure, 0.1, lineage)


def judged(*attempts: Attempt, blind: bool = False) -> tuple[ReproductionVerdict, str]:
    return Reproduction(attempts, frozenset({"error@a"}), blind).judged


PLAIN = [attempt(False, None, CALM)] * 2


@pytest.mark.parametrize(
    ("treated", "verdict", "says"),
    [
        ([attempt(True, "status-503", FIRED)] * 2, "fails", "2 of 2 fail with the faults"),
        ([attempt(True, "status-503", FIRED), attempt(True, None, FIRED)], "fails", "1 of 2"),
        ([attempt(True, "status-503")] * 2, "fails", "status-503"),
        ([attempt(True, "status-503", CALM)] * 2, "never-fired", "no fault fired in any of them"),
        ([attempt(True, None, FIRED), attempt(True)], "fixed", "fired in 1 of them"),
        ([attempt(True, None, CALM)] * 2, "never-fired", "no fault fired"),
        ([attempt(True)] * 2, "never-fired", "--listen"),
    ],
)
def test_verdicts(treated: list[Attempt], verdict: ReproductionVerdict, says: str) -> None:
    found, why = judged(*PLAIN, *treated)

    assert found == verdict
    assert says in why


def test_what_fails_anyway_says_nothing_of_the_faults() -> None:
    found, why = judged(attempt(False, "status-404"), attempt(True, "status-404", FIRED))

    assert found == "inconclusive"
    assert "without the faults as well (status-404)" in why


def test_what_fails_more_often_with_the_faults_still_fails() -> None:
    plain = [attempt(False, "timeout"), attempt(False), attempt(False)]

    assert judged(*plain, *[attempt(True, "status-503", FIRED)] * 3)[0] == "fails"


def test_a_failure_that_answers_do_not_show_is_never_called_fixed() -> None:
    found, why = judged(*PLAIN, attempt(True, None, FIRED), blind=True)

    assert found == "inconclusive"
    assert "`expect`" in why


@given(
    st.lists(
        st.builds(
            attempt,
            st.booleans(),
            st.sampled_from([None, "timeout"]),
            st.sampled_from([None, CALM, FIRED]),
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_fixed_takes_proof_and_failing_takes_a_difference(
    attempts: list[Attempt], blind: bool
) -> None:
    result = Reproduction(tuple(attempts), frozenset({"error@a"}), blind)
    verdict, _ = result.judged
    treated = [each for each in attempts if each.faulty]

    if verdict == "fixed":
        assert all(each.failure is None for each in treated)
        assert any(each.lineage == FIRED for each in treated)
        assert not blind
    if verdict == "fails":
        assert any(each.failure and each.lineage != CALM for each in treated)


def test_the_lineages_shown_are_one_that_went_well_and_one_that_failed() -> None:
    result = Reproduction(
        (
            attempt(False, "timeout", FIRED),
            attempt(False, None, CALM),
            attempt(True, None, CALM),
            attempt(True, "status-503", FIRED),
        ),
        frozenset(),
    )

    assert result.rows() == [Row(0, "a", "ok", "error injected")]
    assert Reproduction((attempt(True, None, CALM),), frozenset()).rows() == []


def test_rows_that_are_alike_are_left_out_but_for_those_around_what_differs() -> None:
    rows = [
        Row(0, "a", "ok", "ok"),
        Row(1, "b", "ok", "ok"),
        Row(1, "c", "ok", "ok"),
        Row(2, "d", "ok", "failed"),
        Row(0, "e", "ok", "ok"),
        Row(1, "f", "ok", "ok"),
        Row(0, "g", None, "ok"),
    ]

    assert [row.point for row in telling(rows)] == ["a", "c", "d", "g"]
