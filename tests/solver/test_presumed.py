"""What was found to hurt in one way is not tried in others, and nobody says that it is safe."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.solving import check, examine
from ldfi.solver import Explorer
from tests.checker.solving.oracle import Oracle
from tests.solver.systems import Set, System, explore

STRATEGIES = ["smallest", "likeliest", "union"]
PLACES, KINDS = "abc", "xyz"
FAULTS = tuple(f"{kind}@{place}" for place in PLACES for kind in KINDS)


def place(fault: object) -> str:
    return str(fault).partition("@")[2]


def places(faults: Iterable[object]) -> list[str]:
    return sorted(map(place, faults))


def apart() -> tuple[Set, ...]:
    pairs = (frozenset(pair) for pair in combinations(FAULTS, 2))
    return tuple(pair for pair in pairs if len(set(map(place, pair))) == 1)


@st.composite
def systems_of_kinds(draw: st.DrawFn) -> System:
    """Three places that can fail in three ways each; some failures need a certain way."""
    supports = st.frozensets(st.sampled_from(FAULTS), min_size=1, max_size=6)
    return System(
        tuple(draw(st.lists(supports, min_size=1, max_size=4, unique=True))),
        FAULTS,
        exclusions=apart(),
        inflation=draw(st.sampled_from([0.0, 0.5, 1.0])),
        seed=draw(st.integers(0, 5)),
    )


def explored(system: System, strategy: str, size: int, *, each_kind: bool, blame: str) -> Explorer:
    explorer = Explorer(max_size=size, strategy=strategy, place=None if each_kind else place)
    for pair in apart():
        explorer.exclude(pair, impossible=True)
    explorer.observe(frozenset(FAULTS))
    explore(explorer, system, blame=blame)
    return explorer


cases = given(
    systems_of_kinds(),
    st.sampled_from(STRATEGIES),
    st.integers(1, 3),
    st.sampled_from(["none", "right", "wrong"]),
)


@cases
def test_all_that_hurts_is_found_or_presumed_and_nothing_is_called_safe(
    system: System, strategy: str, size: int, blame: str
) -> None:
    explorer = explored(system, strategy, size, each_kind=False, blame=blame)
    truth, found = system.minimal_failing_sets(size), set(explorer.findings)
    document = explorer.certificate().data
    presumed = {
        frozenset(each["faults"]): frozenset(each["of"])
        for each in document["axioms"]["bounds"].get("presumed", ())
    }
    assert found <= truth
    for missed in truth - found:
        assert any(each <= missed for each in presumed), missed
        assert explorer.judge(missed) == "open"
    for faults, of in presumed.items():
        assert of in found and places(of) == places(faults) and of != faults
        assert explorer.judge(faults) == "open"
        tried = [set(run["injected"]) for run in document["evidence"] if "injected" in run]
        assert not any(faults <= each for each in tried) or faults in presumed
    assert check(document) == [] and Oracle(document).wrong() == []
    said = examine(document)
    assert bool(presumed) == ("presumed harmful, and not tried" in said.assumed)
    assert set(presumed) <= set(said.left_out)


@cases
def test_where_each_kind_is_tried_nothing_is_presumed(
    system: System, strategy: str, size: int, blame: str
) -> None:
    explorer = explored(system, strategy, size, each_kind=True, blame=blame)

    assert set(explorer.findings) == system.minimal_failing_sets(size)
    assert "presumed" not in explorer.certificate().data["axioms"]["bounds"]


def test_a_place_that_hurts_in_every_way_costs_one_failed_request() -> None:
    # Given a place that may not fail at all, and a pair of which the same holds
    supports = (
        frozenset(f for f in FAULTS if place(f) in "ab"),
        frozenset(f for f in FAULTS if place(f) in "ac"),
    )
    system = System(supports, FAULTS, exclusions=apart(), inflation=0.0)

    failed = {}
    for each_kind in (False, True):
        explorer = explored(system, "union", 2, each_kind=each_kind, blame="right")
        failed[each_kind] = sum(run.good is False for run in explorer.runs.experiments)

    # Then one of each is found, with the unions that led to them, instead of three and nine
    assert failed[False] <= 4
    assert failed[True] >= 12


def test_what_a_finding_brings_about_is_still_tried_alone() -> None:
    explorer = Explorer(["late@a", "error@a"], place=place, max_size=1)
    explorer.imply("late@a", "error@a")
    explorer.observe({"late@a", "error@a"})

    explorer.record(injected={"late@a"}, succeeded=False)

    assert explorer.propose() == frozenset({"error@a"})


def test_a_presumption_falls_where_it_is_shown_to_be_wrong() -> None:
    explorer = Explorer(FAULTS[:3], place=place, max_size=1)
    for pair in combinations(FAULTS[:3], 2):
        explorer.exclude(pair, impossible=True)
    explorer.observe(FAULTS[:3])
    explorer.record(injected={"x@a"}, succeeded=False)
    assert explorer.propose() is None

    # When nature shows that another kind does no harm
    explorer.observe({"x@a", "z@a"}, failed={"y@a"})

    document = explorer.certificate().data
    assert explorer.judge({"y@a"}) == "safe"
    assert [e["faults"] for e in document["axioms"]["bounds"]["presumed"]] == [["z@a"]]
    assert check(document) == []


def test_what_is_presumed_for_no_reason_is_refused() -> None:
    explorer = Explorer(FAULTS, place=place, max_size=1)
    for pair in apart():
        explorer.exclude(pair, impossible=True)
    explorer.observe(FAULTS)
    explorer.record(injected={"x@a"}, succeeded=False)
    explorer.record(injected={"x@b"}, succeeded=True, support=set(FAULTS) - {"x@b"})
    document = explorer.certificate().data
    assert check(document) == []

    entries = document["axioms"]["bounds"]["presumed"]
    for faults, of, problem in (
        (["y@b"], ["x@a"], "no other way"),
        (["y@b"], ["x@b"], "not seen"),
        (["x@b"], ["x@a"], "x@b"),
    ):
        document["axioms"]["bounds"]["presumed"] = [*entries, {"faults": faults, "of": of}]
        said = check(document)
        assert any(problem in each for each in said), said


@given(st.integers(0, 200), st.sampled_from(STRATEGIES))
def test_what_a_kind_brings_about_is_not_named_beside_it(seed: int, strategy: str) -> None:
    """Or one experiment has two names, and somebody who rejects the one is asked the other."""
    chance = random.Random(seed)
    explorer = Explorer(max_size=2, strategy=strategy, seed=seed)
    for one, other in apart():
        explorer.exclude({one, other}, impossible=True)
        explorer.imply(one, other)
    explorer.observe(FAULTS)
    while (proposal := explorer.propose()) is not None:
        faults = frozenset(map(str, proposal))
        assert len(set(map(place, faults))) == len(faults)
        if chance.random() < 0.2:
            explorer.exclude(faults)
        elif len(faults) > chance.randrange(1, 4):
            explorer.record(injected=faults, succeeded=False)
        else:
            places_hit = set(map(place, faults))
            left = {each for each in FAULTS if place(each) not in places_hit}
            explorer.record(injected=faults, succeeded=True, support=left)
    assert check(explorer.certificate().data) == []


@given(st.integers(0, 200), st.sampled_from(STRATEGIES), st.sampled_from(["none", "right"]))
def test_kinds_that_are_alike_are_never_tried_at_one_place_together(
    seed: int, strategy: str, blame: str
) -> None:
    # Given places that fail whatever the kind, and kinds that are taken as alike
    chance = random.Random(seed)
    hurt = [chance.sample(PLACES, chance.randint(1, 2)) for _ in range(2)]
    explorer = Explorer(max_size=2, strategy=strategy, place=place)
    for one, other in apart():
        explorer.exclude({one, other}, impossible=True)
        explorer.imply(one, other)
        explorer.imply(other, one)
    explorer.observe(FAULTS)
    # When it is explored
    while (proposal := explorer.propose()) is not None:
        faults = frozenset(map(str, proposal))
        assert len(set(map(place, faults))) == len(faults)
        touched = set(map(place, faults))
        harm = next((each for each in hurt if touched.issuperset(each)), None)
        if harm is None:
            failed = frozenset(f for f in FAULTS if place(f) in touched)
            explorer.record(injected=faults, succeeded=True, support=set(FAULTS) - failed)
        else:
            blamed = [f for f in faults if place(f) in harm]
            explorer.record(
                injected=faults, succeeded=False, blame=blamed if blame == "right" else None
            )
    # Then each is found once
    minimal = [each for each in hurt if not any(set(o) < set(each) for o in hurt)]
    assert {tuple(places(each)) for each in explorer.findings} == {
        tuple(sorted(each)) for each in minimal
    }
    document = explorer.certificate().data
    assert check(document) == [] and Oracle(document).wrong() == []
