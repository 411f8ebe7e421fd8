"""What an experiment leaves behind bears its verdict out, whatever happened in it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.canonical import canonical, read
from ldfi.checker.record import RunRecord
from ldfi.checker.verdict_check import wrong
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.recording import record_of, run_of
from ldfi.experiments.domain.campaign.result import result_of
from ldfi.experiments.domain.judging.experiment import Experiment, Purpose
from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.settings import PromqlOutcome, Settings
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.store import experiments
from ldfi.experiments.store.arming import new_row
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.digest import digest
from ldfi.lineage.run_summary import MOST_CALLS, Run, Runs
from ldfi.lineage.span import Trace
from ldfi.testing.programs import Call, Step
from ldfi.testing.spans import span
from ldfi.testing.world import PROGRAM
from tests.experiments.domain.judging.test_experiment import an_experiment, seen
from tests.experiments.simulated import (
    BOOT,
    Application,
    a_campaign,
    a_class,
    run_experiment,
    serving,
    traffic_of,
)

COUNTED = PromqlOutcome("failed", "all")
PURPOSES: tuple[Purpose, ...] = ("explore", "confirm", "verify", "recheck")


def of(rng: random.Random, *, counted: bool) -> Experiment:
    """An experiment of some purpose, at some level, by some rule."""
    drawn: dict[str, Any] = {"rule": rng.choice(["sequential", "sequential", "threshold"])}
    drawn |= {"delta": rng.choice([0.15, 0.4]), "min_samples": rng.choice([1, 4, 10])}
    drawn |= {"control": rng.choice([0.1, 0.3]), "confirm": rng.random() < 0.7}
    promql = COUNTED if counted else None
    settings = Settings(treatment=0.1, guardrail=1.0, promql=promql, **drawn)
    purpose: Purpose = rng.choice(PURPOSES)
    opening = Opening(rng.uniform(0, 12), rng.uniform(1e-6, 1e-3))
    experiment = Experiment(
        *("e1", "GET /", BOOT, frozenset({"error@a"}), (Fault("a", "error"),), settings),
        purpose=purpose,
        opening=opening if purpose == "confirm" and rng.random() < 0.8 else None,
    )
    one = counted or settings.rule == "threshold"
    stay = 0.0 if one else rng.choice([0.0, 5e-9, 3e-8])
    experiment.arm(100.0, rng.choice([1.0, 1e-2, 1e-4]), stay=stay)
    experiment.taken()
    return experiment


def observations(rng: random.Random) -> list[Observation]:
    """Requests of devices that come once or twice, and report in any order; some have holes."""
    rates = rng.choice([(0.0, 1.0), (0.05, 0.05), (0.2, 0.6)])
    drawn = []
    for number in range(rng.randint(0, 90)):
        treated = rng.random() < 0.3
        arm = "treatment" if treated else "control"
        fired, good = rng.random() < 0.9, rng.random() >= rates[treated]
        device = f"{arm}{rng.randrange(60)}"
        each = seen(number, arm, success=good, fired=fired, device=device)  # type: ignore[arg-type]
        degraded = good and rng.random() < 0.1
        hole = "parent" if rng.random() < 0.1 else ""
        lineage = replace(each.lineage, trace=replace(each.lineage.trace, missing=hole))
        drawn.append(Observation(lineage, replace(each.outcome, degraded=degraded)))
    rng.shuffle(drawn)
    return drawn


def written(experiment: Experiment) -> RunRecord:
    """Its record, as it is read back from where it was written."""
    result = result_of(experiment, frozenset({"a"})) if experiment.state == "decided" else None
    record = record_of(experiment, result, 1)
    again = RunRecord.from_json(read(canonical(record.to_json())))
    assert again.leaf == record.leaf
    return again


def end(rng: random.Random, experiment: Experiment) -> None:
    if rng.random() < 0.2:
        experiment.abort("called off", 200.0)
    else:
        experiment.stop("window over", 200.0)
    experiment.used = len(experiment.exposed | experiment.passed_by) + rng.choice([0, 0, 30])
    experiment.enrolled = len(experiment.arms["control"].devices | experiment.spared)
    experiment.settle(300.0, disarmed=True)
    assert experiment.settle(400.0, disarmed=True) or experiment.over


@given(st.integers(0, 2**32))
def test_what_devices_told_bears_the_verdict_out(seed: int) -> None:
    rng = random.Random(seed)
    experiment = of(rng, counted=False)
    for each in observations(rng):
        experiment.observe(each)
    end(rng, experiment)
    record = written(experiment)

    assert list(wrong(record)) == []
    assert (record.verdict, record.state) == (experiment.verdict, experiment.state)
    assert record.traces.count == len(record.order or "")
    assert record.arms.treated == experiment.arms["treatment"].total


@given(st.integers(0, 2**32))
def test_what_somebody_else_counted_bears_the_verdict_out(seed: int) -> None:
    rng = random.Random(seed)
    experiment = of(rng, counted=True)
    for each in observations(rng)[:20]:
        experiment.observe(each)
    totals = Counts()
    for _ in range(rng.randint(0, 8)):
        n0, n1 = rng.choice([0, 40]), rng.choice([0, 9])
        totals += Counts(n0, rng.randint(0, n0 // 8), n1, rng.choice([0, n1, n1 // 2]))
        experiment.count(totals)
    end(rng, experiment)
    record = written(experiment)

    assert list(wrong(record)) == []
    assert record.order is None
    assert record.slot == "alone"


def test_a_clock_that_was_set_back_ends_nothing_before_it_began() -> None:
    experiment = an_experiment()
    experiment.armed_at = 500.0
    experiment.abort("called off", 100.0)
    experiment.settle(100.0, disarmed=True)
    assert experiment.settle(200.0, disarmed=True) or experiment.over
    assert list(wrong(written(experiment))) == []


def test_a_trace_has_one_hash_however_it_came() -> None:
    spans = [span("root", kind="server"), span("a", "root"), span("b", "root", failed=True)]
    one = digest(Trace.of("1" * 32, spans))
    assert digest(Trace.of("1" * 32, [*reversed(spans), spans[0]])) == one


@pytest.mark.parametrize(
    "other",
    [
        span("a", "root", failed=True),
        span("a", None),
        span("b", "root"),
        span("a", "root")._replace(start=7),
        span("a", "root")._replace(end=77),
        span("a", "root")._replace(links=(("1", "2"),)),
    ],
)
def test_another_trace_has_another_hash(other: object) -> None:
    root, real = span("root", kind="server"), span("a", "root")
    changed = Trace("1" * 32, (root, other))  # type: ignore[arg-type]
    assert digest(changed) != digest(Trace("1" * 32, (root, real)))
    assert digest(Trace("2" * 32, (root, real))) != digest(Trace("1" * 32, (root, real)))


# Two requests of each experiment that taught something are kept, and say how it went.


SETTINGS = Settings(kinds=("error",), strategy="smallest", min_traffic=50)


def first_harmful(program: Call) -> tuple[Campaign, Experiment, Runs]:
    """The first experiment of a campaign on this program that hurts, and what is shown of it."""
    application = Application(serving(program))
    classes = {"GET /": a_class(traffic_of(application, SETTINGS.min_traffic))}
    campaign = a_campaign(SETTINGS)
    for step in range(50):
        campaign.enroll(classes, lambda _: ())
        for experiment in campaign.propose(classes, lambda _n, _e: None, 1, 100.0 * step):
            level = campaign.fdr.next_level(campaign.settings.fdr)
            run_experiment(application, experiment, 100.0 * step, level)
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
    both = (Call("a", (Step("critical", (inner,)),)), Call("b"))
    program = Call("root", tuple(Step("critical", (each,)) for each in both))
    run = run_of(Application(serving(program)).request())

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
