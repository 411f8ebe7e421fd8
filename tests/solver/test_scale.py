"""Where there is much to explore: designs, pairs held as bits, quorums, and what interacts."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.solver import Explorer
from ldfi.solver.bits import members
from ldfi.solver.design import design
from ldfi.solver.pairs import Pairs
from ldfi.solver.union_growth import BitCounts, groups
from tests.solver.systems import System, explorer_of, systems


@given(st.integers(3, 150), st.floats(0.06, 0.95))
def test_any_two_groups_of_a_design_are_together_in_a_block(points: int, share: float) -> None:
    largest = max(2, int(points * share))
    count, blocks = design(points, largest)
    for block in blocks:
        assert block.bit_count() * -(-points // count) <= largest
        assert block < 1 << count
    if blocks:
        together = {pair for block in blocks for pair in itertools.combinations(members(block), 2)}
        assert together == set(itertools.combinations(range(count), 2))


@given(st.lists(st.integers(0, 255), max_size=40), st.integers(1, 255))
def test_counts_in_planes_are_counts(added: list[int], among: int) -> None:
    counts = BitCounts()
    for each in added:
        counts.add(each)
    truth = {bit: sum(each >> bit & 1 for each in added) for bit in members(among)}
    most = max(truth.values())
    assert set(members(counts.most(among))) == {bit for bit in truth if truth[bit] == most}


@given(st.dictionaries(st.integers(0, 300), st.integers(0, 500)), st.integers(0, 300))
def test_counts_may_be_given_all_at_once(given_: dict[int, int], more: int) -> None:
    counts = BitCounts(given_)
    counts.add(1 << more)
    truth = Counter(given_)
    truth[more] += 1
    assert set(members(counts.any())) == {each for each in truth if truth[each]}
    assert set(members(counts.most((1 << 301) - 1))) == {
        each for each in truth if truth[each] == max(truth.values())
    }


@given(
    systems(rich=True),
    st.lists(st.frozensets(st.sampled_from("abcdeXY"), max_size=4), max_size=8),
    st.integers(1, 2),
)
def test_pairs_held_as_bits_are_those_that_would_be_listed(
    system: System, tries: list[frozenset[str]], size: int
) -> None:
    explorer = explorer_of(system, max_size=size)
    held = Pairs()
    for faults in [frozenset[str](), *tries]:
        support = system.run(faults)
        if support is not None:
            explorer.observe(support, failed=faults)
        else:
            explorer.record(injected=faults, succeeded=False)
        now = explorer._now()
        listed = list(now.minimal())
        if held.follow(now, ()):
            assert sorted(held) == sorted(listed)
            assert len(held) == len(listed)


def test_sets_that_share_a_fault_are_one_group() -> None:
    assert groups([0b00111, 0b01100, 0b1110000000]) == [(0b01111, 1), (0b1110000000, 2)]


def test_a_quorum_is_learned_from_blame_and_left_in_peace() -> None:
    # Given five services of five replicas, of which three have to answer
    points = [f"{shard}{replica}" for shard in "abcde" for replica in range(5)]
    explorer = Explorer(max_size=2, seed=1)
    explorer.observe(points)
    failed = 0
    while (proposal := explorer.propose()) is not None:
        faults = frozenset(map(str, proposal))
        shards = [{each for each in faults if each[0] == shard} for shard in "abcde"]
        blamed = next((each for each in shards if len(each) >= 3), None)
        failed += blamed is not None
        support = set(points) - faults if blamed is None else None
        explorer.record(injected=faults, succeeded=blamed is None, support=support, blame=blamed)
    # Then each costs three failed experiments, and all pairs are shown by few good ones
    assert failed <= 15
    assert explorer.experiments <= 40
    assert explorer.certificate().complete


def test_a_quorum_is_left_in_peace_by_what_brings_the_blamed_faults_about_too() -> None:
    """A demo found no end: unions with delays failed again and again as the errors they cause."""
    # Given the same, where a late answer is an error too, and it is the error that is blamed
    places = [f"{shard}{replica}" for shard in "abcde" for replica in range(5)]
    points = [f"{kind}@{each}" for kind in ("delay", "error") for each in places]
    explorer = Explorer(max_size=2, seed=1)
    for each in places:
        explorer.imply(f"delay@{each}", f"error@{each}")
    explorer.observe(points)
    failed = 0
    while (proposal := explorer.propose()) is not None and failed <= 15:
        faults = {str(each) for each in proposal}
        fired = faults | {each.replace("delay", "error") for each in faults}
        broken = {each.partition("@")[2] for each in fired}
        shards = [{each for each in broken if each[0] == shard} for shard in "abcde"]
        down = next((each for each in shards if len(each) >= 3), None)
        failed += down is not None
        explorer.record(
            injected=faults,
            succeeded=down is None,
            support=set(points) - fired if down is None else None,
            blame=down and {f"error@{each}" for each in down},
        )
    # Then each costs three failed experiments, as without delays
    assert failed <= 15
    assert explorer.experiments <= 40
    assert explorer.certificate().complete


def test_no_union_brings_about_more_than_it_may() -> None:
    points = [f"p{number:03}" for number in range(120)]
    domains = {f"down{number}": set(points[number * 10 : number * 10 + 10]) for number in range(4)}
    explorer = Explorer(max_size=2, max_faults=30, domains=domains)
    explorer.observe(points)
    for _ in range(25):
        faults = frozenset(map(str, explorer.propose() or ()))
        broken = {point for each in faults for point in domains.get(each, {each})}
        assert 0 < len(broken) <= 30
        explorer.record(injected=faults, succeeded=True, support=set(points) - broken)


@pytest.mark.parametrize("seed", range(3))
def test_one_interaction_leaves_the_rest_as_it_is(seed: int) -> None:
    # Given a fault that hurts, but not where another one keeps it away
    points = [f"p{number:02}" for number in range(60)]
    failing = [{"p11"}, {"p20", "p40"}, {"p33"}]
    explorer = Explorer(max_size=2, seed=seed)
    explorer.observe(points)
    explorer.record(injected={"p11"}, succeeded=False)
    explorer.record(injected={"p11", "p12"}, succeeded=True, support=set(points) - {"p11", "p12"})
    assert explorer.violations
    # When it is explored on
    while (proposal := explorer.propose()) is not None:
        faults = frozenset(map(str, proposal))
        masked = {"p11", "p12"} <= faults
        bad = next((each for each in failing if each <= faults and not masked), None)
        support = set(points) - faults if bad is None else None
        explorer.record(injected=faults, succeeded=bad is None, support=support, blame=bad)
        assert explorer.experiments < 40, "one at a time would be hundreds"
    # Then all is found, and the interaction is named
    assert {frozenset(map(str, each)) for each in explorer.findings} == set(map(frozenset, failing))
    (violation,) = explorer.certificate().data["violations"]
    assert {"p11", "p12"} <= set(violation["faults"])


def test_without_suspects_three_faults_and_two_pairs_of_three_hundred() -> None:
    rng = random.Random(5)
    points = list(range(300))
    hurt = rng.sample(points, 7)
    failing = [{each} for each in hurt[:3]] + [set(hurt[3:5]), set(hurt[5:7])]
    explorer = Explorer(max_size=2)
    explorer.observe(points)
    while (faults := explorer.propose()) is not None:
        bad = any(each <= faults for each in failing)
        support = None if bad else set(points) - set(faults)
        explorer.record(injected=faults, succeeded=not bad, support=support)
    assert {frozenset(each) for each in explorer.findings} == set(map(frozenset, failing))
    assert explorer.experiments <= 83
