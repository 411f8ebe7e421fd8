"""Reads an experiment as every face shows it: from its record, and from itself while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.recording import GONE
from ldfi.experiments.domain.judging.counts import DeviceCounts, counts_so_far
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.queries.wording import outcome_in_a_sentence, outcome_in_words
from ldfi.experiments.store.device_sums import FIGURES, compared, counts_on_record
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import ExperimentRow

Live = Mapping[str, Experiment]
"""Experiments that are not over, by id."""

MOST: Final = 1_000
"""Experiments of one run that are looked at, the newest: a page has to end."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Devices of one arm that were compared, and those of them that failed."""

    devices: int
    failures: int


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """One experiment: what was tried, on how many devices, and what came of it.

    ``hypothesis``: variables of the solver; ``faults``: what is injected for them. Times are Unix
    seconds. ``lost``: whether it was abandoned, so that nobody knows what it did. ``treatment`` and
    ``control``: what was compared; None before anything was. ``open_before``: hypotheses of its
    campaign that were open when it was proposed; None where that is not on record.
    """

    id: str
    campaign_id: str
    run: int
    request_class: str
    hypothesis: tuple[str, ...]
    purpose: str
    state: str
    verdict: str | None
    reason: str
    created_at: float
    armed_at: float | None
    ended_at: float | None
    open_before: int | None
    lost: bool
    counts: DeviceCounts
    treatment: Compared | None
    control: Compared | None

    @property
    def outcome(self) -> str:
        """Return its verdict, or its state where it has none."""
        return self.verdict or self.state

    @property
    def words(self) -> str:
        """Return its outcome in a word or two."""
        return outcome_in_words(self.outcome)

    @property
    def sentence(self) -> str:
        """Return its outcome in a sentence."""
        return outcome_in_a_sentence(self.outcome, self.counts.hurt, self.counts.bystanders_hurt)

    @property
    def when(self) -> float:
        """Return when it ended or, where it has not, began (Unix seconds)."""
        return self.ended_at or self.armed_at or self.created_at


def experiment_summary(row: ExperimentRow, live: Experiment | None = None) -> ExperimentSummary:
    """Read an experiment from its record. ``live``: itself, while it is not over."""
    return _summary(row, row.comparison or {}, live)


def experiment_so_far(
    experiment: Experiment, campaign_id: str, run: int, reserved: int = 0
) -> ExperimentSummary:
    """Read an experiment from itself. ``reserved``: devices, by its record; 0 before it has one."""
    new = ExperimentRow(
        id=experiment.id,
        campaign_id=campaign_id,
        run=run,
        request_class=experiment.request_class,
        hypothesis=sorted(experiment.hypothesis),
        purpose=experiment.purpose,
        verdict=experiment.verdict,
        created_at=experiment.created_at,
        armed_at=experiment.armed_at,
        ended_at=experiment.ended_at,
        open_before=experiment.open_before,
        members_reserved=reserved,
    )
    return _summary(new, {}, experiment)


def experiments_of_run(
    session: Session, campaign_id: str, run: int, live: Live
) -> list[ExperimentSummary]:
    """Read the experiments of a run, newest first, without what only their own pages show."""
    row = ExperimentRow
    columns = (
        *(row.id, row.campaign_id, row.run, row.request_class, row.hypothesis, row.purpose),
        *(row.state, row.verdict, row.reason, row.created_at, row.armed_at, row.ended_at),
        *(row.open_before, row.members_reserved, row.members_charged, row.members_hurt),
    )
    query = select(*columns, *FIGURES).where(row.campaign_id == campaign_id, row.run == run)
    newest = query.order_by(row.created_at.desc(), row.id.desc()).limit(MOST)
    return [
        _summary(each, compared(each[-len(FIGURES) :]), live.get(each.id))
        for each in session.execute(newest)
    ]


def _summary(row: Any, comparison: Mapping[str, Any], live: Experiment | None) -> ExperimentSummary:
    """``row``: a record, or columns of it."""
    state, reason = row.state, row.reason
    if live is None:
        counts = counts_on_record(row, comparison)
    else:
        state, reason, comparison = live.state, live.reason, counts_of(live)
        counts = counts_so_far(live, row.members_reserved)
    return ExperimentSummary(
        id=row.id,
        campaign_id=row.campaign_id,
        run=row.run,
        request_class=row.request_class,
        hypothesis=tuple(row.hypothesis),
        purpose=row.purpose,
        state=state,
        verdict=row.verdict,
        reason=reason,
        created_at=row.created_at,
        armed_at=row.armed_at,
        ended_at=row.ended_at,
        open_before=row.open_before,
        lost=reason == GONE,
        counts=counts,
        treatment=_compared(comparison, "treatment"),
        control=_compared(comparison, "control"),
    )


def _compared(comparison: Mapping[str, Any], arm: str) -> Compared | None:
    figures = comparison.get(arm)
    return Compared(figures["devices"], figures["failures"]) if figures else None
