"""The lower bound is one, by brute force; it is quick; and it is never nothing without a reason."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.solver import Explorer
from ldfi.solver.bits import mask_of
from ldfi.solver.covering import most_at_once, schoenheim
from tests.solver.systems import Set, System, explore, explorer_of, systems


def fewest(system: System, size: int, shown: list[Set]) -> int:
    """Count the experiments that one would need who knows the answer, by trying everything.

    ``shown``: the supports of what happened by itself.
    """
    variables = [*system.points, *system.domains]
    safe = [
        system.expand(each)
        for count in range(size + 1)
        for each in map(frozenset, itertools.combinations(variables, count))
        if system.admissible(each) and not system.fails(each)
    ]
    needed = [each for each in safe if all(support & each for support in shown)]
    supports = [each for each in system.supports if not each & system.down]
    good = next(
        count
        for count in range(len(supports) + 1)
        if any(
            all(any(not one & each for one in chosen) for each in needed)
            for chosen in itertools.combinations(supports, count)
        )
    )
    exact = {system.expand(each) for each in system.minimal_failing_sets(size)}
    return len([each for each in exact if not any(other < each for other in exact)]) + good


@given(systems(rich=True), st.integers(1, 3), st.booleans(), st.integers(0, 12))
def test_no_strategy_needs_less_whatever_is_known_so_far(
    system: System, size: int, to_the_end: bool, steps: int
) -> None:
    explorer = explorer_of(system, max_size=size)
    support = system.run(())
    shown = []
    if support is not None:
        explorer.observe(support)
        shown.append(support)
    if to_the_end:
        explore(explorer, system, blame="right")
    for _ in range(0 if to_the_end else steps):
        faults = frozenset(map(str, explorer.propose() or ()))
        if not faults:
            break
        good = system.run(faults)
        explorer.record(injected=faults, succeeded=good is not None, support=good)
    # Then the bound is no more than what one would need who knows the answer
    assert explorer.statement().lower_bound().total <= fewest(system, size, shown)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3))
def test_so_many_blocks_at_least_cover(points: int, largest: int, size: int) -> None:
    size, largest = min(size, points), min(largest, points)
    blocks = [mask_of(each) for each in itertools.combinations(range(points), largest)]
    small = [mask_of(each) for each in itertools.combinations(range(points), size)]
    count = schoenheim(points, largest, size)
    if largest < size:
        assert count == 0
        return
    # One block fewer does not cover, as far as that can be tried
    if count > 1 and len(blocks) ** (count - 1) < 50_000:
        for chosen in itertools.combinations(blocks, count - 1):
            assert any(all(each & ~block for block in chosen) for each in small)


@given(st.lists(st.frozensets(st.integers(0, 7), min_size=1), max_size=8))
def test_no_more_survive_at_once(failing: list[frozenset[int]]) -> None:
    sets = list(map(mask_of, failing))
    most = max(
        (each.bit_count() for each in range(256) if not any(f & each == f for f in sets)),
        default=0,
    )
    assert most_at_once(255, sets) == most


def known(points: list[str], failing: list[Set], size: int) -> Explorer:
    """Know all of it, without the work of finding it out."""
    explorer = Explorer(points, max_size=size)
    explorer.observe(points)
    for each in failing:
        explorer.record(injected=each, succeeded=False)
    while (faults := explorer.propose()) is not None:
        survived = not any(each <= faults for each in failing)
        support = set(points) - faults if survived else None
        explorer.record(injected=faults, succeeded=survived, support=support)
    return explorer


def quorums(shards: int) -> tuple[list[str], list[Set]]:
    replicas = [[f"{shard}{number}" for number in range(5)] for shard in range(shards)]
    lost = [frozenset(each) for one in replicas for each in itertools.combinations(one, 3)]
    return [each for one in replicas for each in one], lost


@pytest.mark.parametrize(("shards", "size"), [(3, 3), (4, 3), (5, 3), (5, 2)])
def test_quorums_are_bounded_in_no_time(shards: int, size: int) -> None:
    explorer = known(*quorums(shards), size)
    began = time.process_time()
    bound = explorer.statement().lower_bound()
    assert time.process_time() - began < 2
    assert bound.failing == (10 * shards if size == 3 else 0)
    assert bound.good >= (8 if size == 2 else 10)


def test_twelve_pairs_at_size_four_are_bounded_in_no_time() -> None:
    points = [f"{number}{side}" for number in range(12) for side in "ab"]
    pairs = [frozenset({f"{number}a", f"{number}b"}) for number in range(12)]
    explorer = Explorer(points, max_size=4, time_limit=1.0)
    explorer.observe(points)
    for pair in pairs:
        explorer.record(injected=pair, succeeded=False)
        for each in pair:
            explorer.record(injected={each}, succeeded=True, support=set(points) - {each})
    began = time.process_time()
    bound = explorer.statement().lower_bound()
    assert time.process_time() - began < 2
    assert bound.failing == 12
    assert bound.total == explorer.statement().lower_bound().total


def test_where_all_that_fails_is_larger_the_bound_is_not_nothing() -> None:
    # Given a service of which any three replicas of five may not be lost, explored for pairs
    explorer = known(*quorums(1), 2)
    bound = explorer.statement().lower_bound()
    # Then nothing of size two fails, and still it takes runs: five points, two at a time
    assert not explorer.findings
    assert bound.good >= schoenheim(5, 2, 2) == 10
    assert not bound.cut_short


def test_one_run_at_least_shows_that_anything_is_survived() -> None:
    explorer = known(["a", "b", "c"], [frozenset({"a"})], 2)
    assert explorer.statement().lower_bound().total == 2


def test_what_happens_by_itself_takes_no_experiment() -> None:
    # Given a request that relied on nothing when its only call failed
    explorer = Explorer(["a", "b"])
    explorer.observe({"a"})
    explorer.observe(frozenset(), failed={"a"})
    assert explorer.statement().lower_bound().total == 0
