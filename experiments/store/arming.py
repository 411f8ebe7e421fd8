"""Arming: the one transaction in which every guard is asked that could forbid an experiment.

Several schedulers may race for the same class, the same slot or the last of a budget. They all
pass through one lock here, so whoever comes second sees what the first has taken. Budgets are sums
over the experiments themselves: an experiment is charged with every member it may expose before
any edge hears of it, and with less only when the edges have said so.

Where there are other namespaces, arming in any of them first takes the lock of the default one: so
whoever looks at what the others have armed knows that it stays so until it is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.recording import draft_of
from ldfi.experiments.domain.gates.guard_facts import BudgetLeft, Facts, touches
from ldfi.experiments.domain.gates.guards import BUDGET, objection
from ldfi.experiments.domain.judging.experiment import ACTIVE, Experiment
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.store import halts, maintenance
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow
from ldfi.fit.protocol.allocation import Claim

HOUR, DAY = 3_600.0, 86_400.0
OF_THE_RUN = "campaign's budget"
OF_ALL = "budget of all namespaces"


@dataclass(frozen=True, slots=True)
class Refused:
    """It may not be armed now. ``spent``: because a budget is; ``for_good``: that of the run,
    which time does not fill again."""

    reason: str
    spent: bool = False
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class Armed:
    """It is on record as armed, with so many members, beside these other experiments. ``salt``:
    which devices are drawn."""

    members: int
    yields_to: tuple[Claim, ...]
    salt: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class OtherNamespaces:
    """What is armed in the other namespaces, and what they have charged of the budgets of all;
    ``limits``: what all namespaces together may."""

    limits: Limits
    claims: tuple[Claim, ...] = ()
    hour: int = 0
    day: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be armed, and for how long its first lease holds.

    ``facts``: what only whoever orders can tell the guards. What is on record is read in the
    transaction, but a halt that is not on record yet counts as well. ``exploration``: what is known
    of the class.
    """

    experiment: Experiment
    campaign_id: str
    run: int
    lease_until: float
    facts: Facts
    exploration: Exploration | None = None


def arm(
    db: Database,
    change: Change,
    order: Order,
    limits: Limits,
    beside: Iterable[Database] | None = None,
    of_all: Limits | None = None,
) -> Armed | Refused:
    """Put an experiment on record as armed, or say why that may not be.

    ``beside``: the stores of the other namespaces, in none of which anything is armed before this
    has ended; None where there are none. ``of_all``: what all namespaces together may.
    """
    db.lock(change)
    session = change.session
    rows = session.scalars(select(ExperimentRow).where(ExperimentRow.state.in_(ACTIVE))).all()
    others = None if beside is None else _others(beside, of_all or limits, change.now)
    budget = _tightest(session, order, limits, others, change.now)
    facts = _on_record(session, order, rows, change.now)
    facts = replace(facts, may_run=limits.max_concurrent, budget=budget)
    if others is not None:
        facts = _among_all(facts, others)
    against = objection(facts, "arming")
    if against is not None:
        spent = against.guard is BUDGET
        return Refused(against.reason, spent, for_good=spent and budget.name == OF_THE_RUN)
    members = min(budget.left, order.experiment.settings.members)
    salt = _salt(order.experiment.id, apart=beside is not None)
    _put(change, order, members, salt)
    claims = () if others is None else others.claims
    return Armed(members, (*map(_claim, rows), *claims), salt)


def _others(stores: Iterable[Database], limits: Limits, now: float) -> OtherNamespaces:
    """Look up what the other namespaces have armed and charged."""
    found = OtherNamespaces(limits)
    for store in stores:
        with store.read() as session:
            armed = select(ExperimentRow).where(ExperimentRow.state.in_(ACTIVE))
            found = OtherNamespaces(
                limits,
                (*found.claims, *map(_claim, session.scalars(armed))),
                found.hour + charged_within(session, HOUR, now),
                found.day + charged_within(session, DAY, now),
            )
    return found


def _among_all(facts: Facts, others: OtherNamespaces) -> Facts:
    """Let the experiments of all namespaces count, where fewer of those may run than of ours."""
    running, may_run = facts.running + len(others.claims), others.limits.max_concurrent
    if may_run - running >= facts.may_run - facts.running:
        return facts
    return replace(facts, running=running, may_run=may_run)


