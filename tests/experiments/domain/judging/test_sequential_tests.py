from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging import (
    sequential_tests as rules,  # `Tests`, `tests_for`: pytest would collect them
)
from ldfi.experiments.domain.judging.sequential_tests import (
    CURVE_POINTS,
    MIN_FAILURES,
    REACH,
    SequentialTests,
    ThresholdRule,
    project,
)
from ldfi.experiments.domain.settings import Thresholds

OUTCOMES = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=80)
"""(treated, failed), in the order of arrival."""
IMPOSSIBLE = 1e-300
"""A level that no evidence reaches."""


RATIOS = [1, 4, 10]
"""Control devices for each treated one."""


def run(
    control: float,
    treated: float,
    rng: random.Random,
    thresholds: Thresholds,
    ratio: int = 1,
    blocks: int = 300,
) -> tuple[str, int]:
    """The verdict at these failure rates, and how many treated devices it took."""
    tests = SequentialTests(thresholds, ratio)
    for block in range(1, blocks + 1):
        for _ in range(ratio):
            tests.add(treated=False, failed=rng.random() < control)
        tests.add(treated=True, failed=rng.random() < treated)
        verdict = tests.verdict()
        if verdict is not None:
            return verdict, block
    return "none", blocks


def feed(tests: rules.Tests, outcomes: list[tuple[bool, bool]]) -> rules.Tests:
    for treated, failed in outcomes:
        tests.add(treated=treated, failed=failed)
    return tests


def at_the_end_of_a_block(tests: SequentialTests, past: list[tuple[bool, bool]]) -> SequentialTests:
    feed(tests, [*past, (False, False)])
    if tests._since:
        feed(tests, [(True, False)])
    return tests


def block(control: bool, treated: bool, times: int) -> list[tuple[bool, bool]]:
    return [(False, control), (True, treated)] * times


@pytest.mark.parametrize(("ratio", "failures"), [(1, 7.9), (4, 4.2), (10, 4.0), (20, 3.0)])
def test_plain_harm_hurts_few(ratio: int, failures: float) -> None:
    rng = random.Random(1)
    runs = [run(0.01, 0.95, rng, Thresholds(), ratio) for _ in range(300)]

    assert {verdict for verdict, _ in runs} == {"harmful"}
    assert sum(blocks for _, blocks in runs) / len(runs) < failures


@pytest.mark.parametrize("ratio", RATIOS)
def test_no_effect_is_decided_within_thirty_devices(ratio: int) -> None:
    rng = random.Random(2)
    runs = [run(0.01, 0.01, rng, Thresholds(delta=0.15), ratio) for _ in range(300)]

    assert {verdict for verdict, _ in runs} == {"tolerated"}
    assert sum(blocks for _, blocks in runs) / len(runs) < 30


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_false_alarms_stay_below_alpha_however_often_one_looks(rate: float, ratio: int) -> None:
    rng = random.Random(3)
    patient = Thresholds(alpha_harmful=0.05, alpha_tolerated=IMPOSSIBLE, min_samples=1)
    alarms = sum(run(rate, rate, rng, patient, ratio)[0] == "harmful" for _ in range(300))

    assert alarms / 300 <= 0.05


def test_a_harm_of_delta_is_hardly_ever_called_tolerated() -> None:
    rng = random.Random(4)
    runs = [run(0.02, 0.27, rng, Thresholds())[0] for _ in range(300)]

    assert runs.count("tolerated") / len(runs) <= 0.05


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40),
    st.integers(1, 6),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.05, 0.9),
)
def test_after_any_past_the_next_block_gains_nothing_on_average_under_its_null(
    past: list[tuple[bool, bool]], k: int, x: float, y: float, delta: float
) -> None:
    """Given any outcomes so far, over all outcomes of the next block: exact, not simulated."""
    thresholds = Thresholds(IMPOSSIBLE, IMPOSSIBLE, delta)
    no_worse = (max(x, y), min(x, y))
    worse_by_delta = (low := x * (1 - delta), low + delta + y * (1 - delta - low))

    growth = {"worse": 0.0, "not worse": 0.0}
    for bad, treated in product(range(k + 1), [False, True]):
        tests = at_the_end_of_a_block(SequentialTests(thresholds, ratio=6), past)
        before = tests.log_worse, tests.log_not_worse
        feed(tests, [(False, number < bad) for number in range(k)] + [(True, treated)])
        for name, (p0, p1), gain in (
            ("worse", no_worse, tests.log_worse - before[0]),
            ("not worse", worse_by_delta, tests.log_not_worse - before[1]),
        ):
            chance = math.comb(k, bad) * p0**bad * (1 - p0) ** (k - bad)
            growth[name] += chance * (p1 if treated else 1 - p1) * math.exp(gain)

    assert growth["worse"] <= 1 + 1e-9
    assert growth["not worse"] <= 1 + 1e-9


