"""How the experiments of each campaign have ended, counted in the transaction in which they end.

Whoever wants a sum over all experiments there ever were (metrics, each time they are scraped; the
stream of levels, at a start) reads a few rows, however many years there are. To count the
experiments themselves would take longer with each of them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import delete, func, insert, select, union_all
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ldfi.experiments.store.schema import ExperimentRow, PrunedTallyRow, TallyRow

_COLUMNS = "campaign_id", "purpose", "verdict", "ended", "armed", "hurt"
_KEY = (
    ExperimentRow.campaign_id,
    ExperimentRow.purpose,
    func.coalesce(ExperimentRow.verdict, ""),
)
_SUMS = (
    func.count(),
    func.count(ExperimentRow.armed_at),
    func.sum(ExperimentRow.members_hurt),
)


def count(session: Session, row: ExperimentRow) -> None:
    """Count an experiment that has just ended."""
    _add(session, TallyRow, (*_key(row), 1, int(row.armed_at is not None), row.members_hurt))


def recount(session: Session, row: ExperimentRow, hurt: int) -> None:
    """Count so many members of an experiment that ended earlier, and not what was counted."""
    _add(session, TallyRow, (*_key(row), 0, 0, hurt - row.members_hurt))


def drop(session: Session, ids: Collection[str]) -> None:
    """Drop the rows of experiments that have ended; they stay counted."""
    mine = ExperimentRow.id.in_(ids)
    for each in session.execute(select(*_KEY, *_SUMS).where(mine).group_by(*_KEY)).all():
        _add(session, PrunedTallyRow, tuple(each))
    session.execute(delete(ExperimentRow).where(mine))


def make_good(session: Session) -> bool:
    """Count all experiments anew where some have ended uncounted: while an earlier version of the
    service, which counts none, still ran beside this one. Returns whether there were any."""
    ended = session.scalar(select(func.count()).where(ExperimentRow.ended_at.is_not(None))) or 0
    gone, counted = (
        session.scalar(select(func.coalesce(func.sum(row.ended), 0))) or 0
        for row in (PrunedTallyRow, TallyRow)
    )
    if ended + gone == counted:
        return False
    rows = select(*_KEY, *_SUMS).where(ExperimentRow.ended_at.is_not(None)).group_by(*_KEY)
    dropped = select(*(getattr(PrunedTallyRow, name) for name in _COLUMNS))
    named = zip(_COLUMNS, rows.selected_columns, strict=True)
    every = union_all(rows.with_only_columns(*(each.label(n) for n, each in named)), dropped)
    of = every.subquery().c
    key, sums = [of[name] for name in _COLUMNS[:3]], [func.sum(of[n]) for n in _COLUMNS[3:]]
    session.execute(delete(TallyRow))
    session.execute(insert(TallyRow).from_select(_COLUMNS, select(*key, *sums).group_by(*key)))
    return True


def by_verdict(session: Session) -> dict[str, int]:
    """Count all experiments that were armed and have ended, by verdict; empty: with none."""
    query = select(TallyRow.verdict, func.sum(TallyRow.armed)).group_by(TallyRow.verdict)
    return {verdict: int(armed) for verdict, armed in session.execute(query)}


def _key(row: ExperimentRow) -> tuple[str, str, str]:
    return row.campaign_id, row.purpose, row.verdict or ""


def _add(session: Session, table: type[TallyRow | PrunedTallyRow], values: tuple[Any, ...]) -> None:
    """Add to what there is in one statement, whoever else may be doing so."""
    new = dict(zip(_COLUMNS, values, strict=True))
    grown = {name: getattr(table, name) + new[name] for name in _COLUMNS[3:]}
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    query = (sqlite.insert if on_sqlite else postgresql.insert)(table).values(new)
    session.execute(query.on_conflict_do_update(index_elements=_COLUMNS[:3], set_=grown))
