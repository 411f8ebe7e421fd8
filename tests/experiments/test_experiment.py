from __future__ import annotations

from dataclasses import replace

from experiments.domain.experiment import Experiment
from experiments.domain.lesson import lesson_of
from experiments.domain.observation import Observation, Outcome
from experiments.domain.request_class import class_of
from experiments.domain.settings import Settings
from fit.context import Arm
from fit.faults import Fault
from lineage.lineage import Lineage
from tests.lineage.spans import lineage, span

FAULT = Fault("a", "error")


def an_experiment() -> Experiment:
    boot = class_of({"method": "GET", "path": "/boot"})
    experiment = Experiment("e1", boot, frozenset({"error@a"}), (FAULT,), Settings())
    experiment.arm(0.0)
    return experiment


def a_run(fired: bool = True) -> Lineage:
    mark = "error" if fired else ""
    return lineage(span("root", kind="server"), span("a", "root", failed=fired, fired=mark))


def seen(
    number: int, arm: Arm, *, success: bool, fired: bool = True, device: str = ""
) -> Observation:
    run = a_run(fired) if arm == "treatment" else a_run(fired=False)
    would = frozenset({"error@a"}) if arm == "control" and fired else frozenset[str]()
    run = replace(run, experiment="e1", arm=arm, would_fire=would, trace_id=f"{number:032x}")
    return Observation(run, Outcome(run.trace_id, device or f"d{number}", "", success))


def test_a_harmful_one_is_put_down_to_what_fired() -> None:
    experiment = an_experiment()
    for number in range(40):
        experiment.observe(seen(2 * number, "control", success=True))
        experiment.observe(seen(2 * number + 1, "treatment", success=False))

    assert experiment.review(5.0)
    assert (experiment.state, experiment.verdict) == ("decided", "harmful")
    lesson = lesson_of(experiment, frozenset({"a"}))
    assert lesson.succeeded is False
    assert lesson.fired == {"error@a"}


def test_a_fault_that_never_fired_proves_nothing() -> None:
    experiment = an_experiment()
    for number in range(40):
        experiment.observe(seen(2 * number, "control", success=True, fired=False))
        experiment.observe(seen(2 * number + 1, "treatment", success=True, fired=False))

    assert not experiment.review(5.0)
    assert experiment.review(31.0)
    assert (experiment.verdict, experiment.reason) == ("inconclusive", "no fault fired")
    assert lesson_of(experiment, frozenset()).succeeded is None
    assert not experiment.exposed


def test_a_device_counts_once_however_often_it_asks() -> None:
    experiment = an_experiment()
    for number in range(100):
        arm: Arm = "treatment" if number % 2 else "control"
        experiment.observe(seen(number, arm, success=False, device=arm))

    assert not experiment.review(5.0)
    assert {len(count.devices) for count in experiment.arms.values()} == {1}


def test_failures_in_control_abort_it() -> None:
    experiment = an_experiment()
    for number in range(20):
        experiment.observe(seen(number, "control", success=number % 2 == 0))

    assert experiment.review(5.0)
    assert experiment.state == "aborted"
    assert "control" in experiment.reason


def test_requests_that_come_after_the_verdict_change_nothing_but_are_counted() -> None:
    experiment = an_experiment()
    for number in range(40):
        experiment.observe(seen(2 * number, "control", success=True))
        experiment.observe(seen(2 * number + 1, "treatment", success=False))
    experiment.review(5.0)
    exposed, devices = len(experiment.exposed), len(experiment.arms["treatment"].devices)

    experiment.observe(seen(999, "treatment", success=False))

    assert len(experiment.exposed) == exposed + 1
    assert len(experiment.arms["treatment"].devices) == devices
