"""The App Boot trees are what they claim to be, and exploring them is cheap."""

from __future__ import annotations

import random
from itertools import combinations
from statistics import mean

import pytest

from tests.solver.appboot import app_boot
from tests.solver.appboot_campaign import campaign


@pytest.mark.parametrize("seed", range(4))
def test_the_planted_failures_are_all_there_are_up_to_size_two(seed: int) -> None:
    app = app_boot(seed)
    failing: list[frozenset[str]] = []
    for size in (1, 2):
        for each in map(frozenset, combinations(app.points, size)):
            if not any(known <= each for known in failing) and not app.run(each).succeeded:
                failing.append(each)
    assert set(failing) == app.minimal_failing_sets
    assert len(failing) == 5


@pytest.mark.parametrize("seed", range(4))
def test_a_support_is_disjoint_from_what_fired_and_blame_is_part_of_it(seed: int) -> None:
    app, rng = app_boot(seed), random.Random(seed)
    for outcome in app.natural(300, rng, 0.05):
        assert not outcome.support & outcome.fired
        assert outcome.blame <= outcome.fired
        assert bool(outcome.blame) == (not outcome.succeeded)


@pytest.mark.parametrize("apps", [3, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("max_size", "blame", "experiments", "failed"),
    [(2, True, 16, 2.2), (3, True, 16, 2.2), (2, False, 50, 5), (3, False, 50, 5)],
)
def test_a_certificate_takes_few_experiments(
    max_size: int, blame: bool, experiments: float, failed: float, apps: int
) -> None:
    campaigns = [
        campaign(app_boot(seed), strategy="union", max_size=max_size, seed=seed, blame=blame)
        for seed in range(apps)
    ]
    assert all(each.all_found and each.certified for each in campaigns)
    assert mean(each.experiments for each in campaigns) <= experiments
    assert mean(each.failed / each.planted for each in campaigns) <= failed
    if blame:
        assert mean(each.experiments / each.bound for each in campaigns) <= 2.0


def test_what_is_left_between_known_pairs_is_tried_first() -> None:
    """Of two pairs that hurt, one of each and one of the other fit into few unions: left for later,
    each took a union of its own, and two more in all."""
    for seed in range(3):
        found = campaign(app_boot(seed), strategy="union", max_size=2, seed=seed, blame=True)
        assert found.experiments == 2 * found.planted + 3
