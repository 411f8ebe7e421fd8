"""The benchmark of request classes, on one small application."""

from __future__ import annotations

import pytest

from benchmarks.classes import CHOSEN, judged, learned, silent
from benchmarks.generated_application import KINDS, Application
from benchmarks.reached import campaign
from ldfi.fit.protocol import chosen
from ldfi.lineage import attributes

pytestmark = pytest.mark.long


def test_two_ways_without_a_name_are_two_varieties() -> None:
    assert silent(seed=4, ways=2, count=200)["equal"]


def test_campaigns_reach_the_points_that_they_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chosen.VARIABLE, CHOSEN)
    for cache in (chosen.chosen, attributes._of_the_asked):
        cache.cache_clear()
    try:
        row = campaign(7, 6_000, seconds=12)
    finally:
        monkeypatch.undo()
        for cache in (chosen.chosen, attributes._of_the_asked):
            cache.cache_clear()
    assert int(str(row["treated"])) >= 20
    assert float(str(row["reached"])) >= 0.9


def test_applications_are_the_same_for_the_same_seed() -> None:
    one, other = Application.of(5), Application.of(5)
    assert [kind.points for kind in one.kinds] == [kind.points for kind in other.kinds]
    assert len({kind.points for kind in one.kinds}) == KINDS
    asked = zip(one.requests(50, 1), other.requests(50, 1), strict=True)
    assert all(a == b for (_, a), (_, b) in asked)


def test_most_kinds_are_classes_after_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chosen.VARIABLE, CHOSEN)
    for cache in (chosen.chosen, attributes._of_the_asked):
        cache.cache_clear()
    try:
        row = judged(learned(Application.of(6), 8_000, seed=1), 1_000, seed=2)
    finally:
        monkeypatch.undo()
        for cache in (chosen.chosen, attributes._of_the_asked):
            cache.cache_clear()
    # After so few the rarest kinds at the busiest address may still be one class
    assert float(str(row["equal"])) >= 0.9
    assert (row["named after somebody"], row["edge and spans differ"]) == (0, 0.0)
