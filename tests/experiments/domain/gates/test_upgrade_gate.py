"""The gate of an upgrade, held against programs that are asked themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.upgrade_gate import gate
from ldfi.experiments.domain.gates.whatif import points_named
from ldfi.experiments.domain.settings import Settings
from ldfi.testing.programs import Call, Step, points_of
from ldfi.testing.world import PROGRAM
from tests.experiments.domain.campaign.test_exploration import BOUNDS
from tests.experiments.domain.campaign.test_exploration import Lab as Laboratory
from tests.experiments.domain.gates.test_whatif import learned, survives
from tests.experiments.simulated import explore, serving

STORE = Call(
    "root",
    (
        Step("fallback", (Call("replica-1"), Call("replica-2"), Call("replica-3"))),
        Step("critical", (Call("layout"),)),
        Step("optional", (Call("ratings"),)),
    ),
)
"""Any of three replicas will do; ``layout`` is a single point of failure, whatever is upgraded."""


def window(*down: str) -> Maintenance:
    return Maintenance(f"w-{'-'.join(down)}", "ann", "upgrade", down, 0.0, 100.0)


def explored(program: Call, size: int, traffic: int = 5) -> Knowledge:
    bounds = Settings(kinds=("error",), max_size=size, max_union=None, min_traffic=traffic)
    (exploration,) = explore(serving(program), bounds).explorations.values()
    return exploration.knowledge


@pytest.fixture(scope="module")
def store() -> Knowledge:
    return explored(STORE, 3)


def test_replicas_are_taken_down_one_by_one(store: Knowledge) -> None:
    # A single point of failure is none of the step's business
    first = gate(["replica-1"], [], [store])
    assert (first.verdict, first.why) == ("safe", ())
    assert first.classes[0].anyway == ("layout",)
    # But with one down already, another would leave one, and then one more failure hurts
    second = gate(["replica-2"], [window("replica-1")], [store])
    assert second.verdict == "refused"
    assert second.why == ("GET /: one more failure would hurt: replica-3",)
    assert second.down == ("replica-2", "replica-1")
    # Whoever can do without a spare may go on, until the outage itself hurts
    assert gate(["replica-2"], [window("replica-1")], [store], spare=0).verdict == "safe"
    third = gate(["replica-3"], [window("replica-1"), window("replica-2")], [store], spare=0)
    assert third.why == ("GET /: the outage by itself hurts",)


def test_all_of_a_step_counts_together_and_the_same_name_twice_once(store: Knowledge) -> None:
    assert gate(["replica-1", "replica-2"], [], [store]).verdict == "refused"
    assert gate(["replica-1"], [window("replica-1")], [store]).verdict == "safe"
    assert gate(["down@replica-1"], [], [store]).verdict == "safe"
    assert gate(["layout"], [], [store]).why == ("GET /: the outage by itself hurts",)


def test_what_is_not_proved_is_not_safe(store: Knowledge) -> None:
    unexplored = Laboratory(serving(PROGRAM), BOUNDS).exploration.knowledge

    assert gate(["ratings"], [], [unexplored]).verdict == "unknown"
    misspelt = gate(["ratings", "replika-1"], [], [store])
    assert misspelt.verdict == "unknown"
    assert misspelt.why == ("no request class is known to call replika-1",)
    assert gate(["ratings"], [], []).verdict == "unknown"
    blanket = gate(["ratings"], [window()], [store])
    assert blanket.verdict == "unknown"
    assert "does not say what is down" in blanket.why[0]
    # And a reason against it is worth more than not knowing
    assert gate(["layout", "replika-1"], [window()], [store]).verdict == "refused"


def test_every_class_that_calls_it_is_asked_and_no_other(store: Knowledge) -> None:
    other = explored(PROGRAM, 2)

    assert [each.request_class for each in gate(["replica-1"], [], [store, other]).classes] == [
        store.name
    ]
    assert len(gate(["ratings"], [], [store, other]).classes) == 2
    # What is down for another class only is no reason to ask about this one
    assert gate(["replica-1"], [window("playlist")], [store, other]).verdict == "safe"


@given(learned(points=2), st.data())
def test_what_passes_is_survived_and_so_is_one_failure_more(
    given_of: tuple[Call, Knowledge], data: st.DataObject
) -> None:
    program, knowledge = given_of
    points = points_of(program)
    # When somebody asks to take something down, with something down already
    step = data.draw(st.lists(st.sampled_from(points), min_size=1, max_size=2, unique=True))
    already = data.draw(st.lists(st.sampled_from(points), max_size=1))
    spare = data.draw(st.sampled_from((0, 1)))
    answer = gate(step, [window(*already)] if already else [], [knowledge], spare)
    # Then what it says holds of the program itself
    down = {*step, *already}
    further = knowledge.points - down if spare else set()
    if answer.verdict == "safe":
        assert all(points_named([name], knowledge) for name in step)
        assert survives(program, down)
        assert all(survives(program, {*down, p}) or not survives(program, {p}) for p in further)
    if answer.verdict == "refused":
        assert not all(survives(program, {*down, *more}) for more in ({p} for p in further | down))
