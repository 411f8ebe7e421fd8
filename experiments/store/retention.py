"""What is dropped when it is old, so that the database does not grow for ever; and what never is.

Two times are kept by. For as long as ``audit`` says: who did what, maintenance windows that are
over, results of replays, and tokens that open nothing any more (counted from when they were made,
for when one was revoked is not on record). For as long as ``details`` says:
notifications that everybody was told, and of experiments what only people look at (two of their
requests, and the curve of the evidence).

Never touched, however old: results, counts and verdicts of experiments, the chain of runs, findings
with the requests that show them, campaigns and their certificates. So whoever starts from what is
left knows the same, and every certificate can be checked as before.

Rows go a few at a time, each batch in a transaction of its own: a service may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Table, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from ldfi.experiments.store import findings, stream_positions
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.schema import (
    AuditRow,
    DeliveryRow,
    ExperimentRow,
    FlagRow,
    MaintenanceRow,
    NotificationRow,
    ReplayRow,
    TokenRow,
)

BATCH: Final = 500
"""Rows that go in one transaction."""

_DONE: Final = "pruned"
"""The flag that says until when experiments have been gone through."""


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many seconds things are kept. ``events``: the topic that the audit is told to, of
    which nothing goes that is not told yet; empty: it is told to nobody."""

    audit: float
    details: float
    events: str = ""


@dataclass(frozen=True, slots=True)
class Pruned:
    """So many ``rows`` of a sort, older than ``before`` (Unix seconds)."""

    what: str
    rows: int
    before: float


@dataclass(frozen=True, slots=True)
class _Sort:
    """Rows of one sort: those of ``key`` where ``due`` holds. ``drop`` is given some of the
    keys."""

    what: str
    key: InstrumentedAttribute[Any]
    before: float
    due: Sequence[ColumnElement[bool]]
    drop: Callable[[Session, Sequence[Any]], None]


Told = Callable[[Pruned, int], None]
"""Told how many rows of a sort are gone so far."""


Plan = Sequence[tuple[_Sort, Pruned]]
"""Of each sort what is to go."""


def planned(session: Session, keep: Retention, now: float) -> Plan:
    """Choose and count what is old enough to go. Nothing is changed."""
    plan = []
    for sort in _sorts(session, keep, now):
        rows = session.scalar(select(func.count(sort.key)).where(*sort.due)) or 0
        plan.append((sort, Pruned(sort.what, rows, sort.before)))
    return plan


def due(session: Session, keep: Retention, now: float) -> list[Pruned]:
    """Count what is old enough to go. Nothing is changed."""
    return [found for _, found in planned(session, keep, now)]


def prune(
    database: Database,
    keep: Retention,
    now: float,
    who: str,
    told: Told | None = None,
    plan: Plan | None = None,
) -> list[Pruned]:
    """Drop what is old enough; the audit says of each sort that it went. Asked again after a crash
    it goes on. Raises what the database raises.

    ``plan``: made before something else went, or the last entry of the audit, which stays, would
    be what was written of that.
    """
    if plan is None:
        with database.read() as session:
            plan = planned(session, keep, now)
    return [_drop_all(database, sort, found, now, who, told) for sort, found in plan]


def _drop_all(
    database: Database, sort: _Sort, found: Pruned, now: float, who: str, told: Told | None
) -> Pruned:
    gone, last = 0, None
    while found.rows:
        with database.change(now, who) as change:
            if last is None:
                change.audit("pruned", sort.what, f"{found.rows} of them, by age")
            query = select(sort.key).where(*sort.due).order_by(sort.key).limit(BATCH)
            keys = list(
                change.session.scalars(query if last is None else query.where(sort.key > last))
            )
            if keys:
                sort.drop(change.session, keys)
        if not keys:
            break
        gone, last = gone + len(keys), keys[-1]
        if told is not None:
            told(found, gone)
    if sort.key is ExperimentRow.id:
        with database.change(now, who) as change:
            _note(change, sort.before)
    return Pruned(sort.what, gone, sort.before)


