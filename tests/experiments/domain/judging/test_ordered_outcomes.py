"""Outcomes out of order: the tests know what they would have known, had nothing been late."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.judging import sequential_tests as judging
from ldfi.experiments.domain.judging.ordered_outcomes import Counted, Ordered
from ldfi.experiments.domain.judging.sequential_tests import SequentialTests, ThresholdRule
from ldfi.experiments.domain.settings import Thresholds

IMPOSSIBLE = 1e-300
THRESHOLDS = (Thresholds(), Thresholds(IMPOSSIBLE, IMPOSSIBLE, min_samples=1))


def fresh(kind: str, thresholds: Thresholds) -> judging.Tests:
    return ThresholdRule(thresholds) if kind == "threshold" else SequentialTests(thresholds, 10.0)


def told(tests: judging.Tests) -> tuple[object, ...]:
    return tests.verdict(), tests.final(), tests.log_worse, tests.log_not_worse, tests.curve


def drawn(rng: random.Random, count: int, control: float, treated: float) -> list[Counted]:
    outcomes = []
    for number in range(count):
        arm = rng.random() < 0.2
        failed = rng.random() < (treated if arm else control)
        outcomes.append((number, f"{number:032x}", arm, failed))
    return outcomes


@pytest.mark.parametrize("kind", ["sequential", "threshold"])
@given(
    st.randoms(use_true_random=False),
    st.integers(0, 400),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(THRESHOLDS),
    st.integers(0, 400),
)
def test_after_any_delays_the_tests_know_what_they_would_in_order(
    kind: str,
    rng: random.Random,
    count: int,
    control: float,
    treated: float,
    thresholds: Thresholds,
    late: int,
) -> None:
    """At every look: held against tests that are fed anew, from nothing, in order."""
    outcomes = drawn(rng, count, control, treated)
    coming = sorted(outcomes, key=lambda each: each[0] + rng.uniform(0, late))
    ordered = Ordered(fresh(kind, thresholds))
    for number, each in enumerate(coming, 1):
        ordered.take(each[1], each)
        if rng.random() < 0.1 or number == count:
            anew = fresh(kind, thresholds)
            for _, _, arm, failed in sorted(coming[:number]):
                anew.add(treated=arm, failed=failed)
            assert ordered.verdict() == anew.verdict()
            assert told(ordered.tests) == told(anew)


@dataclass(slots=True)
class Tallied(SequentialTests):
    """The tests, and how many outcomes they and their copies were given in all."""

    given: list[int] = field(default_factory=lambda: [0])

    def add(self, *, treated: bool, failed: bool, proved: bool = True) -> None:
        """Count, and take it."""
        self.given[0] += 1
        SequentialTests.add(self, treated=treated, failed=failed, proved=proved)


def test_what_comes_a_little_late_does_not_begin_it_all_again() -> None:
    # Given an experiment of a thousand devices, asked for its verdict after each
    tests = Tallied(THRESHOLDS[1], 10.0)
    ordered = Ordered(tests)
    rng = random.Random(1)
    outcomes = drawn(rng, 1_000, 0.1, 0.1)
    # When each is late by as long as twenty requests take
    for each in sorted(outcomes, key=lambda each: each[0] + rng.uniform(0, 20)):
        ordered.take(each[1], each)
        ordered.verdict()
    # Then the work grows with the outcomes, not with their square
    assert tests.given[0] < 60 * len(outcomes)


@given(st.randoms(use_true_random=False), st.integers(1, 60), st.integers(1, 60))
def test_a_device_counts_by_its_first_request(rng: random.Random, count: int, devices: int) -> None:
    """At every look, whichever it reports first; both arms' failures are those of what counts."""
    of = {number: rng.randrange(devices) for number in range(count)}
    outcomes = [
        (number, f"{number:032x}", of[number] % 2 == 0, rng.random() < 0.3)
        for number in range(count)
    ]
    ordered = Ordered(fresh("sequential", THRESHOLDS[1]), 1.0)
    first: dict[int, Counted] = {}
    for each in rng.sample(outcomes, count):
        device = of[each[0]]
        ordered.take(str(device), each)
        first[device] = min(first.get(device, each), each)
        if rng.random() < 0.3:
            anew = fresh("sequential", THRESHOLDS[1])
            for _, _, arm, failed in sorted(first.values()):
                anew.add(treated=arm, failed=failed)
            assert told(ordered.tests) == told(anew)
        for arm in (True, False):
            assert ordered.failures[arm] == sum(
                each[3] for each in first.values() if each[2] == arm
            )


REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 4), st.integers(0, 300), st.floats(0, 8), st.booleans(), st.booleans()
    ),
    max_size=60,
)
"""Device, when it asks (tenths of a second), after how long it reports, whether that is lost, and
whether it failed."""


@given(REQUESTS)
def test_who_counts_once_counts_for_ever(drawn: list[tuple[int, int, float, bool, bool]]) -> None:
    """Where edges say which requests are not the first of their device, and whoever reports does
    so in time: nothing that is fed to the tests is ever taken out again."""
    patience, known = 8.0, set[int]()
    coming, first = list[tuple[float, str, Counted, bool]](), dict[int, str]()
    for number, (device, at, late, lost, failed) in enumerate(sorted(drawn)):
        again = device in known
        known.add(device)
        counted = (at * 10**8, f"{number:032x}", True, failed)
        if not lost:
            coming.append((at / 10 + late, str(device), counted, again))
            first.setdefault(device, counted[1])
    ordered = Ordered(fresh("sequential", Thresholds()), patience)
    seen = set[str]()
    for now, name, counted, again in sorted(coming):
        ordered.release(now)
        ordered.take(name, counted, again=again)
        assert seen <= set(ordered.traces())
        seen = set(ordered.traces())
    ordered.release(math.inf)
    assert seen <= set(ordered.traces()) == set(first.values())
    assert not ordered.owed


@given(st.randoms(use_true_random=False), st.integers(1, 120))
def test_a_worse_outcome_of_a_request_replaces_the_better(rng: random.Random, count: int) -> None:
    outcomes = drawn(rng, count, 0.2, 0.4)
    both = [(each, (*each[:3], True)) for each in outcomes if rng.random() < 0.3]
    worse = {better[1]: bad for better, bad in both}
    arrivals = [*outcomes, *worse.values()]
    rng.shuffle(arrivals)
    ordered, plain = (Ordered(fresh("sequential", THRESHOLDS[1]), 5.0) for _ in range(2))
    for each in arrivals:
        ordered.take(each[1], each)
    for each in outcomes:
        plain.take(each[1], worse.get(each[1], each))
    assert told(ordered.tests) == told(plain.tests)
    assert ordered.failures == plain.failures
    assert ordered.patient
