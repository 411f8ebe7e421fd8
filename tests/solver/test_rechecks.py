"""Re-checks: which sets are drawn, and that the bound they give covers the truth."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest

from ldfi.checker.verdict_meaning import Meaning
from ldfi.solver import Explorer

FAULTS = tuple("abcdefgh")
SETS = [frozenset(each) for size in (1, 2) for each in combinations(FAULTS, size)]
RECHECKS = 12


class Odd:
    """A system in which faults may help: what fails by itself may be survived beside another."""

    def __init__(self, rng: random.Random) -> None:
        share = rng.uniform(0, 0.5)
        self.harmful = [each for each in SETS if rng.random() < share]
        self.helping = {each: rng.choice(FAULTS) for each in FAULTS if rng.random() < 0.6}

    def fails(self, failed: frozenset[str]) -> bool:
        gone = {each for each in failed if self.helping.get(each) not in failed - {each}}
        return any(each <= gone for each in self.harmful)


def explored(system: Odd, seed: int) -> Explorer:
    explorer = Explorer(FAULTS, max_size=2, strategy="union", seed=seed)
    explorer.observe(FAULTS)
    while (drawn := explorer.propose()) is not None:
        tried(explorer, system, frozenset(map(str, drawn)))
    return explorer


def tried(explorer: Explorer, system: Odd, faults: frozenset[str]) -> None:
    failed = system.fails(faults)
    support = None if failed else frozenset(FAULTS) - faults
    explorer.record(injected=faults, succeeded=not failed, support=support)


def test_the_bound_covers_the_truth_in_nineteen_of_twenty_systems_and_more() -> None:
    rng, covered, wrong, systems = random.Random(3), 0, 0, 120
    for seed in range(systems):
        system = Odd(rng)
        explorer = explored(system, seed)
        before = {each for each in SETS if explorer.judge(each) == "safe"}
        untried = before - {frozenset(map(str, each)) for each in explorer._rechecks.tried}
        for _ in range(RECHECKS):
            drawn = explorer.recheck()
            if drawn is not None:
                tried(explorer, system, frozenset(map(str, drawn)))
        bad = sum(map(system.fails, untried))
        wrong += bad > 0
        bound = Meaning.of(explorer.certificate().data, ()).presumed
        assert bound is not None
        covered += bad <= bound * len(untried)
    assert wrong > systems / 4  # there is something to cover
    assert covered >= 0.95 * systems


@pytest.mark.parametrize("single", [True, False])
def test_single_faults_come_first_and_either_sort_is_drawn_evenly(*, single: bool) -> None:
    found: Counter[frozenset[str]] = Counter()
    for seed in range(400):
        explorer = Explorer(FAULTS, max_size=2, seed=seed)
        explorer.observe(("a",))
        drawn = explorer.recheck()
        assert drawn is not None
        assert len(drawn) == 1
        if not single:
            explorer.record(injected=drawn, succeeded=True, support=("a",))
            drawn = explorer.recheck()
            assert drawn is not None
            assert len(drawn) == 2
        found[frozenset(map(str, drawn))] += 1
    kinds = 7 if single else 21  # of b to h
    assert len(found) == kinds
    assert max(found.values()) < 2.5 * 400 / kinds


def test_where_one_sort_was_not_tried_nothing_is_said_of_all() -> None:
    explorer = Explorer(FAULTS, max_size=2)
    explorer.observe(("a",))
    for fault in FAULTS[1:]:
        explorer.record(injected={fault}, succeeded=True, support=("a",))
    assert Meaning.of(explorer.certificate().data, ()).presumed == 1.0
    explorer = Explorer(FAULTS, max_size=1)
    explorer.observe(("a",))
    for fault in FAULTS[1:]:
        explorer.record(injected={fault}, succeeded=True, support=("a",))
    found = Meaning.of(explorer.certificate().data, ()).presumed
    assert found == pytest.approx(1 - 0.05 ** (1 / 7))
