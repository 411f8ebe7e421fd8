"""What if: held against a program that is asked itself."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.experiments.control.evidence import knowledge_of
from ldfi.experiments.domain.gates.whatif import what_if
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store.arming import new_row
from ldfi.experiments.store.database import Database
from ldfi.testing.programs import Call, Run, points_of
from tests.experiments.domain.campaign.test_exploration import (
    BOUNDS,
    LAYOUT,
    LISTS,
    PROGRAM,
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
)
from tests.lineage.drawn import programs


def survives(program: Call, points: set[str]) -> bool:
    return Run(frozenset(f"error@{point}" for point in points)).execute(program).good


@given(programs(points=5), st.integers(0, 50), st.integers(0, 40), st.data())
def test_what_is_said_to_hurt_or_to_be_safe_does_so(
    program: Call, seed: int, steps: int, data: st.DataObject
) -> None:
    # Given what was learned of a program, up to some experiment or other
    points = points_of(program)
    assume(points)
    assume(Run(frozenset()).execute(program).good)
    lab = Laboratory(serving(program), Settings(kinds=("error",), seed=seed, min_traffic=5))
    for _ in range(steps):
        plan = lab.exploration.plan()
        if plan is None:
            break
        lab.carry_out(plan)
    # When something is down
    down = data.draw(st.sets(st.sampled_from(points), min_size=1, max_size=2))
    answer = what_if(lab.exploration.knowledge, down)
    # Then nothing that is said is wrong; what nobody knows may be either
    if answer is None:
        assert not down & lab.exploration.knowledge.points
        return
    known = lab.exploration.knowledge.points
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
    lessons = [(each, 1) for each in lab.lessons] + [(harm(RATINGS), 0)]
    with database.change(1.0) as change:
        for number, (lesson, version) in enumerate(lessons):
            experiment = _an_experiment(number)
            row = new_row(experiment, f"c{number % 2}", 1)
            row.state, row.ended_at = "decided", float(number)
            row.lesson = {**lesson.to_json(), "version": version}
            change.session.add(row)
    # When somebody asks what is known of it
    with database.read() as session:
        knowledge = knowledge_of(session, known)
    # Then it is what all of them found, and nothing of the older version
    assert {faults for faults, _ in knowledge.findings()} == {LAYOUT, LISTS}


def _an_experiment(number: int) -> Experiment:
    return Experiment(f"e{number}", "GET /", BOOT, LAYOUT, (), BOUNDS)
