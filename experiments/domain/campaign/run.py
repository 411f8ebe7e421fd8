"""Writes down how two requests of an experiment went: one that failed beside one that did not.

Spans are not kept (design, section 10), so of each experiment that taught something two requests
are written down: one of the control group that went right, and the one of the treated that its
result names first as its evidence.
"""

from __future__ import annotations

from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.run import MOST_CALLS, Run, RunCall, Runs
from ldfi.lineage.tree import Call


def runs_of(experiment: Experiment, result: ExperimentResult) -> Runs:
    """Return the good and the bad request that show an experiment's result best."""
    shown = result.traces[:1]
    treated = next(
        (each for each in [*experiment.bad, *experiment.good] if each.lineage.trace_id in shown),
        None,
    )
    return Runs(
        control=run_of(experiment.undisturbed) if experiment.undisturbed else None,
        treated=run_of(treated) if treated else None,
    )


def run_of(observation: Observation) -> Run:
    """One request, written down."""
    lineage, outcome = observation.lineage, observation.outcome
    tree = lineage.tree
    calls: list[RunCall] = []
    pending: list[tuple[Call, int | None]] = [(call, None) for call in reversed(tree.calls)]
    left_out = 0
    while pending:
        call, within = pending.pop()
        if len(calls) >= MOST_CALLS:
            left_out += 1
        else:
            calls.append(_written(call, within, tree.start))
        place = len(calls) - 1
        pending.extend((inner, place) for inner in reversed(call.calls))
    return Run(
        trace_id=lineage.trace_id,
        success=outcome.success,
        error_code=outcome.error_code,
        duration=outcome.duration or lineage.duration,
        calls=tuple(calls),
        left_out=left_out,
        features=lineage.features,
        root_failed=lineage.root_error,
    )


def _written(call: Call, within: int | None, start: int) -> RunCall:
    return RunCall(
        point=call.point,
        callee=call.callee,
        within=within,
        failed=call.failed,
        fired=call.fired,
        start=round((call.start - start) / 1e9, 6),
        duration=round((call.end - call.start) / 1e9, 6),
        code=call.code,
    )
