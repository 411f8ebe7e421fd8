"""Silence: *heard and well* is no rarer, by what brute force and the checker say, too."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.record import BothReports, Reports
from ldfi.checker.statistics import heard_and_well
from ldfi.experiments.domain.judging.comparison import more
from ldfi.experiments.domain.judging.missing_reports import (
    RollCall,
    evidence,
    missing_reports,
    reports,
    shown,
    takes,
    too_many,
    weigh,
)
from ldfi.experiments.domain.judging.ordered_outcomes import Ordered
from ldfi.experiments.domain.judging.reachability import Reachability
from ldfi.experiments.domain.judging.sequential_tests import SequentialTests, Verdict
from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.context import Arm

SETTINGS = Settings()
DELTA, BAR = SETTINGS.delta, -math.log(SETTINGS.alpha_tolerated)
VERDICTS: tuple[Verdict, ...] = ("harmful", "tolerated")


def both(lost: int, treated: int, awaited: int, enrolled: int) -> BothReports:
    """All who were heard of reached the point, and were well."""
    heard0, heard1 = enrolled - awaited, treated - lost
    return BothReports(
        Reports(enrolled, heard0, heard0, heard0), Reports(treated, heard1, heard1, heard1)
    )


def binomial(total: int, share: float) -> list[float]:
    return [math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(total + 1)]


@pytest.mark.parametrize("lost", [0.0, 0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(("treated", "control"), [(14, 140), (40, 40), (60, 240)])
def test_silent_crashes_are_seldom_tolerated(lost: float, treated: int, control: int) -> None:
    """Exact, over all tables, at the bound: a share of δ of those who would be well crash."""
    crashed = 1 - (1 - lost) * (1 - DELTA)
    some, many = binomial(control, lost), binomial(treated, crashed)
    total = mean = 0.0
    for unwell, chance in enumerate(some):
        for hurt, also in enumerate(many):
            if chance * also > 1e-12:
                found = weigh(control, unwell, treated, hurt, DELTA)
                mean += chance * also * math.exp(found)
                total += chance * also * (found >= BAR)
    assert mean <= 1 + 1e-6  # it is an e-value
    assert total <= SETTINGS.alpha_tolerated


def looks(rng: random.Random, lost: float, crash: float) -> Iterator[tuple[int, int, int, int]]:
    """Totals after each treated device, with as many controls as come."""
    control = unwell = hurt = 0
    for treated in range(1, 80):
        for _ in range(rng.choice((2, 3, 4))):
            control, unwell = control + 1, unwell + (rng.random() < lost)
        hurt += rng.random() < 1 - (1 - lost) * (1 - crash)
        yield control, unwell, treated, hurt


@pytest.mark.parametrize("lost", [0.05, 0.4])
def test_nor_does_it_matter_how_often_one_looks(lost: float) -> None:
    rng, runs = random.Random(7), 300
    false = sum(
        any(weigh(*look, DELTA) >= BAR for look in looks(rng, lost, DELTA)) for _ in range(runs)
    )
    assert false <= SETTINGS.alpha_tolerated * runs


@given(
    st.integers(1, 400),
    st.integers(1, 100),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.02, 0.9),
)
def test_the_checker_says_the_same_with_other_arithmetic(
    control: int, treated: int, share: float, of: float, delta: float
) -> None:
    look = (control, int(share * control), treated, int(of * treated))
    assert weigh(*look, delta) == pytest.approx(heard_and_well(delta, look), abs=1e-6)


@given(st.floats(0.02, 0.6), st.floats(0.05, 0.5), st.sampled_from([1.0, 3.0, 10.0]))
def test_so_many_devices_are_enough_no_fewer(share: float, delta: float, ratio: float) -> None:
    wanted = takes(share, delta, 0.05, ratio)
    for treated, enough in ((wanted, True), (wanted - 1, False)):
        control = ratio * treated
        found = weigh(control, share * control, treated, share * treated, delta)
        assert (found >= -math.log(0.05)) == enough


def test_the_more_are_silent_anyway_the_more_it_takes_and_it_is_said() -> None:
    numbers = [takes(share, DELTA, 0.05, 10.0) for share in (0.02, 0.1, 0.3, 0.5, 0.8, 0.99)]
    assert numbers == sorted(numbers)
    assert too_many(0.1, SETTINGS) is None
    said = too_many(0.8, SETTINGS)
    assert said is not None
    assert "80% of the devices" in said
    assert f"let {numbers[4]:,} be treated (members)" in said
    assert too_many(0.8, replace(SETTINGS, members=int(numbers[4]))) is None


@pytest.mark.parametrize("verdict", VERDICTS)
def test_plainly_unequal_losses_are_named_whichever_arm_has_them(verdict: Verdict) -> None:
    for lost, treated, awaited, enrolled in ((20, 40, 8, 400), (0, 40, 200, 400)):
        said = missing_reports(both(lost, treated, awaited, enrolled), SETTINGS, verdict)
        assert said is not None
        assert f"{lost} of {treated} treated devices never reported" in said
        assert f"{awaited} of {enrolled} in control" in said


def test_where_nobody_of_the_treated_is_silent_nothing_else_is_needed() -> None:
    assert evidence(both(0, 14, 100, 400), DELTA) == math.inf
    assert missing_reports(both(0, 14, 30, 400), SETTINGS, "tolerated") is None


def test_a_third_that_crashed_among_many_that_are_silent_is_not_tolerated() -> None:
    """Not significantly more of the treated are silent, and that is not enough."""
    found = both(87, 100, 800, 1000)
    assert not more(87, 100, 800, 1000, 0.025)
    assert missing_reports(found, SETTINGS, "tolerated") is not None
    assert missing_reports(found, SETTINGS, "harmful") is None


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_where_control_is_not_known_every_silent_device_speaks_against(
    treated: int, control: int, data: st.DataObject
) -> None:
    lost = data.draw(st.integers(0, treated))
    found = both(lost, treated, 0, control)
    if shown(found, SETTINGS):
        for awaited in range(0, control, 7):
            assert shown(both(lost, treated, awaited, control + awaited), SETTINGS)


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


def test_the_roll_is_of_those_who_were_let_in_by_then() -> None:
    # Given 26 treated and 200 in control when tolerated was said first, of whom 18 and 160 reported
    reach, roll, order = Reachability(), RollCall(), Ordered(SequentialTests())

    def report(arm: str, name: str, at: float) -> None:
        treated = arm == "treatment"
        reach.add("treatment" if treated else "control", name, int(at), name, reached=True)
        order.take(name, (int(at), name, treated, False))

    roll.call(10.0, 26, 200, calm=True)
    roll.call(11.0, 500, 500, calm=True)
    for number in range(18):
        report("treatment", f"t{number}", 9e9)
    for number in range(160):
        report("control", f"c{number}", 9e9)
    # When others have been let in since, and report at once
    for number in range(500):
        report("treatment", f"u{number}", 12e9)
    # Then eight of 26 are too many
    assert not shown(roll.read(reach, order, SETTINGS), SETTINGS)
    # And of all of them they are not
    assert shown(reports(reach, order, 526, 200), SETTINGS)


@pytest.mark.parametrize(("let_in", "holds"), [(60, True), (300, False)])
def test_what_a_roll_has_shown_holds_unless_all_speak_against_it(
    *, let_in: int, holds: bool
) -> None:
    """Of those let in since, fifty have reported: most of few, or few of many."""
    reach, roll, order = Reachability(), RollCall(), Ordered(SequentialTests())
    roll.call(10.0, 100, 440, calm=True)
    for number in range(400 + 95 + 50):
        arm: Arm = "treatment" if number >= 400 else "control"
        at = 12 if number >= 495 else 9
        name = f"d{number}"
        reach.add(arm, name, int(at * 1e9), name, reached=True)
        order.take(name, (int(at * 1e9), name, arm == "treatment", False))
    assert shown(roll.read(reach, order, SETTINGS), SETTINGS)
    everybody = reports(reach, order, 100 + let_in, 440)
    by = roll.enough(reach, order, everybody, SETTINGS)
    assert (by.treatment.enrolled == 100) == holds
    assert (missing_reports(everybody, SETTINGS, "tolerated", by) is None) == holds


def test_who_was_silent_and_is_heard_of_later_is_silent_and_nothing_else() -> None:
    reach, order = Reachability(), Ordered(SequentialTests())
    reach.add("treatment", "a", 1, "t1", reached=True)
    order.take("a", (1, "t1", True, False))
    reach.add("treatment", "b", 2, "t2", reached=True, again=True)
    order.take("b", (2, "t2", True, False), again=True)
    order.release(math.inf)
    assert reports(reach, order, 2, None).treatment == Reports(2, 1, 1, 1)


@given(
    visits=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.booleans()), max_size=60),
    silent=st.integers(0, 5),
)
def test_a_device_of_several_edges_is_one(visits: list[tuple[int, int, bool]], silent: int) -> None:
    """Each edge counts a device that it lets in, and says that its later requests come again."""
    reach, enrolled, known = Reachability(), silent, set[tuple[int, int]]()
    order = Ordered(SequentialTests(SETTINGS), 0.0)
    for at, (device, edge, twice) in enumerate(visits):
        again = (device, edge) in known
        enrolled += not again
        known.add((device, edge))
        for _ in range(1 + twice):  # a device may contradict itself
            reach.add("treatment", f"d{device}", at, f"{at:032x}", reached=True, again=again)
    devices = {device for device, _, _ in visits}
    told = reports(reach, order, enrolled, None).treatment
    assert (told.enrolled, told.heard) == (len(devices) + silent, len(devices))
