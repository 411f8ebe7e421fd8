"""Hitting sets, hypotheses by SAT, costs and time limits, against brute force."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.solver import Explorer, InvalidRecord
from ldfi.solver.bits import mask_of
from ldfi.solver.branch import HittingSets
from ldfi.solver.deadline import Deadline
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.sat import SatSolver
from tests.solver.systems import System, explore, explorer_of, systems

FAMILIES = st.lists(st.frozensets(st.integers(0, 7), min_size=1), max_size=7)


def brute_force(sets: list[frozenset[int]], max_size: int) -> set[frozenset[int]]:
    found: set[frozenset[int]] = set()
    for size in range(max_size + 1):
        for each in map(frozenset, itertools.combinations(range(8), size)):
            if all(each & one for one in sets) and not any(small <= each for small in found):
                found.add(each)
    return found


@given(FAMILIES, st.integers(0, 8), st.one_of(st.none(), st.integers(0, 3)))
def test_branching_lists_each_minimal_hitting_set_once(
    sets: list[frozenset[int]], max_size: int, seed: int | None
) -> None:
    masks = [mask_of(each) for each in sets]
    hits = {e: mask_of(p for p, each in enumerate(sets) if e in each) for e in range(8)}
    rng = None if seed is None else random.Random(seed)
    found = list(HittingSets(masks, hits, max_size, rng=rng))
    assert len(found) == len(set(found))
    assert set(found) == {mask_of(each) for each in brute_force(sets, max_size)}


def snapshot(explorer: Explorer) -> Hypotheses:
    return explorer._now()


@given(systems(rich=True), st.lists(st.frozensets(st.sampled_from("abXY"))), st.integers(1, 4))
def test_sat_finds_a_smallest_hypothesis_while_the_evidence_grows(
    system: System, tries: list[frozenset[str]], max_size: int
) -> None:
    # Given one solver that follows an exploration
    explorer = explorer_of(system, max_size=max_size)
    sat = SatSolver()
    for faults in [frozenset[str](), *tries]:
        support = system.run(faults)
        if support is not None:
            explorer.observe(support, failed=faults)
        else:
            explorer.record(injected=faults, succeeded=False)
        # Then at every moment it agrees with the list of all
        now = snapshot(explorer)
        listed = sorted(each.bit_count() for each in now.minimal())
        with Deadline(None) as deadline:
            answer = sat.smallest(now, deadline)
        assert answer.optimal
        if answer.hypothesis is None:
            assert not listed
        else:
            assert answer.hypothesis.bit_count() == listed[0]
            assert now.is_open(answer.hypothesis)


@given(systems(), st.data(), st.integers(1, 3))
def test_all_strategies_find_the_same(system: System, data: st.DataObject, max_size: int) -> None:
    found = []
    for strategy in ("smallest", "likeliest", "union"):
        cap = data.draw(st.sampled_from([None, 1, 2]))
        explorer = Explorer(max_size=max_size, strategy=strategy, max_union=cap)
        support = system.run(())
        assert support is not None
        explorer.observe(support)
        explore(explorer, system)
        found.append(explorer.findings)
    assert found[0] == found[1] == found[2]


@given(FAMILIES.filter(bool), st.lists(st.integers(1, 9), min_size=8, max_size=8))
def test_with_costs_the_cheapest_hypothesis_is_proposed(
    sets: list[frozenset[int]], costs: list[int]
) -> None:
    explorer = Explorer(
        max_size=None, strategy="smallest", costs=dict(enumerate(costs)), deterministic=True
    )
    for each in sets:
        explorer.observe(each)
    proposal = explorer.propose()
    assert proposal is not None
    cheapest = min(sum(costs[e] for e in each) for each in brute_force(sets, 8))
    assert sum(costs[int(str(e))] for e in proposal) == cheapest


def test_a_time_limit_holds_and_the_answer_says_so() -> None:
    # Given an instance whose smallest hypotheses take minutes to prove
    rng = random.Random(1)
    explorer = Explorer(strategy="smallest", max_size=None, time_limit=0.3, deterministic=True)
    for _ in range(400):
        explorer.observe(rng.sample(range(60), 6))
    # When a hypothesis is asked for
    proposal = explorer.propose()
    # Then there is one, minimal but not proved to be smallest
    assert proposal is not None
    assert not explorer.optimal


def test_misuse_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="unknown"):
        Explorer(strategy="guess")
    with pytest.raises(InvalidRecord, match="max_size"):
        Explorer(max_size=0)
    with pytest.raises(InvalidRecord, match="max_union"):
        Explorer(max_union=0)
    with pytest.raises(InvalidRecord, match="not positive"):
        Explorer(costs={"a": 0})
    with pytest.raises(InvalidRecord, match="empty exclusion"):
        Explorer(exclusions=[()])
    with pytest.raises(InvalidRecord, match=r"'union' learns nothing .* take another strategy"):
        Explorer(monotone=False)
    with pytest.raises(InvalidRecord, match="no support"):
        Explorer().record(injected={"a"}, succeeded=False, support={"b"})