def test_trouble_that_comes_and_goes_in_both_arms_is_no_effect() -> None:
    """Bursts: outcomes are alike within a moment, and differ from one to the next."""
    rng = random.Random(5)
    alarms = 0
    for _ in range(300):
        tests = SequentialTests(
            Thresholds(alpha_harmful=0.05, alpha_tolerated=IMPOSSIBLE, min_samples=1), ratio=2
        )
        for _ in range(60):
            failing = rng.random() < 0.1
            arms = [rng.random() < 1 / 3 for _ in range(9)]  # by chance, so one lags behind
            feed(tests, [(treated, failing and rng.random() < 0.9) for treated in arms])
        alarms += tests.verdict() == "harmful"

    assert alarms / 300 <= 0.05


def test_a_block_holds_the_controls_nearest_in_time() -> None:
    far = [(False, True)] * 50
    near = [(False, False)] * (REACH * 2)
    treated = [(True, True)]

    assert feed(SequentialTests(ratio=2), far + near + treated).log_worse == pytest.approx(
        feed(SequentialTests(ratio=2), near + treated).log_worse
    )


def test_of_treated_outcomes_without_control_only_the_last_waits() -> None:
    waited = feed(SequentialTests(), [(True, True), (True, False), (False, False)])

    assert waited.log_worse == feed(SequentialTests(), [(False, False), (True, False)]).log_worse


def test_one_failure_is_never_harm() -> None:
    hasty = Thresholds(alpha_harmful=0.9, alpha_tolerated=IMPOSSIBLE)
    once = feed(SequentialTests(hasty, 20), [(False, False)] * 60 + [(True, True)])

    assert once.log_worse > -math.log(0.9)
    assert once.verdict() is None
    again = feed(once, [(False, False)] * 60 + [(True, True)] * (MIN_FAILURES - 1))
    assert again.verdict() == "harmful"


@given(st.lists(st.booleans(), max_size=60))
def test_treated_devices_alone_decide_nothing(failures: list[bool]) -> None:
    tests = feed(SequentialTests(), [(True, failed) for failed in failures])

    assert tests.verdict() is None
    assert tests.final() == "inconclusive"


@given(OUTCOMES, st.integers(1, 20))
def test_nothing_is_tolerated_before_enough_were_treated(
    outcomes: list[tuple[bool, bool]], min_samples: int
) -> None:
    thresholds = Thresholds(IMPOSSIBLE, 0.5, min_samples=min_samples)
    tests = feed(SequentialTests(thresholds), outcomes)

    treated = sum(treated for treated, _ in outcomes)
    if min(treated, len(outcomes) - treated) < min_samples:
        assert tests.verdict() is None
        assert tests.final() == "inconclusive"


@given(OUTCOMES)
def test_waiting_for_samples_changes_no_evidence(outcomes: list[tuple[bool, bool]]) -> None:
    thresholds = Thresholds(IMPOSSIBLE, IMPOSSIBLE)
    hasty = feed(SequentialTests(replace(thresholds, min_samples=1)), outcomes)
    patient = feed(SequentialTests(replace(thresholds, min_samples=1_000)), outcomes)

    assert hasty.log_worse == patient.log_worse
    assert hasty.log_not_worse == patient.log_not_worse


def test_a_threshold_crossed_early_does_not_decide_when_the_rest_contradicts_it() -> None:
    thresholds = Thresholds(IMPOSSIBLE, alpha_tolerated=0.5, min_samples=20)
    early = block(control=False, treated=False, times=10)

    hasty = feed(SequentialTests(replace(thresholds, min_samples=1)), early)
    assert hasty.verdict() == "tolerated"
    tests = feed(SequentialTests(thresholds), early + block(False, True, 30))
    assert tests.verdict() != "tolerated"


@pytest.mark.parametrize(
    ("tests", "start", "verdict"),
    [
        (SequentialTests, block(control=False, treated=True, times=12), "harmful"),
        (ThresholdRule, block(control=False, treated=True, times=12), "harmful"),
    ],
)
@given(later=OUTCOMES)
def test_harm_stays_what_it_is(
    tests: type[SequentialTests | ThresholdRule],
    start: list[tuple[bool, bool]],
    verdict: str,
    later: list[tuple[bool, bool]],
) -> None:
    decided = feed(tests(), start)
    evidence = decided.log_worse, decided.log_not_worse, decided.curve

    feed(decided, later)

    assert decided.verdict() == decided.final() == verdict
    assert (decided.log_worse, decided.log_not_worse, decided.curve) == evidence


