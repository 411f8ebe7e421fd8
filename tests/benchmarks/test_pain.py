"""The planted worlds are what they say, and so are the requests of the simulation."""

from __future__ import annotations

import itertools
import random

import pytest

from benchmarks.pain import CELLS, summed
from benchmarks.planted import Conditions, Planted, Requests, explore, planted
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.blame import blame
from ldfi.testing.programs import Run

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", range(5))
def test_a_world_fails_of_what_was_planted_and_of_nothing_else(seed: int) -> None:
    world = planted(seed, (15, 20))
    faults = [f"error@{point}" for point in world.points]
    tried = [frozenset(each) for n in (1, 2) for each in itertools.combinations(faults, n)]
    failing = {each for each in tried if not Run(each).execute(world.program).good}
    assert {each for each in failing if not any(less < each for less in failing)} == world.truth


def requests(world: Planted, faults: frozenset[str], conditions: Conditions) -> Requests:
    tried = tuple(Fault.parse(each) for each in faults)
    experiment = Experiment("e", "GET /", Predicate.of([]), faults, tried, Settings())
    return Requests(world, experiment, frozenset(world.points), conditions, random.Random(1))


@pytest.mark.parametrize("seed", range(5))
def test_a_misleading_trace_does_not_blame_what_hurts(seed: int) -> None:
    world = planted(seed, (15, 20))
    hurting = min(world.truth, key=lambda each: (len(each), sorted(each)))
    points = frozenset(fault.partition("@")[2] for fault in hurting)
    for right in (True, False):
        made = requests(world, hurting, Conditions(hurt=1.0, blame=float(right)))
        seen = made.draw("treatment", 0.0, 1)
        assert not seen.outcome.success and seen.lineage.fired == hurting
        blamed = frozenset(blame(seen.lineage.tree, frozenset(world.points)))
        assert (blamed == points) is right
        assert made.hurt == 1


def test_one_world_is_found_out() -> None:
    cell = CELLS["no natural failures"]
    told = explore(planted(0, (15, 20)), cell.settings, cell.conditions, 0)
    row = summed("one", [told])
    assert told.confirmed == planted(0, (15, 20)).truth
    assert (row["found"], row["false"]) == (5, 0)
    assert 4 <= row["hurt"] <= told.hurt
