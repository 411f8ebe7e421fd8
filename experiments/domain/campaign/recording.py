"""What an experiment leaves behind for good, when it is over: the record that is hashed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ldfi.checker.record import Arms, Rested, RunRecord
from ldfi.checker.statistics import JudgingRule
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.two_slots import slot_of
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.run_summary import MOST_CALLS, Run, RunCall, Runs
from ldfi.lineage.tree import Call

GONE: Final = "whoever ran it was gone"


def proved(experiment: Experiment, result: ExperimentResult) -> ExperimentResult:
    """Return the result with the record that its verdict came from; later reports do not change
    it."""
    return replace(result, proof=record_of(experiment, result, 1).proof())


def draft_of(experiment: Experiment, now: float) -> dict[str, Any]:
    """Return the draft of a record, written when an experiment is armed, in case the process
    dies: what was tried, without a verdict or a level of e-LOND."""
    begun = record_of(experiment, None, 1)
    return replace(begun, state="aborted", reason=GONE, began=now, ended=now).proof()


def abandoned(draft: Mapping[str, Any], now: float, number: int) -> RunRecord:
    """Return the record of an experiment that no process ended. ``number``: of the run."""
    begun = RunRecord.of_proof(draft, number)
    return replace(begun, ended=max(begun.began, now))


def record_of(experiment: Experiment, result: ExperimentResult | None, number: int) -> RunRecord:
    """Return the record of an experiment that was armed and is over. ``result``: None where it
    has none.

    ``number``: which run of its class version it is. A wall clock may have been set back since it
    began: then it ended as it began. What a result carries as its proof is taken as it is.
    """
    if result is not None and result.proof is not None:
        return RunRecord.of_proof(result.proof, number)
    settings = experiment.settings
    counted_elsewhere = settings.promql is not None
    in_order = None if counted_elsewhere else experiment.order.traces()
    traces = experiment.kept.traces(in_order, experiment.stays.failed_later())
    began = experiment.armed_at or 0.0
    opening = experiment.opening
    return RunRecord(
        experiment=experiment.id,
        request_class=experiment.request_class,
        version=experiment.version,
        number=number,
        purpose=experiment.purpose,
        hypothesis=tuple(sorted(experiment.hypothesis)),
        faults=tuple(map(str, experiment.faults)),
        state=experiment.state,
        verdict=experiment.verdict,
        overruled=experiment.overruled if experiment.verdict is not None else None,
        reason=experiment.reason,
        began=began,
        ended=max(began, experiment.ended_at or 0.0),
        rule=JudgingRule(
            name=settings.rule,
            alpha=experiment.alpha,
            alpha_tolerated=settings.alpha_tolerated,
            delta=settings.delta,
            min_samples=settings.min_samples,
            ratio=settings.control / settings.treatment,
        ),
        own=settings.alpha_harmful,
        level=experiment.level,
        slot=slot_of(experiment.purpose, settings),
        opening=None if opening is None else (opening.evidence, opening.level),
        order=None if counted_elsewhere else "".join(letter for _, letter, _ in traces),
        looks=_looks(experiment) if counted_elsewhere else None,
        arms=_arms(experiment),
        worse=experiment.stays.worse,
        not_worse=experiment.stays.not_worse,
        fired=tuple(sorted(result.fired)) if result else (),
        relied_on=tuple(sorted(result.relied_on)) if result else (),
        degraded=result.degraded if result else False,
        traces=Rested.on(traces, result.traces if result else ()),
        reports=experiment.heard,
        held=experiment.holds if math.isfinite(experiment.holds) else None,
        seldom=_seldom(experiment),
        followed=experiment.stay,
    )


def _seldom(experiment: Experiment) -> str | None:
    return None if experiment.rare is None else "".join("os"[each] for each in experiment.rare)


def _looks(experiment: Experiment) -> tuple[tuple[int, int, int, int], ...]:
    return tuple(
        (each.control, each.control_failed, each.treated, each.treated_failed)
        for each in experiment.kept.looks
    )


def _arms(experiment: Experiment) -> Arms:
    control, treated = experiment.arms["control"], experiment.arms["treatment"]
    return Arms(control.total, control.failures, treated.total, treated.failures)


# Writes down how two requests of an experiment went: one that failed beside one that did not.
#
# Spans are not kept (design, section 10), so of each experiment that taught something two requests
# are written down: one of the control group that went right, and the one of the treated that its
# result names first as its evidence.
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
