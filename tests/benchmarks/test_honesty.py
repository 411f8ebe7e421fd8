"""The benchmark of honesty: its bounds are exact, and it would notice a dishonest verdict."""

from __future__ import annotations

import random

import pytest

from benchmarks.honest_experiments import Ended, run
from benchmarks.honest_worlds import ended
from benchmarks.honesty import EFFECT, SKIES, cells, tables_of, targets_of, upper
from benchmarks.weather import Sky
from ldfi.experiments.domain.judging.verdict import Verdict

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("count", "total", "bound"),
    [(0, 1_000, 1 - 0.05**0.001), (0, 10, 1 - 0.05**0.1), (1, 10, 0.394163), (10, 10, 1.0)],
)
def test_the_bound_is_that_of_clopper_and_pearson(count: int, total: int, bound: float) -> None:
    """For none in n it is 1 - 0.05^(1/n); one of ten is in their tables."""
    assert upper(count, total) == pytest.approx(bound, abs=1e-5)


def measured(verdict: Verdict) -> set[str]:
    """Which targets are missed if everything ended like that."""
    every = [Ended(verdict, "evidence")]
    targets = targets_of(tables_of({cell: every * cell.count for cell in cells(0.01)}))
    assert {frozenset(each) for each in targets.values()} == {frozenset({"value", "target", "met"})}
    return {name for name, each in targets.items() if not each["met"]}


def test_whatever_is_wrong_misses_its_target() -> None:
    wrong = measured("harmful")
    assert {f"harmful: {weather}" for weather in SKIES} <= wrong
    assert {f"findings: {weather}" for weather in SKIES} <= wrong
    assert any(name.startswith("tolerated: calm") for name in wrong)
    blind = measured("tolerated")
    assert "tolerated: half crash" in blind
    assert "found: devices, thousandth level" in blind


@pytest.mark.parametrize("counted", [False, True])
def test_the_service_and_the_simulation_end_alike(counted: bool) -> None:
    for sky, verdict in (
        (Sky(0.01, counted=counted), "tolerated"),
        (Sky(EFFECT.rate, control=EFFECT.control, counted=counted), "harmful"),
    ):
        assert run(sky, random.Random(1)).verdict == verdict
        assert [each.verdict for each in ended(sky, random.Random(1), 1)] == [verdict]