def _sorts(session: Session, keep: Retention, now: float) -> list[_Sort]:
    audit, details = now - keep.audit, now - keep.details
    return [
        _Sort(
            "audit entries", AuditRow.id, audit, _entries(session, keep, audit), _rows(AuditRow.id)
        ),
        _Sort(
            "maintenance windows",
            MaintenanceRow.id,
            audit,
            [func.coalesce(MaintenanceRow.closed_at, MaintenanceRow.until) < audit],
            _rows(MaintenanceRow.id),
        ),
        _Sort("replays", ReplayRow.id, audit, [ReplayRow.kept_at < audit], _rows(ReplayRow.id)),
        _Sort(
            "tokens",
            TokenRow.id,
            audit,
            [TokenRow.created_at < audit, or_(TokenRow.revoked, TokenRow.expires_at < audit)],
            _rows(TokenRow.id),
        ),
        _Sort(
            "notifications",
            NotificationRow.id,
            details,
            _delivered(session, details),
            _notifications,
        ),
        _Sort(
            "details of experiments",
            ExperimentRow.id,
            details,
            _seen(session, details),
            _details,
        ),
    ]


def _entries(session: Session, keep: Retention, before: float) -> list[ColumnElement[bool]]:
    """Choose entries that are old and told. The last one stays: SQLite would give its number away
    again."""
    last = session.scalar(select(func.max(AuditRow.id))) or 0
    terms = [AuditRow.at < before, AuditRow.id < last]
    if keep.events:
        told = stream_positions.load(session, keep.events).values()
        terms.append(AuditRow.id < min((each.next_offset for each in told), default=0))
    return terms


def _delivered(session: Session, before: float) -> list[ColumnElement[bool]]:
    """Choose what everybody was told. What a target did not take stays, for it is counted; and so
    does the last one."""
    last = session.scalar(select(func.max(NotificationRow.id))) or 0
    open_or_failed = exists().where(
        DeliveryRow.notification_id == NotificationRow.id,
        or_(DeliveryRow.ended_at.is_(None), DeliveryRow.error.is_not(None)),
    )
    return [
        NotificationRow.at < before,
        NotificationRow.dealt_at.is_not(None),
        NotificationRow.error.is_(None),
        NotificationRow.id < last,
        ~open_or_failed,
    ]


def _seen(session: Session, before: float) -> list[ColumnElement[bool]]:
    """Choose what ended before and was not gone through yet. What shows a finding stays."""
    flag = session.get(FlagRow, _DONE)
    since = 0.0 if flag is None else float(flag.value["details"])
    return [
        ExperimentRow.ended_at >= since,
        ExperimentRow.ended_at < before,
        ExperimentRow.id.not_in(findings.shown_by(session)),
    ]


def _rows(key: InstrumentedAttribute[Any]) -> Callable[[Session, Sequence[Any]], None]:
    def drop(session: Session, keys: Sequence[Any]) -> None:
        session.execute(delete(key.class_).where(key.in_(keys)))

    return drop


def _notifications(session: Session, keys: Sequence[Any]) -> None:
    session.execute(delete(DeliveryRow).where(DeliveryRow.notification_id.in_(keys)))
    session.execute(delete(NotificationRow).where(NotificationRow.id.in_(keys)))


def _details(session: Session, keys: Sequence[Any]) -> None:
    table = cast(Table, ExperimentRow.__table__)
    query = select(table.c.id, table.c.lesson, table.c.comparison).where(table.c.id.in_(keys))
    results, comparisons = list[dict[str, Any]](), list[dict[str, Any]]()
    for identity, result, comparison in session.execute(query):
        if result is not None and "runs" in result:
            left = {name: each for name, each in result.items() if name != "runs"}
            results.append({"its": identity, "left": left})
        if comparison.get("curve"):
            comparisons.append({"its": identity, "left": {**comparison, "curve": []}})
    mine = update(table).where(table.c.id == bindparam("its"))
    for column, changed in ((table.c.lesson, results), (table.c.comparison, comparisons)):
        if changed:
            session.execute(mine.values({column: bindparam("left", type_=column.type)}), changed)


def _note(change: Change, until: float) -> None:
    flag = change.session.get(FlagRow, _DONE)
    done = 0.0 if flag is None else float(flag.value["details"])
    change.session.merge(FlagRow(name=_DONE, value={"details": max(done, until)}))