def test_tolerated_is_said_of_all_who_came() -> None:
    tests = feed(SequentialTests(), block(control=False, treated=False, times=30))
    assert tests.verdict() == "tolerated"
    feed(tests, block(control=False, treated=True, times=12))
    assert tests.final() != "tolerated"


def test_each_rule_has_its_tests() -> None:
    assert rules.tests_for("sequential", Thresholds(delta=0.1)) == SequentialTests(
        Thresholds(delta=0.1)
    )
    assert rules.tests_for("threshold", Thresholds(min_samples=3)) == ThresholdRule(
        Thresholds(min_samples=3)
    )


@given(OUTCOMES)
def test_without_evidence_enough_the_end_is_inconclusive(outcomes: list[tuple[bool, bool]]) -> None:
    tests = feed(SequentialTests(Thresholds(IMPOSSIBLE, IMPOSSIBLE)), outcomes)

    assert tests.verdict() is None
    assert tests.final() == "inconclusive"


@given(st.integers(0, 1_000), st.randoms(use_true_random=False))
def test_the_curve_is_bounded_and_ends_at_the_evidence(blocks: int, rng: random.Random) -> None:
    tests = SequentialTests(Thresholds(IMPOSSIBLE, IMPOSSIBLE))
    for _ in range(blocks):
        feed(tests, block(rng.random() < 0.3, rng.random() < 0.3, 1))
    curve = tests.curve

    assert len(curve) <= CURVE_POINTS + 1
    assert curve[0] == (0, 0.0, 0.0)
    assert curve[-1][0] == blocks
    assert curve[-1][1] * math.log(10) == pytest.approx(tests.log_worse)
    assert curve[-1][2] * math.log(10) == pytest.approx(tests.log_not_worse)
    assert [point[0] for point in curve] == sorted({point[0] for point in curve})


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(0.05, 0.9), st.floats(0.01, 50))
def test_the_projection_is_the_nearest_point(p0: float, p1: float, delta: float, k: float) -> None:
    def divergence(a: float) -> float:
        b = a + delta
        return (
            k * p0 * math.log(p0 / a)
            + k * (1 - p0) * math.log((1 - p0) / (1 - a))
            + p1 * math.log(p1 / b)
            + (1 - p1) * math.log((1 - p1) / (1 - b))
        )

    best = divergence(project(p0, p1, delta, k))
    steps = [i / 500 * (1 - delta) for i in range(1, 500)]

    assert all(best <= divergence(a) * (1 + 1e-9) + 1e-9 for a in steps)


@given(
    st.integers(0, 100_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.integers(0, 100_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.floats(0.01, 0.99),
)
def test_the_projection_is_found_to_the_last_digits(
    control: tuple[int, int], treated: tuple[int, int], delta: float
) -> None:
    p0, p1 = ((failed + 0.18) / (n + 0.36) for n, failed in (control, treated))

    def slope(a: float) -> float:
        b = a + delta
        return (a - p0) / (a * (1 - a)) + (b - p1) / (b * (1 - b))

    a = project(p0, p1, delta)

    assert 0 < a < 1 - delta
    assert slope(a * (1 - 1e-7)) < 1e-9
    assert slope(1 - delta - (1 - delta - a) * (1 - 1e-7)) > -1e-9


def threshold(failures: int, treated: int, control: int = 0) -> ThresholdRule:
    tests = ThresholdRule()
    feed(tests, [(False, True)] * control)
    feed(tests, [(True, False)] * (treated - failures) + [(True, True)] * failures)
    return tests


@pytest.mark.parametrize(
    ("failures", "treated", "soon", "final"),
    [
        (9, 9, None, "inconclusive"),
        (0, 9, None, "inconclusive"),
        (0, 0, None, "inconclusive"),
        (10, 10, "harmful", "harmful"),
        (8, 10, "harmful", "harmful"),
        (7, 10, None, "tolerated"),
        (9, 12, None, "tolerated"),  # 75 % is not more than 75 %
        (10, 13, "harmful", "harmful"),
        (0, 100, None, "tolerated"),
    ],
)
def test_the_published_rule(failures: int, treated: int, soon: str | None, final: str) -> None:
    tests = threshold(failures, treated)

    assert tests.verdict() == soon
    assert tests.final() == final


def test_the_published_rule_knows_no_control_group() -> None:
    assert threshold(0, 0, control=50).final() == "inconclusive"
    assert threshold(10, 10, control=50).final() == "harmful"


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha_harmful": 0.0},
        {"alpha_harmful": 1.0},
        {"alpha_tolerated": -0.1},
        {"delta": 1.5},
        {"min_samples": 0},
    ],
)
def test_thresholds_that_cannot_be_say_which_value_is_wrong(wrong: dict[str, float]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        replace(Thresholds(), **wrong)  # type: ignore[arg-type]
