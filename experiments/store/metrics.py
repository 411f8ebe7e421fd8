"""What is on record, for Prometheus: the same whichever process is asked.

Over several processes take ``max``, not ``sum``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final, get_args

from prometheus_client.metrics_core import Metric as Family
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign import campaign, lifecycle
from ldfi.experiments.domain.judging import experiment
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store import chain_check
from ldfi.experiments.store.arming import DAY, HOUR, charged_within
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import (
    CampaignRow,
    DeliveryRow,
    FindingRow,
    NotificationRow,
    TallyRow,
)
from ldfi.experiments.telemetry.exposition import Values, family
from ldfi.experiments.telemetry.instruments import Metric

NO_VERDICT: Final = "none"
FINDING_STATES: Final = get_args(lifecycle.FindingState)

UP = Metric("ldfi_database_up", "gauge", "1 where the database answered; else what follows misses.")
CAMPAIGNS = Metric("ldfi_campaigns", "gauge", "Campaigns there ever were, by state.", ("state",))
EXPERIMENTS = Metric(
    "ldfi_experiments_ended_total",
    "counter",
    f"Experiments that are over. `verdict` is `{NO_VERDICT}` where one was called off.",
    ("purpose", "verdict"),
)
HURT = Metric("ldfi_members_hurt_total", "counter", "Treated devices that reported a failure.")
CHARGED = Metric(
    "ldfi_members_charged",
    "gauge",
    "Devices charged to the budget of the last `hour` and `day`.",
    ("window",),
)
LIMIT = Metric("ldfi_members_limit", "gauge", "How many these budgets allow.", ("window",))
FINDINGS = Metric("ldfi_findings", "gauge", "Findings by state.", ("state",))
WAITING = Metric(
    "ldfi_notifications_waiting",
    "gauge",
    "Notifications not delivered yet, once for each target that waits.",
)
GIVEN_UP = Metric(
    "ldfi_notifications_given_up_total",
    "counter",
    "Notifications that a target did not take, once for each target.",
)
NOT_SIGNED = Metric(
    "ldfi_chain_not_signed",
    "gauge",
    "1 where the runs on record are not what this process has signed, so nothing is signed any "
    "more; the status says why.",
)
IN_DATABASE: Final = (
    UP, CAMPAIGNS, EXPERIMENTS, HURT, CHARGED, LIMIT, FINDINGS, WAITING, GIVEN_UP, NOT_SIGNED,
)  # fmt: skip


def of_database(database: Database, limits: Limits, now: float) -> list[Family]:
    """Measure what is on record; where the database does not answer, say just that."""
    try:
        with database.read() as session:
            not_signed = chain_check.check(session, database.keys).wrong
            return [
                family(UP, {(): 1}),
                *_on_record(session, limits, now),
                family(NOT_SIGNED, {(): bool(not_signed)}),
            ]
    except SQLAlchemyError:
        return [family(UP, {(): 0})]


def _on_record(session: Session, limits: Limits, now: float) -> Iterator[Family]:
    campaigns = _counted(session, CampaignRow.state)
    states = get_args(campaign.CampaignState)
    yield family(CAMPAIGNS, {(state,): campaigns.get((state,), 0) for state in states})
    yield family(EXPERIMENTS, _ended(session))
    hurt = session.scalar(select(func.coalesce(func.sum(TallyRow.hurt), 0)))
    yield family(HURT, {(): int(hurt or 0)})
    hour, day = (charged_within(session, each, now) for each in (HOUR, DAY))
    yield family(CHARGED, {("hour",): hour, ("day",): day})
    yield family(LIMIT, {("hour",): limits.members_per_hour, ("day",): limits.members_per_day})
    findings = _counted(session, FindingRow.state)
    yield family(FINDINGS, {(state,): findings.get((state,), 0) for state in FINDING_STATES})
    new, waiting = NotificationRow.dealt_at.is_(None), DeliveryRow.ended_at.is_(None)
    yield family(WAITING, {(): _count(session, new) + _count(session, waiting)})
    before, since = NotificationRow.error.is_not(None), DeliveryRow.error.is_not(None)
    yield family(GIVEN_UP, {(): _count(session, before) + _count(session, since)})


def _ended(session: Session) -> Values:
    query = select(TallyRow.purpose, TallyRow.verdict, func.sum(TallyRow.ended)).group_by(
        TallyRow.purpose, TallyRow.verdict
    )
    found = {
        (purpose, verdict or NO_VERDICT): int(ended)
        for purpose, verdict, ended in session.execute(query)
    }
    every = product(get_args(experiment.Purpose), (*get_args(Verdict), NO_VERDICT))
    return {each: found.get(each, 0) for each in every}


def _count(session: Session, condition: ColumnElement[bool]) -> int:
    return session.scalar(select(func.count()).where(condition)) or 0


def _counted(session: Session, column: object) -> Values:
    query = select(column, func.count()).group_by(column)  # type: ignore[call-overload]
    return {(value,): count for value, count in session.execute(query)}
