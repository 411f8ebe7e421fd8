"""Experiments on record: proposed, kept alive, ended; and closed after a crash."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from ldfi.errors import NotFound
from ldfi.experiments.domain.campaign.exploration import FindingChange
from ldfi.experiments.domain.campaign.recording import GONE, abandoned, record_of
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.judging.experiment import ACTIVE, Experiment, comparison_of
from ldfi.experiments.store import campaign_tallies, chain, findings, notifications
from ldfi.experiments.store.arming import new_row
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow, RunRow, TallyRow
from ldfi.lineage.run_summary import Runs

GRACE = 1.0
"""Seconds after the end of its lease from which on an experiment counts as abandoned."""

_PENDING = ("proposed", "waiting")


def propose(
    change: Change, experiment: Experiment, campaign_id: str, run: int, lease_until: float
) -> None:
    """Put an experiment on record that waits for an operator's approval."""
    row = new_row(experiment, campaign_id, run)
    row.lease_until = lease_until
    change.session.add(row)
    change.audit(f"experiment {experiment.state}", experiment.id, experiment.reason)
    notifications.put(
        change,
        "approval-needed",
        f"{experiment.request_class}: an experiment waits for approval",
        f"{', '.join(row.faults)}; may hurt {experiment.risk:.0f} members",
        {"experiment": experiment.id},
    )


def renew(change: Change, ids: Collection[str], lease_until: float) -> set[str]:
    """Keep experiments alive; those of them that are still ours to keep."""
    if not ids:
        return set()
    mine = (ExperimentRow.id.in_(ids), ExperimentRow.state.in_([*ACTIVE, *_PENDING]))
    change.session.execute(update(ExperimentRow).where(*mine).values(lease_until=lease_until))
    return set(change.session.scalars(select(ExperimentRow.id).where(*mine)))


def move(change: Change, experiment: Experiment) -> None:
    """Record that an active experiment has gone on to observing or settling."""
    change.session.execute(
        update(ExperimentRow)
        .where(ExperimentRow.id == experiment.id, ExperimentRow.state.in_(ACTIVE))
        .values(state=experiment.state, reason=experiment.reason)
    )
    change.audit(f"experiment {experiment.state}", experiment.id, experiment.reason)


def end(
    change: Change,
    experiment: Experiment,
    spent: int,
    result: ExperimentResult | None,
    changes: Sequence[FindingChange] = (),
    runs: Runs | None = None,
) -> None:
    """Record that an experiment is decided or aborted; what it taught and what it did to findings;
    and, where it was armed, for good what its verdict came from.

    ``runs``: two of its requests, kept with the result for people to look at.
    """
    row = change.session.get(ExperimentRow, experiment.id)
    if row is None or row.state in {"decided", "aborted"}:
        return  # never put on record, or closed by another scheduler after we had stalled
    row.state, row.verdict = experiment.state, experiment.verdict
    row.reason, row.ended_at = experiment.reason, change.now
    row.level, row.active_class, row.draft = experiment.level, None, None
    row.members_charged = min(spent, row.members_reserved)
    row.members_hurt = len(experiment.hurt)
    row.comparison = counts_of(experiment)
    campaign_tallies.count(change.session, row)
    if result is not None:
        shown = {"runs": runs.to_json()} if runs else {}
        row.lesson = {**result.to_json(), "version": experiment.version, **shown}
    what = f"experiment {experiment.verdict or experiment.state}"
    change.audit(what, experiment.id, experiment.reason)
    if experiment.armed_at is not None:
        class_version = experiment.request_class, experiment.version
        chain.append(change, class_version, partial(record_of, experiment, result))
    if result is not None and result.succeeded:
        findings.survived(change, result.injected)
    for each in changes:
        findings.apply(change, each, row.request_class, row.campaign_id, row.id)


def recount(change: Change, experiment: Experiment) -> None:
    """Count devices that reported late, long after the end; they decide nothing."""
    row = change.session.get(ExperimentRow, experiment.id, with_for_update=True)
    if row is None:
        return
    hurt = len(experiment.hurt)
    campaign_tallies.recount(change.session, row, hurt)
    row.members_hurt, row.comparison = hurt, counts_of(experiment)


def close_abandoned(change: Change) -> list[str]:
    """Close what nobody keeps alive any more: its leases have run out, so nothing is armed.

    It stays charged with all its members, since nobody knows how many it exposed. What was armed
    leaves a record: that it was tried, and was broken off.
    """
    query = select(ExperimentRow).where(
        ExperimentRow.state.in_([*ACTIVE, *_PENDING]),
        ExperimentRow.lease_until < change.now - GRACE,
    )
    closed = []
    for row in change.session.scalars(query.with_for_update(skip_locked=True)):
        row.state, row.active_class, row.ended_at = "aborted", None, change.now
        row.reason, draft, row.draft = GONE, row.draft, None
        campaign_tallies.count(change.session, row)
        change.audit("experiment aborted", row.id, row.reason)
        if draft is not None:
            class_version = row.request_class, int(draft["version"])
            chain.append(change, class_version, partial(abandoned, draft, change.now))
        closed.append(row.id)
    return closed


def levels(session: Session) -> tuple[int, int]:
    """Count, over all campaigns there ever were, the experiments that took a level of e-LOND, and
    the discoveries: harm in what a campaign lets make a finding."""
    takes = ["explore", "recheck"]
    at_once = [
        campaign_id
        for campaign_id, definition in session.execute(
            select(CampaignRow.id, CampaignRow.definition)
        )
        if not definition.get("settings", {}).get("confirm", True)
    ]
    confirming = (TallyRow.purpose == "confirm") | (
        (TallyRow.purpose == "explore") & TallyRow.campaign_id.in_(at_once)
    )
    ended, discoveries = session.execute(
        select(
            func.coalesce(func.sum(TallyRow.armed).filter(TallyRow.purpose.in_(takes)), 0),
            func.coalesce(
                func.sum(TallyRow.ended).filter(confirming, TallyRow.verdict == "harmful"), 0
            ),
        )
    ).one()
    armed = ExperimentRow.state.in_(ACTIVE) & ExperimentRow.purpose.in_(takes)
    tested = int(ended) + (session.scalar(select(func.count()).where(armed)) or 0)
    return tested, min(tested, int(discoveries))


def unless_pruned(session: Session, identity: str) -> None:
    """Raise NotFound, and say so, where an experiment's row was dropped by age."""
    leaf = session.scalar(select(RunRow.leaf).where(RunRow.experiment_id == identity))
    if leaf is not None and session.get(ExperimentRow, identity) is None:
        raise NotFound(
            f"experiment {identity!r} is old and was pruned; its run is number {leaf} of the chain"
        )


def counts_of(experiment: Experiment) -> dict[str, Any]:
    """Count control against treatment, and who was exposed, for the record and for people."""
    return {
        **comparison_of(experiment).to_json(),
        "exposed": len(experiment.exposed),
        "hurt": len(experiment.hurt),
        "passed_by": len(experiment.passed_by),
        "others": experiment.bystanders.work.counts(),
        "treated": experiment.used,
        "edges": [each._asdict() for each in experiment.shares],
        "curve": experiment.tests.curve,
        "alpha": experiment.alpha,
    }
