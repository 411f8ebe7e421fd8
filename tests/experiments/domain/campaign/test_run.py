"""Two requests of each experiment that taught something are kept, and say how it went."""

from __future__ import annotations

import json

import pytest

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.run import run_of
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store import experiments
from ldfi.experiments.store.arming import new_row
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.lineage.run import MOST_CALLS, Run, Runs
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import PROGRAM
from tests.experiments.simulated import (
    Application,
    a_campaign,
    a_class,
    run_experiment,
    serving,
    traffic_of,
)

SETTINGS = Settings(kinds=("error",), strategy="smallest", min_traffic=50)


def first_harmful(program: Call) -> tuple[Campaign, Experiment, Runs]:
    """The first experiment of a campaign on this program that hurts, and what is shown of it."""
    application = Application(serving(program))
    classes = {"GET /": a_class(traffic_of(application, SETTINGS.min_traffic))}
    campaign = a_campaign(SETTINGS)
    for step in range(50):
        campaign.enroll(classes, lambda _: ())
        for experiment in campaign.propose(classes, lambda _n, _e: None, 1, 100.0 * step):
            run_experiment(
                application,
                experiment,
                100.0 * step,
                campaign.fdr.next_level(campaign.settings.fdr),
            )
            _, _, runs = campaign.close(experiment)
            if experiment.verdict == "harmful":
                return campaign, experiment, runs
    raise AssertionError("nothing hurt")


def test_a_harmful_experiment_shows_a_run_that_failed_beside_one_that_did_not() -> None:
    _, experiment, runs = first_harmful(PROGRAM)

    assert runs.control is not None
    assert runs.treated is not None
    assert runs.control.success
    assert not runs.treated.success
    assert not any(call.failed or call.fired for call in runs.control.calls)
    fired = {f"{kind}@{call.point}" for call in runs.treated.calls for kind in call.fired}
    assert fired == set(experiment.hypothesis)
    assert experiment.undisturbed is None, "an experiment that is over keeps no spans"


def test_calls_know_what_they_are_within() -> None:
    inner = Call("inner", (Step("critical", (Call("innermost"),)),))
    application = Application(
        serving(
            Call(
                "root",
                (
                    Step("critical", (Call("a", (Step("critical", (inner,)),)),)),
                    Step("critical", (Call("b"),)),
                ),
            )
        )
    )

    run = run_of(application.request())

    points = [call.point for call in run.calls]
    above = {call.point: None if call.within is None else points[call.within] for call in run.calls}
    assert above == {"a": None, "inner": "a", "innermost": "inner", "b": None}


def test_what_is_written_is_read_back() -> None:
    _, _, runs = first_harmful(PROGRAM)

    assert Runs.from_json(json.loads(json.dumps(runs.to_json()))) == runs
    assert Runs.from_json(None) == Runs()


@pytest.mark.parametrize("more", [0, 7])
def test_a_request_of_very_many_calls_is_cut(more: int) -> None:
    calls = tuple(Step("optional", (Call(f"p{number}"),)) for number in range(MOST_CALLS + more))

    run = run_of(Application(serving(Call("root", calls))).request())

    assert len(run.calls) == MOST_CALLS
    assert run.left_out == more
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_they_are_kept_with_the_lesson(database: Database) -> None:
    campaign, experiment, runs = first_harmful(PROGRAM)
    exploration = campaign.explorations["GET /"]
    with database.change(1.0) as change:
        change.session.add(new_row(experiment, campaign.id, 1))
        change.session.flush()
        change.session.get_one(ExperimentRow, experiment.id).state = "settling"
    with database.change(2.0) as change:
        experiments.end(change, experiment, 1, exploration.knowledge.results[-1], runs=runs)

    with database.read() as session:
        result = session.get_one(ExperimentRow, experiment.id).lesson
    assert result is not None
    assert Runs.from_json(result["runs"]) == runs
