"""Runs that were good although nobody knows what they relied on: they close what fired in them."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.solving import check
from ldfi.solver import Explorer
from tests.solver.systems import Set, System, explorer_of, systems

STRATEGIES = ["smallest", "likeliest", "union"]


def explore(
    explorer: Explorer,
    system: System,
    *,
    known: float = 0.0,
    unreached: Set = frozenset(),
    limit: int = 300,
) -> int:
    """Explore to the end with few supports, or none; faults at what is unreached never fire."""
    rng = random.Random(system.seed)
    for count in range(limit):
        faults = explorer.propose()
        if faults is None:
            return count
        names = frozenset(map(str, faults))
        fired = names - unreached
        support = system.run(fired)
        shown = support if rng.random() < known else None
        explorer.record(injected=names, succeeded=support is not None, support=shown, fired=fired)
    raise AssertionError(f"no end after {limit} experiments")


@given(
    systems(rich=True),
    st.sampled_from(STRATEGIES),
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([None, 1, 3]),
)
def test_what_fired_and_less_is_closed_and_the_truth_is_found(
    system: System, strategy: str, size: int | None, known: float, cap: int | None
) -> None:
    explorer = explorer_of(system, max_size=size, strategy=strategy, max_union=cap)
    everything = frozenset(system.points)
    if system.run(()) is not None:
        explorer.observe(everything)
    else:
        explorer.record(injected=everything - system.protected, succeeded=None)  # names them
    explore(explorer, system, known=known)
    whole = len(system.points) + len(system.domains)
    assert set(explorer.statement().minimal_failing_sets()) == system.minimal_failing_sets(
        size or whole
    )
    assert explorer.open_count() == 0
    assert check(explorer.certificate().data) == []


@given(
    systems(), st.sampled_from(STRATEGIES), st.integers(1, 3), st.frozensets(st.sampled_from("ab"))
)
def test_faults_that_never_fire_stay_open_and_the_exploration_ends(
    system: System, strategy: str, size: int, unreached: Set
) -> None:
    explorer = Explorer(system.points, max_size=size, strategy=strategy)
    explorer.observe(frozenset(system.points))
    explore(explorer, system, unreached=unreached)
    # What is open has something in it that never fired; what can fire is known
    assert all(each & unreached for each in explorer.open_hypotheses())
    fires = [each for each in system.minimal_failing_sets(size) if not each & unreached]
    assert set(explorer.statement().minimal_failing_sets()) == set(fires)


@given(st.data(), st.sampled_from(STRATEGIES), st.sampled_from([2, None]))
def test_the_exploration_ends_whatever_comes_of_it(
    data: st.DataObject, strategy: str, size: int | None
) -> None:
    explorer = Explorer("abcd", strategy=strategy, max_size=size)
    for _ in range(200):
        proposal = explorer.propose()
        if proposal is None:
            return
        faults = frozenset(map(str, proposal))
        explorer.record(
            injected=faults,
            succeeded=data.draw(st.sampled_from([True, False, None])),
            fired=data.draw(st.sampled_from([None, frozenset(sorted(faults)[:1])])),
        )
    pytest.fail("the exploration did not end")


@given(st.lists(st.frozensets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=4))
def test_a_fault_that_becomes_known_later_was_not_survived_before(survived: list[Set]) -> None:
    explorer = Explorer("abcdef", max_size=2)
    for each in survived:
        explorer.record(injected=each, succeeded=True)
    assert explorer.judge({"x"}) == "open"
    explorer.observe({"x"}, failed=frozenset("abcdef"))
    truth = [
        frozenset(each)
        for size in (1, 2)
        for each in itertools.combinations("abcdefx", size)
        if not any(set(each) <= one for one in survived) and "x" in each
    ]
    smallest = {each for each in truth if not any(other < each for other in truth)}
    assert set(explorer.open_hypotheses()) == smallest


@pytest.mark.parametrize("size", [2, 3, None])
def test_sixty_points_without_a_support_are_few_experiments(size: int | None) -> None:
    points = [f"p{number:02}" for number in range(60)]
    failing = [{"p07"}, {"p11"}, {"p23"}, {"p31", "p42"}, {"p50", "p57"}]
    explorer = Explorer(points, max_size=size, time_limit=2.0)
    explorer.observe(points)
    while (faults := explorer.propose()) is not None:
        bad = next((each for each in failing if each <= faults), None)
        explorer.record(injected=faults, succeeded=bad is None, blame=bad)
        assert explorer.experiments <= 25
    assert {frozenset(map(str, each)) for each in explorer.findings} == set(map(frozenset, failing))
