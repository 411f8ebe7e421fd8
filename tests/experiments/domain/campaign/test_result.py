"""What a run teaches: whom the requests that failed are put down to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ldfi.experiments.domain.campaign.result import ExperimentResult, result_of, suspects_of
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.faults import Fault
from ldfi.testing.spans import lineage, span
from tests.experiments.simulated import BOOT
from tests.kit.observations import observation

FAULTS = tuple(Fault(point, "error") for point in "abc")
USUAL = frozenset("abc")


def failed_request(number: int, *, named: bool) -> Observation:
    """All three faults fired; ``named``: the trace shows that it was the last one that hurt."""
    calls = [
        span(name, "root", failed=True, fired="error", at=(2 * at, 2 * at + 1))
        for at, name in enumerate("abc", start=1)
    ]
    root = span("root", kind="server", failed=named, at=(1, 8))
    run = replace(lineage(root, *calls), experiment="e", arm="treatment")
    return observation(run, False, number, f"d{number}")


def test_a_trace_that_names_nobody_does_not_outvote_one_that_does() -> None:
    """Of two sets as common as each other the smaller one was taken, and that is the empty one."""
    names = frozenset(map(str, FAULTS))
    experiment = Experiment("e", "GET /", BOOT, names, FAULTS, Settings(kinds=("error",)))
    experiment.arm(0.0)
    experiment.taken()
    experiment.observe(failed_request(1, named=False))
    assert suspects_of(experiment, USUAL) == frozenset()
    experiment.observe(failed_request(2, named=True))
    assert suspects_of(experiment, USUAL) == {"error@c"}
    experiment.verdict = "harmful"
    assert result_of(experiment, USUAL).suspects == {"c"}


def test_harm_of_bystanders_alone_that_is_on_record_is_interference_today() -> None:
    """By an earlier rule it was a suspicion, and harm the second time."""
    fault = frozenset({"error@a"})
    proof = {"overruled": "bystanders", "arms": {"treatment": [4, 0]}}
    seen = {"suspects": frozenset("a"), "traces": ("1",), "spread": "turned away"}
    more: dict[str, Any] = {**seen, "opening": Opening(3.0, 0.001), "proof": proof}
    harm = ExperimentResult(fault, succeeded=False, fired=fault, purpose="confirm", **more)
    read = ExperimentResult.from_json(harm.to_json())
    assert read.interference
    assert read.spared
    assert read.succeeded is None
    assert not (read.fired or read.suspects or read.traces)
    assert (read.opening, read.proof) == (None, harm.proof)
    # But where the tests said so it is harm, though others were hurt as well
    both = replace(harm, proof={"overruled": None})
    assert ExperimentResult.from_json(both.to_json()) == both
