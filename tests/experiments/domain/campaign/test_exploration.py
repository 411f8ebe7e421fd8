"""What becomes of suspicions, and whether what is known can be learned again from the results."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldfi.checker.solving import check
from ldfi.experiments.domain.campaign.exploration import MAX_TRIES, RESTLESS, Exploration, Plan
from ldfi.experiments.domain.campaign.fault_history import suspicions
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import INTERFERENCES, ExperimentResult, result_of
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.protocol.context import Arm
from ldfi.lineage.span import Span
from ldfi.testing.programs import Call, Step, points_of
from ldfi.testing.spans import span
from ldfi.testing.world import PROGRAM
from tests.experiments.domain.campaign.test_campaign import shared_database
from tests.experiments.simulated import (
    BOOT,
    Application,
    Serve,
    errors_of,
    explore_application,
    failing_sets,
    run_experiment,
    serving,
    traffic_of,
    working,
)

BOUNDS = Settings(kinds=("error",), max_union=None, min_traffic=5, rechecks=0)
LAYOUT = frozenset({"error@layout"})
PLAYLIST = frozenset({"error@playlist"})
RATINGS = frozenset({"error@ratings"})
LISTS = frozenset({"error@playlist", "error@popular"})
DELAY = frozenset({"delay@layout"})
WAITED = frozenset({("delay@layout", "error@layout")})
DELAYED = ExperimentResult(DELAY, succeeded=False, fired=DELAY, implications=WAITED)
"""It hung, its caller gave up, and that hurt."""


class Lab:
    """An exploration, and the program that its experiments are tried on."""

    def __init__(
        self,
        serve: Serve,
        bounds: Settings = BOUNDS,
        only: Iterable[frozenset[str]] = (),
        application: Application | None = None,
    ) -> None:
        self.application = application or Application(serve)
        self.bounds = bounds
        self.only = tuple(only)
        self.traffic = traffic_of(self.application, bounds.min_traffic)
        self.exploration = self.fresh()
        self.results: list[ExperimentResult] = []

    def fresh(self) -> Exploration:
        return Exploration(Knowledge("GET /", self.bounds, self.traffic), only=self.only)

    def learn(self, result: ExperimentResult) -> dict[frozenset[str], str]:
        self.results.append(result)
        return {each.faults: each.state for each in self.exploration.learn(result)}

    def carry_out(self, plan: Plan) -> dict[frozenset[str], str]:
        """Do the experiment; what it does to the findings."""
        faults = self.exploration.knowledge.expand(plan.hypothesis)
        what = (f"e{len(self.results)}", "GET /", BOOT, plan.hypothesis, faults)
        experiment = Experiment(*what, settings=self.bounds, purpose=plan.purpose)
        run_experiment(self.application, experiment, 0.0)
        for each in (*experiment.good, *experiment.bad):
            self.traffic.topology.learn(each.lineage)
        return self.learn(result_of(experiment, self.traffic.usual_support()))

    def plans(self, limit: int = 300) -> list[Plan]:
        """Go on to the end; what was tried."""
        tried = []
        while (plan := self.exploration.plan()) is not None:
            tried.append(plan)
            self.carry_out(plan)
            assert len(tried) < limit
        return tried


def harm(faults: frozenset[str], purpose: str = "explore") -> ExperimentResult:
    """The result of an experiment in which these faults hurt, truly or not."""
    return ExperimentResult(faults, succeeded=False, fired=faults, purpose=purpose)  # type: ignore[arg-type]


def tolerated(
    faults: frozenset[str], relied_on: Iterable[str], called: Iterable[str] = (), **more: Any
) -> ExperimentResult:
    """The result of one in which these faults fired, and nobody was hurt."""
    seen = {"relied_on": frozenset(relied_on), "called": frozenset(called)}
    return ExperimentResult(faults, **{"succeeded": True, "fired": faults, **seen, **more})


# --- A finding's way ---------------------------------------------------------------------------


def test_what_hurt_once_is_suspected_and_open_when_it_hurts_again() -> None:
    lab = Lab(serving(PROGRAM))

    assert lab.learn(harm(LAYOUT)) == {LAYOUT: "suspected"}
    plan = lab.exploration.plan()
    assert plan == Plan(LAYOUT, "confirm")
    assert lab.carry_out(plan) == {LAYOUT: "open"}


def test_without_confirmation_it_is_open_at_once() -> None:
    lab = Lab(serving(PROGRAM), Settings(kinds=("error",), min_traffic=5, confirm=False))

    assert lab.learn(harm(LAYOUT)) == {LAYOUT: "open"}


def test_a_suspicion_that_is_survived_is_refuted_and_all_of_it_forgotten() -> None:
    # Given a suspicion that is not true, and harm of a larger set that was put down to it as well
    lab = Lab(serving(PROGRAM))
    lab.learn(harm(RATINGS | LISTS))
    assert lab.learn(harm(RATINGS)) == {RATINGS: "suspected"}
    # When experiments of its own are survived twice
    assert lab.carry_out(Plan(RATINGS, "confirm")) == {}
    assert lab.exploration.plan() == Plan(RATINGS, "explore")
    assert lab.carry_out(Plan(RATINGS, "explore")) == {RATINGS: "refuted"}
    # Then nothing is put down to it any more, and the exploration comes to the truth
    assert not lab.exploration.knowledge.findings()
    lab.plans()
    assert {faults for faults, _ in lab.exploration.knowledge.findings()} == {LAYOUT, LISTS}
    assert lab.exploration.states == {RATINGS: "refuted", LAYOUT: "open", LISTS: "open"}


def test_a_refuted_finding_may_be_suspected_again() -> None:
    lab = Lab(serving(PROGRAM))
    lab.learn(harm(RATINGS))
    for _ in range(2):
        lab.carry_out(Plan(RATINGS, "confirm"))
    assert lab.exploration.states == {RATINGS: "refuted"}

    assert lab.learn(harm(RATINGS)) == {RATINGS: "suspected"}


def test_a_confirmation_that_stays_inconclusive_is_given_up() -> None:
    lab = Lab(serving(PROGRAM))
    lab.learn(harm(LAYOUT))
    for _ in range(MAX_TRIES):
        assert lab.exploration.plan() == Plan(LAYOUT, "confirm")
        assert lab.learn(ExperimentResult(LAYOUT, succeeded=None, purpose="confirm")) == {}

    plan = lab.exploration.plan()
    assert plan is None or plan.purpose != "confirm"
    assert lab.exploration.states[LAYOUT] == "suspected"


def test_a_suspicion_that_a_broader_one_explains_is_none_any_more() -> None:
    # Given a delay that hurts because its caller gives up, and then an error there that hurts too
    lab = Lab(serving(PROGRAM), Settings(min_traffic=5))
    assert lab.learn(DELAYED) == {DELAY: "suspected"}

    assert lab.learn(harm(LAYOUT)) == {LAYOUT: "suspected"}
    assert lab.exploration.states == {LAYOUT: "suspected"}


def test_a_pair_does_not_stay_open_beside_its_part() -> None:
    # Given a pair that has hurt twice, for each of its parts was wrongly seen to be survived
    lab = Lab(serving(PROGRAM))
    pair = LAYOUT | RATINGS
    for part in (LAYOUT, RATINGS):
        lab.learn(tolerated(part, PLAYLIST))
    lab.learn(harm(pair))
    assert lab.learn(harm(pair, "confirm")) == {pair: "open"}
    # When a part is found to hurt by itself
    lab.learn(harm(LAYOUT))
    # Then that is the finding
    assert lab.exploration.states == {pair: "superseded", LAYOUT: "suspected"}


def test_a_delay_waits_for_the_error_and_is_confirmed_by_itself_where_that_stays_unknown() -> None:
    # Given a delay that hurts, whose caller gives up, so that an error would say more
    bounds = Settings(min_traffic=5, max_union=None, rechecks=0)
    impatient = Call("root", (Step("critical", (Call("layout", impatient=True),)),))
    lab = Lab(serving(impatient), bounds)
    lab.learn(DELAYED)
    # When the error is tried and never fires
    tried = []
    while (plan := lab.exploration.plan()) is not None and plan.purpose != "confirm":
        tried.append(plan.hypothesis)
        lab.learn(ExperimentResult(plan.hypothesis, succeeded=None))
        assert len(tried) < 20
    # Then it had its turns first, and the delay is confirmed as it is
    assert LAYOUT in tried
    assert plan == Plan(DELAY, "confirm")


# --- Doubt -------------------------------------------------------------------------------------

OPTIONAL = Call(
    "root",
    (*(Step("optional", (Call(p),)) for p in ("ratings", "playlist")), PROGRAM.steps[2]),
)
BOTH = RATINGS | PLAYLIST
ALL = BOTH | LAYOUT


def doubtful() -> Lab:
    """Two optional calls were survived; then a union hurt in which nothing but these fired."""
    lab = Lab(serving(OPTIONAL), Settings(kinds=("error",), max_size=1, min_traffic=5, rechecks=0))
    lab.carry_out(Plan(BOTH, "explore"))
    lab.learn(ExperimentResult(ALL, succeeded=False, fired=BOTH))
    return lab


def cautious(lab: Lab) -> bool:
    return bool(lab.exploration.knowledge.solver_input.explorer.violations)


def test_harm_that_contradicts_what_was_survived_is_tried_again_and_forgotten_if_survived() -> None:
    lab = doubtful()
    assert cautious(lab)
    assert lab.exploration.plan() == Plan(ALL, "repeat")

    lab.learn(ExperimentResult(ALL, succeeded=True, fired=BOTH, relied_on=LAYOUT, purpose="repeat"))

    assert not cautious(lab)
    assert not lab.exploration.states


def test_harm_of_which_a_part_was_not_seen_is_put_down_to_all_of_it_the_second_time() -> None:
    lab = doubtful()

    lab.learn(ExperimentResult(ALL, succeeded=False, fired=ALL, purpose="repeat"))

    assert not cautious(lab)
    lab.plans()
    assert lab.exploration.states == {LAYOUT: "open"}


def test_harm_that_contradicts_what_was_survived_is_believed_when_it_comes_again() -> None:
    lab = doubtful()

    lab.learn(ExperimentResult(ALL, succeeded=False, fired=BOTH, purpose="repeat"))

    assert cautious(lab)
    assert Plan(ALL, "repeat") not in lab.plans()


def test_doubt_is_given_up_when_it_cannot_be_settled() -> None:
    lab = doubtful()
    for _ in range(MAX_TRIES):
        assert lab.exploration.plan() == Plan(ALL, "repeat")
        lab.learn(ExperimentResult(ALL, succeeded=None, purpose="repeat"))

    assert lab.exploration.plan() != Plan(ALL, "repeat")


# --- Degraded ---------------------------------------------------------------------------------


def test_a_degraded_answer_closes_what_fired_and_nothing_else() -> None:
    lab = Lab(serving(PROGRAM), Settings(kinds=("error",), max_size=1, min_traffic=5, rechecks=0))
    result = ExperimentResult(ALL, succeeded=True, fired=BOTH, degraded=True)

    lab.learn(ExperimentResult.from_json(result.to_json()))

    judged = {p: lab.exploration.knowledge.judge([p]) for p in ("ratings", "playlist", "layout")}
    assert judged == {"ratings": "safe", "playlist": "safe", "layout": "open"}
    lab.plans()
    assert lab.exploration.states == {LAYOUT: "open"}
    assert check(lab.exploration.knowledge.certificate()["certificate"]) == []


# --- Verification ------------------------------------------------------------------------------


def test_what_was_found_before_is_verified_first() -> None:
    lab = Lab(serving(PROGRAM))
    lab.exploration.begin_run([RATINGS, LAYOUT])

    tried = lab.plans()

    assert tried[:3] == [*[Plan(RATINGS, "verify")] * 2, Plan(LAYOUT, "verify")]
    assert lab.exploration.states == {RATINGS: "fixed", LAYOUT: "open", LISTS: "open"}
    assert Plan(LAYOUT, "confirm") not in tried  # it has just hurt once more


def test_still_open_is_told_again_and_fixed_once_it_was_survived_twice() -> None:
    lab = Lab(serving(PROGRAM))
    lab.exploration.begin_run([LAYOUT, RATINGS])

    assert lab.carry_out(Plan(LAYOUT, "verify")) == {LAYOUT: "open"}
    assert lab.carry_out(Plan(LAYOUT, "verify")) == {LAYOUT: "open"}
    assert lab.carry_out(Plan(RATINGS, "verify")) == {}
    assert lab.carry_out(Plan(RATINGS, "verify")) == {RATINGS: "fixed"}


def test_what_hurts_no_more_is_fixed_and_what_it_hid_is_found() -> None:
    # Given a program that was explored, and then repaired at one place but broken at another
    lab = Lab(serving(PROGRAM))
    lab.plans()
    broken = Step("critical", (Call("ratings"),))
    repaired = Step("optional", (Call("layout"),))
    now = Call("root", (broken, PROGRAM.steps[1], repaired))
    lab.application = Application(serving(now))
    # When the next run verifies what was found
    lab.exploration.begin_run([LAYOUT, LISTS])
    lab.plans()
    # Then what is repaired is fixed; and what was once survived is found where it is met
    assert lab.exploration.states == {LAYOUT: "fixed", LISTS: "open", RATINGS: "open"}


def test_a_verification_is_tried_three_times_and_not_at_all_where_the_point_is_gone() -> None:
    lab = Lab(serving(PROGRAM))
    gone = frozenset({"error@gone"})
    lab.exploration.begin_run([LAYOUT, gone])
    tries = 0
    while (plan := lab.exploration.plan()) == Plan(LAYOUT, "verify"):
        lab.learn(ExperimentResult(LAYOUT, succeeded=None, purpose="verify"))
        tries += 1

    assert tries == MAX_TRIES
    assert plan is not None
    assert plan.purpose != "verify"


def test_nothing_is_verified_where_that_is_switched_off() -> None:
    lab = Lab(serving(PROGRAM), Settings(kinds=("error",), min_traffic=5, verify=False))
    lab.exploration.begin_run([LAYOUT])

    assert "verify" not in {plan.purpose for plan in lab.plans()}


# --- Only, rejected, rechecked -----------------------------------------------------------------


def test_hypotheses_that_were_asked_for_are_tried_what_hurts_confirmed_and_nothing_else() -> None:
    lab = Lab(serving(PROGRAM), only=[RATINGS, LAYOUT, frozenset({"error@unknown"})])

    tried = [Plan(RATINGS, "explore"), Plan(LAYOUT, "explore"), Plan(LAYOUT, "confirm")]
    assert lab.plans() == tried
    assert lab.exploration.finished


def test_of_those_asked_for_what_is_known_is_verified() -> None:
    lab = Lab(serving(PROGRAM), only=[RATINGS, LAYOUT])
    lab.exploration.begin_run([LAYOUT, LISTS])

    assert lab.plans() == [Plan(LAYOUT, "verify"), Plan(RATINGS, "explore")]


@given(st.sets(st.sampled_from([LAYOUT, RATINGS, PLAYLIST, LISTS])), st.integers(0, 5))
def test_what_was_rejected_is_never_proposed(rejected: set[frozenset[str]], seed: int) -> None:
    lab = Lab(serving(PROGRAM), Settings(kinds=("error",), min_traffic=5, seed=seed))
    for faults in sorted(rejected, key=sorted):
        lab.learn(ExperimentResult(faults, succeeded=None, purpose="rejected"))
    suspicion = RATINGS | PLAYLIST  # and not when it is refuted and forgotten either
    lab.learn(harm(suspicion))

    tried = [plan.hypothesis for plan in lab.plans() if plan.purpose in {"explore", "recheck"}]

    assert tried.count(suspicion) <= 1  # that is still to settle it
    others = [each for each in tried if each != suspicion]
    assert not any(faults <= hypothesis for faults in rejected for hypothesis in others)


def test_rechecks_that_came_to_something_are_counted_on_the_certificate() -> None:
    lab = Lab(serving(PROGRAM), Settings(kinds=("error",), min_traffic=5, rechecks=2))
    lab.plans()

    rechecked = [each for each in lab.results if each.purpose == "recheck"]
    decided = [each for each in rechecked if each.succeeded is not None]
    rechecks = lab.exploration.knowledge.certificate()["certificate"]["rechecks"]
    assert len(rechecked) == 2
    assert rechecks["tried"] == len(decided) > 0
    assert rechecks["violated"] == 0


# --- A liar ------------------------------------------------------------------------------------


class Liar(Application):
    """In some experiments, drawn by lot, every treated device says that it saw a failure.

    Not in those that confirm: what a finding rests on is that it hurt twice, and no more is
    claimed. ``lies`` at most, since a liar without end can be explored without end.
    """

    def __init__(self, serve: Serve, seed: int, lies: int) -> None:
        super().__init__(serve)
        self.rng = random.Random(seed)
        self.left = lies
        self.told: set[str] = set()
        self.honest: set[str] = set()

    def request(self, experiment: Experiment | None = None, arm: Arm = "treatment") -> Observation:
        seen = super().request(experiment, arm)
        if experiment is None or arm == "control" or not self._lies(experiment):
            return seen
        return replace(seen, outcome=Outcome(seen.outcome.trace_id, seen.outcome.device, "", False))

    def _lies(self, experiment: Experiment) -> bool:
        name = experiment.id
        if name not in self.told | self.honest:
            lie = experiment.purpose in {"explore", "recheck"} and self.rng.random() < 0.4
            (self.told if lie and self.left else self.honest).add(name)
            self.left -= lie and self.left > 0
        return name in self.told


@given(working(points=5), st.integers(0, 50), st.integers(1, 4), st.sampled_from([None, 3]))
def test_false_harm_leaves_no_false_finding_and_hides_no_true_one(
    program: Call, seed: int, lies: int, cap: int | None
) -> None:
    # Given a program, and devices that say that it failed in experiments in which it did not
    liar = Liar(serving(program), seed, lies)
    bounds = Settings(kinds=("error",), seed=seed, max_union=cap, min_traffic=5)
    # When a campaign over errors has nothing left to try
    (exploration,) = explore_application(liar, bounds).explorations.values()
    # Then its findings are the minimal failing sets, exactly, and every one is confirmed
    truth = failing_sets(program, errors_of(program), 2)
    assert {faults for faults, _ in exploration.knowledge.findings()} == truth
    assert {faults for faults, state in exploration.states.items() if state == "open"} == truth
    assert set(exploration.states.values()) <= {"open", "refuted"}
    assert check(exploration.knowledge.certificate()["certificate"]) == []


# --- Learned again -----------------------------------------------------------------------------


HISTORIES = settings(max_examples=int(os.environ.get("LDFI_HISTORIES", settings().max_examples)))
"""How many are drawn; ``make soak-properties`` draws many more, and others each time."""


P1 = Call("p1", (Step("optional", (Call("p2", impatient=True),)),))
GIVES_UP_BEFORE_A_FALLBACK = Call("root", (Step("fallback", (Call("p0", impatient=True), P1)),))
"""A delay of ``p0`` makes it fail. Both were proposed by name, and rejecting that said nothing."""


def same(one: Exploration, other: Exploration) -> None:
    """Whether two explorations know the same, and go on alike."""
    assert one.states == other.states
    assert one.knowledge.findings() == other.knowledge.findings()
    assert one.knowledge.certificate() == other.knowledge.certificate()
    assert one.plan() == other.plan()
    assert one.finished == other.finished


@HISTORIES
@given(
    working(points=4),
    st.integers(0, 50),
    st.integers(0, 3),
    st.sampled_from([("error",), ("error", "delay")]),
)
@example(GIVES_UP_BEFORE_A_FALLBACK, 27, 0, ("error", "delay"))
def test_lessons_learned_again_give_what_was_known(
    program: Call, seed: int, lies: int, kinds: tuple[str, ...]
) -> None:
    # Given an exploration with true and false harm, refuted suspicions and rejected hypotheses
    bounds = Settings(kinds=kinds, seed=seed, max_union=4, min_traffic=5)
    lab = Lab(serving(program), bounds, application=Liar(serving(program), seed, lies))
    for step in range(200):
        # When it is broken off anywhere, and the same results are learned in the same order
        again = lab.fresh()
        again.replay(lab.results)
        plan, told = lab.exploration.plan(), again.plan()
        # Then the same is known, and the same comes next
        assert told == plan
        assert again.states == lab.exploration.states
        assert again.knowledge.certificate() == lab.exploration.knowledge.certificate()
        if plan is None:
            same(again, lab.exploration)
            return
        if step == 2 and plan.purpose == "explore":
            lab.learn(ExperimentResult(plan.hypothesis, succeeded=None, purpose="rejected"))
        else:
            lab.carry_out(plan)
    raise AssertionError("200 experiments were not enough")


def test_a_kind_that_nobody_asked_for_is_not_certified() -> None:
    """Where delays alone are tried, a call that gave up says nothing of errors there."""
    lab = Lab(serving(PROGRAM), replace(BOUNDS, kinds=("delay",)))
    gave_up = frozenset({("delay@ratings", "error@ratings")})
    relied_on, called = {"error@ratings", "delay@layout"}, {"ratings", "layout"}
    slow = frozenset({"delay@ratings"})
    lab.learn(tolerated(slow, relied_on, called, implications=gave_up))
    lab.plans()
    certificate = lab.exploration.knowledge.solver_input.explorer.certificate().data
    kinds = {each.partition("@")[0] for each in certificate["axioms"]["language"]["faults"]}
    assert "error" not in kinds


def test_a_shared_database_learned_again() -> None:
    lab = Lab(shared_database)
    lab.plans()
    again = lab.fresh()
    again.replay(lab.results)

    same(again, lab.exploration)
    assert again.states == {frozenset({"down@db"}): "open"}
    assert isinstance(again.knowledge.traffic, Traffic)


def test_what_nobody_is_told_of_is_the_same_and_nothing_is_worked_out_for_it() -> None:
    lab = Lab(shared_database)
    lab.plans()
    replayed, recalled = lab.fresh(), lab.fresh()
    replayed.replay(lab.results)
    recalled.replay(lab.results, told=False)

    assert recalled.knowledge._solver_input is None
    assert recalled.snapshot() == replayed.snapshot()
    same(recalled, replayed)


DB = frozenset({"down@db"})
SURVIVED = [ExperimentResult(DB, succeeded=True, purpose="verify")] * 2


@pytest.mark.parametrize("in_one_piece", [False, True])
@pytest.mark.parametrize(
    "later",
    [[], SURVIVED[:1], SURVIVED, [ExperimentResult(DB, succeeded=None, purpose="rejected")]],
)
def test_a_system_that_is_none_any_more_keeps_nobody_from_starting(
    later: list[ExperimentResult], in_one_piece: bool
) -> None:
    # Given a system that was down, which hurt, and what was learned of it since
    lab = Lab(shared_database)
    lab.plans()
    fired = frozenset(fault for each in lab.results if each.injected == DB for fault in each.fired)
    results = [*lab.results, *(replace(each, fired=fired) for each in later)]
    other = harm(frozenset({"refused@api>http:GET:history/rows"}))
    results.append(other)
    # When its calls reach systems of their own by now, and somebody starts
    topology = lab.traffic.topology
    before = lab.fresh()
    before.replay(results)
    topology.callees = {point: point for point in topology.callees}
    topology.changes += 1
    again = lab.fresh()
    if in_one_piece:
        again.resume(before.snapshot())
    else:
        again.replay(results)
    # Then what was said of it stays, and is of no other set; what failed then counts by its name
    assert again.states[DB] == ("fixed" if later == SURVIVED else "open")
    assert again.states[other.injected] == "suspected"
    assert (again.states.get(fired) == "suspected") == (later != SURVIVED)
    # And nobody tries it, and nothing on the certificate is wrong
    lab.exploration = again
    assert all(plan.hypothesis != DB for plan in lab.plans())
    assert not check(again.knowledge.solver_input.explorer.certificate().data)


def one_store(faults: frozenset[str]) -> tuple[list[Span], bool]:
    """A page asks one store three things; without reviews it shows bestsellers."""
    fails = {point: kind for kind, _, point in (fault.partition("@") for fault in faults)}
    spans = []
    for at, what in enumerate(("price", "reviews", "bestsellers"), start=1):
        point = f"page>http:GET:store/{what}"
        fired, times = fails.get(point, ""), (10 * at, 10 * at + 9)
        asked = {"point": point, "fired": fired, "peer": "store"}
        spans.append(span(what, "root", at=times, failed=bool(fired), **asked))
    good = not {f"page>http:GET:store/{what}" for what in ("reviews", "bestsellers")} <= {*fails}
    return [*spans, span("root", kind="server", at=(0, 99), failed=not good)], good


@given(st.integers(0, 20))
def test_what_a_part_of_supersedes_is_not_confirmed_again_and_again(seed: int) -> None:
    lab = Lab(one_store, Settings(kinds=("error",), seed=seed, min_traffic=5))
    plans = lab.plans()
    assert lab.exploration.plan() is None
    assert len(plans) < 20
    part = frozenset(f"refused@page>http:GET:store/{what}" for what in ("reviews", "bestsellers"))
    assert lab.exploration.states[part] == "open"
    assert lab.exploration.states.get(frozenset({"down@store"})) in {None, "superseded"}


# --- What nature says to try first ---------------------------------------------------------------


def suspecting(lab: Lab, *suspects: Iterable[str]) -> Lab:
    """Requests have failed by themselves and blamed these points, the first ones most often."""
    for count, points in enumerate(reversed(suspects), start=1):
        lab.traffic.suspected.counts[frozenset(points)] = count
    return lab


def test_what_fails_by_itself_and_hurts_is_tried_alone_before_anything_else() -> None:
    lab = suspecting(Lab(serving(PROGRAM)), ["layout"], ["ratings"])

    tried = lab.plans()

    explored = [each.hypothesis for each in tried if each.purpose == "explore"]
    assert explored[:2] == [LAYOUT, RATINGS]
    assert explored.count(RATINGS) == 1
    assert {each.hypothesis for each in tried if each.purpose == "confirm"} == {LAYOUT, LISTS}


def test_suspects_beyond_the_bounds_or_protected_or_known_are_not_tried_for_that() -> None:
    lab = suspecting(
        Lab(serving(PROGRAM)), ["layout", "ratings", "playlist"], ["layout"], ["nobody knows it"]
    )
    knowledge = Knowledge("GET /", BOUNDS, lab.traffic, protected=("layout",))
    assert list(suspicions(knowledge)) == []
    # As is done with a point where nothing ever fires
    knowledge.solver_input.explorer.exclude(RATINGS)
    lab.traffic.suspected.counts[frozenset({"ratings"})] += 1
    assert list(suspicions(knowledge)) == []
    assert list(suspicions(lab.exploration.knowledge)) == [LAYOUT, RATINGS]
    lab.learn(harm(LAYOUT))
    assert list(suspicions(lab.exploration.knowledge)) == [RATINGS]


def test_a_suspicion_without_an_answer_holds_up_nothing() -> None:
    lab = suspecting(Lab(serving(PROGRAM)), ["layout"], ["ratings"])
    lab.learn(ExperimentResult(LAYOUT, succeeded=None))
    assert lab.exploration.plan() == Plan(RATINGS, "explore")
    lab.exploration.called_off.add(RATINGS)
    assert len(lab.exploration.plan().hypothesis) > 1  # type: ignore[union-attr]


@given(st.data(), working(points=5), st.integers(0, 3), st.sampled_from([None, 3]))
def test_whatever_nature_suspects_the_same_is_found(
    data: st.DataObject, program: Call, seed: int, cap: int | None
) -> None:
    # Given any program, and requests that blame any of its points, rightly or not
    blamed = st.frozensets(st.sampled_from(points_of(program)), min_size=1, max_size=3)
    suspects = data.draw(st.lists(blamed, unique=True, max_size=5))
    bounds = Settings(kinds=("error",), seed=seed, max_union=cap, min_traffic=5, rechecks=0)
    lab = suspecting(Lab(serving(program), bounds), *suspects)
    # When all is tried
    tried = lab.plans()
    # Then what is found is what there is, and no suspicion was tried twice
    known = lab.exploration.knowledge
    found = {faults for faults, _ in known.findings()}
    assert found == failing_sets(program, errors_of(program), 2)
    assert check(known.certificate()["certificate"]) == []
    alone = Counter(each.hypothesis for each in tried if each.purpose == "explore")
    assert all(alone[frozenset(f"error@{p}" for p in each)] <= 1 for each in suspects)


# --- Two that hurt, and none between that was survived ------------------------------------------

ANSWERS = st.lists(
    st.sampled_from(["harmful", "tolerated", "inconclusive", "interference"]), max_size=24
)


def answer(lab: Lab, plan: Plan, verdict: str) -> ExperimentResult:
    """The result of an experiment that came to this, whatever the program would have done."""
    hurts = harm(plan.hypothesis, plan.purpose)
    if verdict == "harmful":
        return hurts
    nothing = replace(hurts, succeeded=None, fired=frozenset())
    if verdict != "tolerated":
        return replace(nothing, spread="turned away" if verdict == "interference" else "")
    points = lab.exploration.knowledge.points
    failed = {fault.partition("@")[2] for fault in plan.hypothesis}
    relied_on = (f"error@{point}" for point in points - failed)
    return tolerated(plan.hypothesis, relied_on, points, purpose=plan.purpose)


@given(ANSWERS)
@example(["harmful", "tolerated", "harmful", "harmful"])
@example(["interference"] * 6)
@example(["harmful", "interference", "interference"])
def test_a_finding_takes_two_that_hurt_and_none_survived_between(answers: list[str]) -> None:
    # Given a set that is asked for, and experiments that come to anything
    lab = Lab(serving(PROGRAM), only=[LAYOUT])
    came: list[str] = []
    for verdict in answers:
        plan = lab.exploration.plan()
        if plan is None:
            break
        assert plan.hypothesis == LAYOUT
        came.append(verdict)
        lab.learn(answer(lab, plan, verdict))
    # Then it is a finding only where the newest answers that say anything are two that hurt
    said = [each for each in came if each in {"harmful", "tolerated"}]
    if lab.exploration.states.get(LAYOUT) == "open":
        assert said[-2:] == ["harmful", "harmful"]
    # And whoever learns the same again knows the same, and goes on in the same way
    again = lab.fresh()
    again.replay(lab.results)
    assert again.states == lab.exploration.states
    assert again.plan() == lab.exploration.plan()


def test_a_confirmation_that_was_survived_begins_anew_with_a_first_slot() -> None:
    lab = Lab(serving(PROGRAM))
    opening = Opening(3.0, 0.001)
    lab.learn(replace(harm(LAYOUT), opening=opening))
    plan = lab.exploration.plan()
    assert (plan, plan and plan.opening) == (Plan(LAYOUT, "confirm"), opening)
    lab.learn(answer(lab, Plan(LAYOUT, "confirm"), "tolerated"))
    # When it is tried again, it takes a level of its own, and what it shows is a suspicion
    assert lab.exploration.plan() == Plan(LAYOUT, "explore")
    later = Opening(4.0, 0.0005)
    assert lab.learn(replace(harm(LAYOUT), opening=later)) == {}
    assert lab.exploration.states[LAYOUT] == "suspected"
    # Then the one after that has to confirm it, with what that one left
    plan = lab.exploration.plan()
    assert (plan, plan and plan.opening) == (Plan(LAYOUT, "confirm"), later)
    assert lab.learn(harm(LAYOUT, "confirm")) == {LAYOUT: "open"}


def test_what_hurts_every_other_time_is_left_suspected() -> None:
    lab, came = Lab(serving(PROGRAM)), list[str]()
    lab.learn(harm(LAYOUT))
    while (plan := lab.exploration.plan()) is not None and plan.hypothesis == LAYOUT:
        came.append("harmful" if came and came[-1] == "tolerated" else "tolerated")
        lab.learn(answer(lab, plan, came[-1]))
        assert len(came) < 20
    assert lab.exploration.states[LAYOUT] == "suspected"


def test_interference_twice_leaves_a_set_open_and_the_rest_is_explored() -> None:
    # Given ratings, without which requests go on, and others fail whenever it is tried
    lab, tried = Lab(serving(PROGRAM)), []
    while (plan := lab.exploration.plan()) is not None:
        tried.append(plan.hypothesis)
        assert len(tried) < 30
        if plan.hypothesis >= RATINGS:
            lab.learn(answer(lab, plan, "interference"))
        else:
            lab.carry_out(plan)
    # Then it is tried twice alone, makes no finding, and hides none
    assert tried.count(RATINGS) == INTERFERENCES
    assert lab.exploration.states == {LAYOUT: "open", LISTS: "open"}
    explorer = lab.exploration.knowledge.solver_input.explorer
    assert explorer.open_hypotheses() == (RATINGS,)
    in_vain = [each["faults"] for each in explorer.certificate().data["inconclusive"]]
    assert sorted(RATINGS) in in_vain


def test_where_others_fail_whatever_is_tried_a_run_ends() -> None:
    steps = tuple(Step("optional", (Call(f"service{number}"),)) for number in range(30))
    lab, tried = Lab(serving(Call("root", steps))), 0
    while (plan := lab.exploration.plan()) is not None:
        lab.learn(answer(lab, plan, "interference"))
        tried += 1
        assert tried <= RESTLESS
    assert lab.exploration.finished
    assert lab.exploration.states == {}
