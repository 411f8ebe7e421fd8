"""Results that are wrong: what a certificate may rest on, against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.solving import check
from ldfi.experiments.domain.campaign.agreement import agreed, borne_out
from ldfi.experiments.domain.campaign.ending import TRIED_ONCE, ending_of
from ldfi.experiments.domain.campaign.experiment_tally import Trials
from ldfi.experiments.domain.campaign.exploration import MAX_TRIES, Exploration, Plan
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import RULES, ExperimentResult
from ldfi.experiments.domain.settings import Settings
from ldfi.testing.programs import Call, Step
from tests.experiments.domain.campaign.test_exploration import Lab, harm, tolerated
from tests.experiments.simulated import Application, serving, traffic_of

POINTS = "abcd"
PROGRAM = Call("root", tuple(Step("critical", (Call(point),)) for point in POINTS))
BOUNDS = Settings(kinds=("error",), min_traffic=5)
TRAFFIC = traffic_of(Application(serving(PROGRAM)), 5)
ERRORS = [f"error@{point}" for point in POINTS]
OPTIONAL = Call("root", tuple(Step("optional", (Call(point),)) for point in POINTS))

Faults = frozenset[str]
sets = st.frozensets(st.sampled_from(ERRORS), min_size=1, max_size=3)


@st.composite
def good(draw: st.DrawFn) -> ExperimentResult:
    """A result of which spans may have been lost."""
    injected = draw(sets)
    fired = draw(st.frozensets(st.sampled_from(sorted(injected)), min_size=1))
    relied_on = draw(st.frozensets(st.sampled_from(ERRORS))) - injected
    return survived(injected, relied_on, fired, draw(st.sampled_from([RULES, RULES, 1])))


def survived(
    injected: Faults, relied_on: Iterable[str], fired: Faults | None = None, rules: int = RULES
) -> ExperimentResult:
    """What a run that went well teaches."""
    more = {"fired": fired or injected, "survived": injected, "rules": rules}
    return tolerated(injected, relied_on, POINTS, **more)


results = st.lists(good() | st.builds(harm, sets), max_size=7)


def known(taught: Iterable[ExperimentResult]) -> Knowledge:
    knowledge = Knowledge("GET /", BOUNDS, TRAFFIC)
    for result in taught:
        knowledge.learn(result)
    return knowledge


def hypotheses() -> list[Faults]:
    return [frozenset(each) for n in (1, 2) for each in itertools.combinations(ERRORS, n)]


def firmly_closed(hypothesis: Faults, taught: list[ExperimentResult]) -> bool:
    """Whether what was tried twice settles it, by looking at every set that was."""
    hurt = [each for each in taught if each.succeeded is False]
    for injected in {each.injected for each in hurt}:
        together = [each.fired for each in hurt if each.injected == injected]
        fired = frozenset().union(*together)
        if fired <= hypothesis and len([each for each in hurt if each.fired <= fired]) > 1:
            return True
    for injected in {each.injected for each in taught}:
        same = [e for e in taught if e.injected == injected and e.succeeded and e.rules == RULES]
        if len(same) < 2 or any(each.injected == injected for each in hurt):
            continue
        fired = frozenset(f for f in injected if sum(f in each.fired for each in same) > 1)
        relied_on = frozenset().union(*(each.relied_on for each in same))
        if fired and not hypothesis & (relied_on - fired):
            return True
    return False


@given(results)
def test_a_certificate_is_never_complete_where_what_was_tried_twice_leaves_something_open(
    taught: list[ExperimentResult],
) -> None:
    certificate = known(taught).certificate()["certificate"]

    assert check(certificate) == []
    listed = [frozenset(each) for each in certificate["open"]]
    for each in hypotheses():
        if not firmly_closed(each, taught):
            assert any(open_ <= each for open_ in listed)
    if certificate["open_complete"] and not certificate["open"]:
        assert not certificate["doubt"]["unsettled"]


@given(st.lists(good(), min_size=1, max_size=5))
def test_what_lessons_of_one_set_bear_out_together(same: list[ExperimentResult]) -> None:
    same = [replace(each, injected=frozenset(ERRORS)) for each in same]
    for before, after in zip(same, borne_out(same), strict=True):
        times = {f: sum(f in each.fired for each in same) for f in ERRORS}
        fired = {fault for fault, count in times.items() if count >= min(2, len(same))}
        assert after.fired == (fired or before.fired)
        assert after.relied_on == before.relied_on
        assert agreed(before, same) == after


@given(st.lists(st.builds(harm, sets), min_size=1, max_size=4))
def test_harm_of_one_set_is_put_down_to_all_that_ever_fired(same: list[ExperimentResult]) -> None:
    same = [replace(each, injected=frozenset(ERRORS)) for each in same]
    everything = frozenset().union(*(each.fired for each in same))
    assert {each.fired for each in borne_out(same)} == {everything}


# --- What is tried again -----------------------------------------------------------------------

A, B = frozenset({"error@a"}), frozenset({"error@b"})
AB = A | B
ALL = frozenset(ERRORS)


def test_a_wrong_tolerated_is_tried_again_before_anything_rests_on_it() -> None:
    # Given a call without which nothing works, and a first verdict that says it is survived
    program = Call("root", (Step("critical", (Call("a"),)), *OPTIONAL.steps[1:]))
    lab = Lab(serving(program), BOUNDS)
    lab.learn(survived(ALL, ()))
    # Then nothing is left to explore, and the certificate says that it is not complete
    assert lab.exploration.knowledge.propose() is None
    certificate = lab.exploration.knowledge.certificate()["certificate"]
    assert certificate["open"]
    assert certificate["doubt"]["tried_once"] == len(certificate["open"])
    # And it is tried again, believed, and what hurts is found
    assert lab.exploration.plan() == Plan(ALL, "repeat")
    lab.plans()
    assert lab.exploration.states == {A: "open"}
    certificate = lab.exploration.knowledge.certificate()["certificate"]
    assert (certificate["open"], certificate["open_complete"]) == ([], True)
    assert check(certificate) == []


def test_spans_lost_once_hide_nothing() -> None:
    program = Call("root", (Step("critical", (Call("a"),)), *OPTIONAL.steps[1:]))
    lab = Lab(serving(program), BOUNDS)
    lost = survived(ALL - A, ())  # it relied on ``a``, and nobody saw it
    lab.learn(lost)

    lab.plans()

    assert lab.exploration.states == {A: "open"}


def test_both_sides_of_a_contradiction_are_tried_again_and_the_wrong_one_goes() -> None:
    # Given a larger set that was wrongly called survived, and a part of it that hurts
    program = Call("root", (Step("critical", (Call("a"),)), *OPTIONAL.steps[1:]))
    lab = Lab(serving(program), replace(BOUNDS, rechecks=0))
    lab.learn(survived(AB, ERRORS[2:]))
    lab.learn(harm(A))
    assert lab.exploration.knowledge.certificate()["certificate"]["open_complete"] is False
    # Then the harm is confirmed, and what says otherwise is tried again
    assert lab.carry_out(Plan(A, "confirm")) == {A: "open"}
    assert lab.exploration.plan() == Plan(AB, "repeat")
    lab.plans()
    assert not any(
        each.succeeded for each in lab.exploration.knowledge.results if each.injected == AB
    )
    assert not lab.exploration.knowledge.solver_input.explorer.violations


def test_a_contradiction_that_cannot_be_settled_keeps_a_certificate_from_being_complete() -> None:
    lab = Lab(serving(OPTIONAL), BOUNDS)
    for _ in range(2):
        lab.learn(survived(ALL, ()))
    lab.learn(harm(AB))
    assert lab.exploration.knowledge.certificate()["certificate"]["open_complete"] is False
    while (plan := lab.exploration.plan()) is not None:
        lab.learn(ExperimentResult(plan.hypothesis, succeeded=None, purpose=plan.purpose))

    certificate = lab.exploration.knowledge.certificate()["certificate"]
    assert certificate["doubt"]["unsettled"] == [sorted(AB)]
    assert certificate["open_complete"] is False
    ending = ending_of([lab.exploration], Trials(), (), spent=False)
    assert ending.kind == "open"


def test_what_could_not_be_tried_again_is_said_at_the_end() -> None:
    lab = Lab(serving(OPTIONAL), BOUNDS)
    lab.learn(survived(ALL, ()))
    for _ in range(MAX_TRIES):
        assert lab.exploration.plan() == Plan(ALL, "repeat")
        lab.learn(ExperimentResult(ALL, succeeded=None, purpose="repeat"))

    assert Plan(ALL, "repeat") != lab.exploration.plan()
    ending = ending_of([lab.exploration], Trials(), (), spent=False)
    assert TRIED_ONCE in ending.left[0].why


def test_nothing_survived_is_tried_again_where_nobody_wants_to_recheck() -> None:
    lab = Lab(serving(OPTIONAL), replace(BOUNDS, rechecks=0))
    lab.learn(survived(ALL, ()))

    assert lab.exploration.plan() is None
    certificate = lab.exploration.knowledge.certificate()["certificate"]
    assert not certificate["open"]
    assert certificate["doubt"]["survived_once"] == 1


def test_later_runs_try_again_what_closes_most() -> None:
    lab = Lab(serving(OPTIONAL), BOUNDS)
    lab.plans()
    before = len(lab.results)
    lab.exploration.begin_run([frozenset({f"error@{point}"}) for point in "abc"])

    repeated = [each for each in lab.plans() if each.purpose == "repeat"]

    assert repeated
    assert 4 * len(repeated) <= len(lab.results) - before


# --- Records from before -----------------------------------------------------------------------


def test_what_was_learned_by_earlier_rules_is_tried_again_first() -> None:
    lab = Lab(serving(OPTIONAL), replace(BOUNDS, rechecks=0))
    data = survived(AB, ERRORS[2:]).to_json()
    for each in ("rules", "degraded", "lead", "survived"):
        del data[each]
    old = ExperimentResult.from_json(data)
    assert old.rules < RULES
    lab.learn(old)
    assert lab.exploration.knowledge.certificate()["certificate"]["open"]

    assert lab.exploration.plan() == Plan(AB, "repeat")
    lab.carry_out(Plan(AB, "repeat"))

    (result,) = lab.exploration.knowledge.results
    assert result.rules == RULES
    assert ExperimentResult.from_json(result.to_json()) == result


def test_what_is_known_is_known_again_by_its_lessons() -> None:
    lab = Lab(serving(OPTIONAL), BOUNDS)
    lab.plans()
    again: Exploration = lab.fresh()
    again.replay(lab.results)

    assert again.knowledge.certificate() == lab.exploration.knowledge.certificate()
    both = (again.knowledge, lab.exploration.knowledge)
    assert [each.evidence_quality.open() for each in both] == [[], []]
    assert again.plan() == lab.exploration.plan()