def _claim(row: ExperimentRow) -> Claim:
    return Claim(**row.allocation)


def _salt(experiment_id: str, *, apart: bool) -> str:
    """Name what devices are drawn by. Other namespaces are told the salt, and no id."""
    return hashlib.sha256(experiment_id.encode()).hexdigest()[:12] if apart else experiment_id


def least_members(settings: Settings) -> int:
    """Count the treated members with fewer than which no verdict could ever be reached."""
    return min(settings.members, settings.min_samples)


def charged(session: Session, *conditions: ColumnElement[bool]) -> int:
    """Count the members charged to the experiments that meet these conditions."""
    total = func.coalesce(func.sum(ExperimentRow.members_charged), 0)
    return int(session.scalar(select(total).where(*conditions)) or 0)


def charged_within(session: Session, seconds: float, now: float) -> int:
    """Count the members charged to experiments that may have exposed somebody within so many
    seconds: it goes by their end, if any. Time that the machine's clock has jumped over has not
    passed: it renews nothing."""
    since = now - seconds - halts.jumped(session, now)
    return charged(session, or_(ExperimentRow.ended_at.is_(None), ExperimentRow.ended_at > since))


def _on_record(
    session: Session, order: Order, others: Sequence[ExperimentRow], now: float
) -> Facts:
    """Gather the facts of an order, with what is on record now. ``others``: what is armed."""
    state = session.scalar(select(CampaignRow.state).where(CampaignRow.id == order.campaign_id))
    halted = halts.halted(session)
    windows = maintenance.open_windows(session, now)
    on_class = (row.id for row in others if row.active_class == order.experiment.request_class)
    return replace(
        order.facts,
        halted=halted if halted is not None else order.facts.halted,
        campaign=state if state is not None else "not on record",
        touches=touches(windows, order.experiment, order.exploration),
        running=len(others),
        on_class=next(on_class, None),
    )


def _tightest(
    session: Session,
    order: Order,
    limits: Limits,
    others: OtherNamespaces | None,
    now: float,
) -> BudgetLeft:
    """Find the budget of which the fewest members are left."""
    settings = order.experiment.settings
    run = (ExperimentRow.campaign_id == order.campaign_id, ExperimentRow.run == order.run)
    hour, day = charged_within(session, HOUR, now), charged_within(session, DAY, now)
    budgets = [
        (settings.member_budget - charged(session, *run), OF_THE_RUN),
        (limits.members_per_hour - hour, "budget of the last hour"),
        (limits.members_per_day - day, "budget of the last day"),
    ]
    if others is not None:
        budgets += [
            (others.limits.members_per_hour - hour - others.hour, f"{OF_ALL} of the last hour"),
            (others.limits.members_per_day - day - others.day, f"{OF_ALL} of the last day"),
        ]
    left, name = min(budgets)
    return BudgetLeft(name, left, least_members(settings))


def _put(change: Change, order: Order, members: int, salt: str) -> None:
    experiment = order.experiment
    row = change.session.get(ExperimentRow, experiment.id)
    if row is None:
        row = new_row(experiment, order.campaign_id, order.run)
        change.session.add(row)
    settings = experiment.settings
    row.state, row.reason, row.active_class = "armed", "", experiment.request_class
    row.armed_at, row.lease_until = change.now, order.lease_until
    row.members_reserved = row.members_charged = members
    row.approved_by = experiment.approved_by
    row.draft = draft_of(experiment, change.now)
    row.allocation = {
        "salt": salt,
        "treatment": settings.treatment,
        "control": settings.control,
    }
    change.audit("experiment armed", experiment.id, f"{members} members at most")


def new_row(experiment: Experiment, campaign_id: str, run: int) -> ExperimentRow:
    """Make the record of an experiment that is not armed yet."""
    return ExperimentRow(
        id=experiment.id,
        campaign_id=campaign_id,
        run=run,
        request_class=experiment.request_class,
        purpose=experiment.purpose,
        hypothesis=sorted(experiment.hypothesis),
        faults=[str(fault) for fault in experiment.faults],
        state=experiment.state,
        reason=experiment.reason,
        risk=experiment.risk,
        created_at=experiment.created_at,
        open_before=experiment.open_before,
        members_reserved=0,
        members_charged=0,
        members_hurt=0,
    )
