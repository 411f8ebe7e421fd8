from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.domain.verdict import SequentialTests, Thresholds, project


def run(control: float, treated: float, rng: random.Random, blocks: int = 300) -> tuple[str, int]:
    """The verdict at these failure rates, and how many treated devices it took."""
    tests = SequentialTests()
    for block in range(1, blocks + 1):
        tests.add(treated=False, failed=rng.random() < control)
        tests.add(treated=True, failed=rng.random() < treated)
        verdict = tests.verdict()
        if verdict is not None:
            return verdict, block
    return "none", blocks


def test_plain_harm_is_decided_within_a_dozen_devices() -> None:
    rng = random.Random(1)
    runs = [run(0.01, 0.95, rng) for _ in range(300)]

    assert {verdict for verdict, _ in runs} == {"harmful"}
    assert sum(blocks for _, blocks in runs) / len(runs) < 12


def test_no_effect_is_decided_within_twenty_devices() -> None:
    rng = random.Random(2)
    runs = [run(0.01, 0.01, rng) for _ in range(300)]

    assert {verdict for verdict, _ in runs} == {"tolerated"}
    assert sum(blocks for _, blocks in runs) / len(runs) < 20


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_false_alarms_stay_below_alpha_however_often_one_looks(rate: float) -> None:
    rng = random.Random(3)
    alarms = 0
    for _ in range(300):
        tests = SequentialTests(Thresholds(alpha_harmful=0.05, alpha_tolerated=1e-300))
        for _ in range(300):
            tests.add(treated=False, failed=rng.random() < rate)
            tests.add(treated=True, failed=rng.random() < rate)
        alarms += tests.verdict() == "harmful"

    assert alarms / 300 <= 0.05


def test_a_harm_of_delta_is_hardly_ever_called_tolerated() -> None:
    rng = random.Random(4)
    runs = [run(0.02, 0.27, rng)[0] for _ in range(300)]

    assert runs.count("tolerated") / len(runs) <= 0.05


@given(st.lists(st.booleans(), max_size=60))
def test_treated_devices_alone_decide_nothing(failures: list[bool]) -> None:
    tests = SequentialTests()
    for failed in failures:
        tests.add(treated=True, failed=failed)

    assert tests.verdict() is None


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(0.05, 0.9))
def test_the_projection_is_the_nearest_point_of_the_line(
    p0: float, p1: float, delta: float
) -> None:
    def divergence(a: float) -> float:
        b = a + delta
        return (
            p0 * math.log(p0 / a)
            + (1 - p0) * math.log((1 - p0) / (1 - a))
            + p1 * math.log(p1 / b)
            + (1 - p1) * math.log((1 - p1) / (1 - b))
        )

    best = divergence(project(p0, p1, delta))
    steps = [i / 500 * (1 - delta) for i in range(1, 500)]

    assert all(best <= divergence(a) + 1e-9 for a in steps)
