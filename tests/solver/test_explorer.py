"""Completeness and minimality against brute force, for every strategy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.solving import check
from ldfi.solver import Explorer
from tests.solver.systems import System, explore, explorer_of, many, systems

STRATEGIES = ["smallest", "likeliest", "union"]
BLAMES = ["none", "right", "wrong"]


@many
@given(
    systems(),
    st.sampled_from(STRATEGIES),
    st.integers(1, 3),
    st.sampled_from(BLAMES),
    st.sampled_from([None, 1, 3]),
    st.integers(0, 3),
)
def test_every_minimal_failing_set_is_found_and_no_other(
    system: System, strategy: str, max_size: int, blame: str, max_union: int | None, seed: int
) -> None:
    # Given a system and what nature shows of it
    explorer = Explorer(max_size=max_size, strategy=strategy, max_union=max_union, seed=seed)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    # When it is explored to the end
    explore(explorer, system, blame=blame)
    # Then the findings are the truth
    assert set(explorer.findings) == system.minimal_failing_sets(max_size)
    assert explorer.open_count() == 0
    assert not explorer.violations


@many
@given(
    systems(rich=True),
    st.sampled_from(STRATEGIES),
    st.integers(1, 3),
    st.sampled_from(BLAMES),
    st.integers(0, 3),
)
def test_domains_exclusions_protection_and_outages_keep_their_meaning(
    system: System, strategy: str, max_size: int, blame: str, seed: int
) -> None:
    explorer = explorer_of(system, max_size=max_size, strategy=strategy, seed=seed)
    support = system.run(())
    if support is not None:
        explorer.observe(support)
    explore(explorer, system, blame=blame)
    assert set(explorer.statement().minimal_failing_sets()) == system.minimal_failing_sets(max_size)
    assert explorer.open_count() == 0


@given(systems(), st.integers(0, 3), st.sampled_from(BLAMES))
def test_without_a_bound_all_sizes_are_found(system: System, seed: int, blame: str) -> None:
    explorer = Explorer(max_size=None, seed=seed)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    explore(explorer, system, blame=blame)
    assert set(explorer.findings) == system.minimal_failing_sets(len(system.points))


@given(systems(), st.sampled_from(STRATEGIES), st.integers(1, 2), st.integers(0, 3))
def test_runs_of_which_nobody_knows_what_they_relied_on_prove_what_fired_and_less(
    system: System, strategy: str, max_size: int, seed: int
) -> None:
    # Given a system, most of whose good answers lack something, so that their supports say nothing
    explorer = Explorer(system.points, max_size=max_size, strategy=strategy, seed=seed)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    # When it is explored to the end
    tried = 0
    while (faults := explorer.propose()) is not None:
        support = system.run(map(str, faults))
        whole = support if tried % 4 == 3 else None
        explorer.record(injected=faults, succeeded=support is not None, support=whole)
        tried += 1
        assert tried < 200
    # Then the findings are the truth, and the evidence bears out that nothing is open
    assert set(explorer.findings) == system.minimal_failing_sets(max_size)
    assert explorer.open_count() == 0
    assert check(explorer.certificate().data) == []


def test_the_published_example() -> None:
    # Given the three good runs of the published example, two of them natural experiments
    explorer = Explorer()
    explorer.observe({"A", "R", "P", "B"})
    explorer.observe({"A", "P", "B"}, failed={"R"})
    explorer.observe({"A", "PF", "B"}, failed={"P"})
    # Then exactly these could still be harmful
    assert explorer.open_hypotheses() == tuple(map(frozenset, ([*"A"], [*"B"], ["P", "PF"])))
    # And PF alone, printed in the article, does not satisfy its own equation: runs 1 and 2 survive
    assert frozenset({"PF"}) not in explorer.open_hypotheses()


def test_two_unperturbed_runs_widen_one_clause() -> None:
    # Given a request that found the cache warm, and one that did not
    explorer = Explorer()
    explorer.observe({"cache"})
    explorer.observe({"database"})
    # Then neither is an alternative to the other
    assert explorer.open_hypotheses() == (frozenset({"cache"}), frozenset({"database"}))


def test_a_widened_clause_is_replaced_in_the_solver() -> None:
    # Given a solver that has already worked on the narrow clause
    explorer = Explorer()
    explorer.observe({"cache"})
    assert explorer.propose() == frozenset({"cache"})
    explorer.record(injected={"cache"}, succeeded=False)
    assert explorer.propose() is None
    # When the clause widens, the hidden hypothesis comes to light
    explorer.observe({"database"})
    assert explorer.propose() == frozenset({"database"})


def test_a_domain_is_reported_by_its_name() -> None:
    explorer = Explorer(max_size=2, domains={"down(db)": {"a", "b"}})
    explorer.observe({"a", "b", "c"})
    explorer.record(injected={"a"}, succeeded=True, support={"b"})
    explorer.record(injected={"b"}, succeeded=True, support={"a"})
    explorer.record(injected={"a", "b"}, succeeded=False)
    assert explorer.findings == (frozenset({"down(db)"}),)
    assert set(explorer.statement().minimal_failing_sets()) == {
        frozenset({"down(db)"}),
        frozenset({"a", "b"}),
    }
    assert explorer.propose() is None


def test_a_stronger_fault_is_implied_and_not_tried() -> None:
    explorer = Explorer(max_size=1, exclusions=[("error@p", "delay@p")])
    explorer.observe({"error@p", "delay@p"})
    explorer.record(injected={"error@p"}, succeeded=False)
    explorer.imply("delay@p", "error@p")
    assert explorer.propose() is None
    assert explorer.findings == (frozenset({"error@p"}),)


def test_an_exclusion_is_respected_by_unions() -> None:
    explorer = Explorer(exclusions=[("error@p", "delay@p")])
    explorer.observe({"error@p", "delay@p", "error@q"})
    proposal = explorer.propose()
    assert proposal is not None
    assert not proposal >= {"error@p", "delay@p"}


def test_inconclusive_is_retried_within_a_bound_and_stays_open() -> None:
    explorer = Explorer(max_inconclusive=2)
    explorer.observe({"a", "b"})
    tried = []
    while (proposal := explorer.propose()) is not None:
        tried.append(proposal)
        succeeded = None if "a" in proposal else True
        explorer.record(
            injected=proposal, succeeded=succeeded, support={"a"} if succeeded else None
        )
    assert tried.count(frozenset({"a"})) == 2
    assert explorer.open_hypotheses() == (frozenset({"a"}),)
    assert explorer.open_count() == 1


def test_a_bad_run_is_attributed_to_what_fired() -> None:
    explorer = Explorer()
    explorer.observe({"a", "b", "c"})
    explorer.record(injected={"a", "b"}, succeeded=False, fired={"b"})
    assert explorer.findings == (frozenset({"b"}),)
    assert frozenset({"a"}) in explorer.open_hypotheses()


def test_contradictions_are_reported_and_exploration_becomes_cautious() -> None:
    explorer = Explorer()
    explorer.observe({"a", "b", "c"})
    explorer.record(injected={"a"}, succeeded=False)
    explorer.record(injected={"a", "b"}, succeeded=True, support={"c"})
    assert [each.kind for each in explorer.violations] == ["superset of a failing set survived"]
    assert explorer.violations
    # And a set that fails although no good run ever needed it
    explorer.record(injected={"d"}, succeeded=False)
    assert explorer.violations[1].kind == "known-safe set failed"
    # Then what was seen outranks what was inferred
    assert set(explorer.findings) == {frozenset({"a"}), frozenset({"d"})}


@given(st.data(), st.sampled_from(STRATEGIES))
def test_exploration_ends_whatever_the_system_does(data: st.DataObject, strategy: str) -> None:
    # Given a system that answers at random
    explorer = Explorer(strategy=strategy, max_size=2)
    points = frozenset("abcd")
    explorer.observe(points)
    for _ in range(200):
        proposal = explorer.propose()
        if proposal is None:
            return
        faults = frozenset(map(str, proposal))
        outcome = data.draw(st.sampled_from([True, False, None]))
        explorer.record(
            injected=faults,
            succeeded=outcome,
            support=data.draw(st.frozensets(st.sampled_from("abcd"))) if outcome else None,
            fired=data.draw(st.sampled_from([None, faults, frozenset(sorted(faults)[:1])])),
        )
    pytest.fail("the exploration did not end")


def test_what_is_protected_or_excluded_may_not_be_tried_and_what_is_unknown_may() -> None:
    explorer = Explorer("abcd", protected="a")
    explorer.exclude("bc")
    explorer.exclude("d")

    def admissible(faults: str) -> bool:
        return explorer.admissible(faults)

    assert [admissible(each) for each in ("b", "c", "bc", "a", "ab", "d")] == [
        *(True, True, False),
        *(False, False, False),
    ]
    assert admissible("x") and admissible("bx") and not admissible("ax")


def test_the_empty_proposal_says_that_nothing_is_known_yet() -> None:
    assert Explorer().propose() == frozenset()


def test_what_is_down_decides_what_single_fault_now_hurts() -> None:
    # Given all that was learnt while everything was up
    explorer = Explorer(max_size=1, down={"p"})
    explorer.observe({"a", "p"})
    explorer.observe({"a", "fallback"}, failed={"p"})
    # Then with p down, the fallback alone is a hypothesis
    assert explorer.open_hypotheses() == (frozenset({"a"}), frozenset({"fallback"}))


@given(
    st.lists(st.frozensets(st.sampled_from(["a", "b", "c", "a+", "b+"]), min_size=1), min_size=1),
    st.sampled_from(STRATEGIES),
    st.integers(1, 3),
    st.integers(0, 5),
)
def test_implications_learnt_on_the_way_change_nothing_but_the_effort(
    supports: list[frozenset[str]], strategy: str, max_size: int, after: int
) -> None:
    # Given faults of which the stronger also cause the weaker, which nobody knows at first
    stronger = {"a+": frozenset({"a+", "a"}), "b+": frozenset({"b+", "b"})}
    system = System(tuple(supports), ("a", "b", "c"), stronger)
    explorer = Explorer(max_size=max_size, strategy=strategy)
    support = system.run(())
    assert support is not None
    explorer.observe(support)
    for number in range(100):
        # When it is noticed in the course of the exploration
        if number == after:
            explorer.imply("a+", "a")
            explorer.imply("b+", "b")
        proposal = explorer.propose()
        if proposal is None:
            if number >= after:
                break
            continue
        faults = frozenset(map(str, proposal))
        good = system.run(faults)
        explorer.record(injected=faults, succeeded=good is not None, support=good)
    # Then every minimal failing set is known
    assert set(explorer.statement().minimal_failing_sets()) == system.minimal_failing_sets(max_size)
