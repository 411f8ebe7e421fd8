"""Silence: how often equal losses are held against a verdict, and that unequal ones are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging.comparison import more
from ldfi.experiments.domain.judging.reach import Reach
from ldfi.experiments.domain.judging.silence import DOUBTED, Heard, RollCall, silence
from ldfi.experiments.domain.judging.verdict import Verdict

DELTA = 0.25
VERDICTS: tuple[Verdict, ...] = ("harmful", "tolerated")


def refused(heard: Heard, verdict: Verdict) -> bool:
    return silence(heard, DELTA, verdict) is not None


def tables(treated: int, enrolled: int, lost: float) -> Iterator[tuple[float, Heard]]:
    """Everything that may come of equal losses, and how likely it is."""
    for k in range(treated + 1):
        for n in range(enrolled + 1):
            chance = float(math.comb(treated, k) * math.comb(enrolled, n))
            chance *= lost ** (k + n) * (1 - lost) ** (treated + enrolled - k - n)
            yield chance, Heard(k, treated, n, enrolled)


@pytest.mark.parametrize("lost", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("treated", [14, 26, 50])
def test_equal_losses_hardly_ever_cost_a_verdict(treated: int, lost: float) -> None:
    """Exact, over all tables: of a hundred tolerated ones three are refused at most."""
    wrong = dict.fromkeys(VERDICTS, 0.0)
    for chance, heard in tables(treated, 2 * treated, lost):
        for verdict in VERDICTS:
            wrong[verdict] += chance * refused(heard, verdict)
    assert wrong["tolerated"] < 0.03
    assert wrong["harmful"] < 0.001


@pytest.mark.parametrize("verdict", VERDICTS)
def test_plainly_unequal_losses_are_named_whichever_arm_has_them(verdict: Verdict) -> None:
    for heard in (Heard(20, 40, 8, 400), Heard(0, 40, 200, 400)):
        said = silence(heard, DELTA, verdict)
        assert said is not None
        assert f"{heard.lost} of {heard.treated} treated devices never reported" in said
        assert f"{heard.awaited} of {heard.enrolled} in control" in said


def test_fewer_silent_in_treatment_hide_no_harm() -> None:
    """What control lost may have been failures: that makes *tolerated* no easier."""
    some = Heard(4, 50, 91, 419)
    assert not refused(some, "tolerated")
    assert refused(Heard(25, 86, 91, 600), "tolerated")


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_more_is_fishers_exact_test_one_sided(total: int, of: int, data: st.DataObject) -> None:
    """Against the definition: every way to draw as many from both together."""
    some = data.draw(st.integers(0, total))
    others = data.draw(st.integers(0, of))
    level = data.draw(st.floats(0.001, 0.5))
    drawn = some + others
    ways = [math.comb(total, k) * math.comb(of, drawn - k) for k in range(drawn + 1)]
    as_many = sum(ways[some:])
    assert more(some, total, others, of, level) == (as_many < level * math.comb(total + of, drawn))


@pytest.mark.parametrize("lost", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("treated", [14, 26, 50])
def test_equal_losses_are_doubted_by_chance_only(treated: int, lost: float) -> None:
    chance = sum(
        chance
        for chance, heard in tables(treated, 2 * treated, lost)
        if more(heard.lost, heard.treated, heard.awaited or 0, heard.enrolled or 0, DOUBTED)
    )
    assert chance < DOUBTED


def test_the_roll_is_of_those_who_were_let_in_by_then() -> None:
    # Given 26 treated and 200 in control when tolerated was said first, of whom 18 and 160 reported
    reach, roll = Reach(), RollCall()
    roll.call(10.0, 26, 200, calm=True)
    roll.call(11.0, 500, 500, calm=True)
    for number in range(18):
        reach.add("treatment", f"t{number}", int(9e9), f"t{number}", reached=True)
    for number in range(160):
        reach.add("control", f"c{number}", int(9e9), f"c{number}", reached=number % 2 > 0)
    # When others have been let in since, and report at once
    for number in range(100):
        reach.add("treatment", f"u{number}", int(12e9), f"u{number}", reached=True)
    # Then eight of 26 are more than a fifth
    assert roll.doubtful(reach)
    # And where nobody says how many there are in control, nothing can be said
    silent = RollCall()
    silent.call(10.0, 26, 0, calm=True)
    assert not silent.doubtful(reach)
