"""What if: held against a program that is asked itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.whatif import what_if
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.evidence import knowledge_of
from ldfi.experiments.store.arming import new_row
from ldfi.experiments.store.database import Database
from ldfi.testing.programs import Call, Run, points_of
from ldfi.testing.world import PROGRAM
from tests.experiments.domain.campaign.test_exploration import (
    BOUNDS,
    LAYOUT,
    LISTS,
    RATINGS,
    harm,
)
from tests.experiments.domain.campaign.test_exploration import Lab as Laboratory
from tests.experiments.simulated import (
    BOOT,
    Application,
    a_class,
    explore,
    serving,
    traffic_of,
    working,
)


def survives(program: Call, points: set[str]) -> bool:
    return Run(frozenset(f"error@{point}" for point in points)).execute(program).good


@st.composite
def learned(draw: st.DrawFn, points: int = 1, traffic: int = 5) -> tuple[Call, Knowledge]:
    """A program of some points, and what was learned of it up to some experiment or other."""
    program = draw(working(points=5).filter(lambda made: len(points_of(made)) >= points))
    seed = draw(st.integers(0, 50))
    lab = Laboratory(serving(program), Settings(kinds=("error",), seed=seed, min_traffic=traffic))
    for _ in range(draw(st.integers(0, 40))):
        if (plan := lab.exploration.plan()) is None:
            break
        lab.carry_out(plan)
    return program, lab.exploration.knowledge


@given(learned(), st.data())
def test_what_is_said_to_hurt_or_to_be_safe_does_so(
    given_of: tuple[Call, Knowledge], data: st.DataObject
) -> None:
    program, knowledge = given_of
    # When something is down
    down = data.draw(st.sets(st.sampled_from(points_of(program)), min_size=1, max_size=2))
    answer = what_if(knowledge, down)
    # Then nothing that is said is wrong; what nobody knows may be either
    if answer is None:
        assert not down & knowledge.points
        return
    known = knowledge.points
    assert set(answer.down) == down & known
    if answer.already != "open":
        assert (answer.already == "safe") == survives(program, set(answer.down))
    for point in answer.hurts:
        assert not survives(program, {*answer.down, point})
    for point in answer.safe:
        assert survives(program, {*answer.down, point})
    assert {*answer.hurts, *answer.safe, *answer.unknown} == known - down
    assert len(answer.hurts) + len(answer.safe) + len(answer.unknown) == len(known - down)


def test_when_all_is_explored_pairs_are_all_known() -> None:
    (exploration,) = explore(serving(PROGRAM), BOUNDS).explorations.values()

    answer = what_if(exploration.knowledge, ["playl*"])

    assert answer is not None
    assert answer.already == "safe"
    assert set(answer.hurts) == {"layout", "popular"}
    assert answer.safe == ("ratings",)
    assert answer.unknown == ()
    assert what_if(exploration.knowledge, ["elsewhere"]) is None


def test_when_nothing_is_known_nothing_is_said() -> None:
    lab = Laboratory(serving(PROGRAM), BOUNDS)

    answer = what_if(lab.exploration.knowledge, ["ratings"])

    assert answer is not None
    assert (answer.hurts, answer.safe, answer.already) == ((), (), "open")


def test_evidence_is_that_of_all_campaigns_on_this_version(database: Database) -> None:
    # Given experiments of several campaigns on one class, one of an older version of it
    known = a_class(traffic_of(Application(serving(PROGRAM)), 10))
    lab = Laboratory(serving(PROGRAM), BOUNDS)
    lab.plans()
    results = [(each, 1) for each in lab.results] + [(harm(RATINGS), 0)]
    with database.change(1.0) as change:
        for number, (result, version) in enumerate(results):
            experiment = _an_experiment(number)
            row = new_row(experiment, f"c{number % 2}", 1)
            row.state, row.ended_at = "decided", float(number)
            row.lesson = {**result.to_json(), "version": version}
            change.session.add(row)
    # When somebody asks what is known of it
    with database.read() as session:
        knowledge = knowledge_of(session, known)
    # Then it is what all of them found, and nothing of the older version
    assert {faults for faults, _ in knowledge.findings()} == {LAYOUT, LISTS}


def _an_experiment(number: int) -> Experiment:
    return Experiment(f"e{number}", "GET /", BOOT, LAYOUT, (), BOUNDS)
