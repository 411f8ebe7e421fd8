"""How the experiments of each campaign have ended, counted in the transaction in which they end.

Whoever wants a sum over all experiments there ever were (metrics, each time they are scraped; the
stream of levels, at a start) reads a few rows, however many years there are. To count the
experiments themselves would take longer with each of them.
"""

from __future__ import annotations

from sqlalchemy import delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ldfi.experiments.store.schema import ExperimentRow, TallyRow

_COLUMNS = "campaign_id", "purpose", "verdict", "ended", "armed", "hurt"


def count(session: Session, row: ExperimentRow) -> None:
    """Count an experiment that has just ended."""
    _add(session, row, ended=1, armed=int(row.armed_at is not None), hurt=row.members_hurt)


def recount(session: Session, row: ExperimentRow, hurt: int) -> None:
    """Count so many members of an experiment that ended earlier, and not what was counted."""
    _add(session, row, ended=0, armed=0, hurt=hurt - row.members_hurt)


def make_good(session: Session) -> bool:
    """Count all experiments anew where some have ended uncounted: while an earlier version of the
    service, which counts none, still ran beside this one. Returns whether there were any."""
    ended = session.scalar(select(func.count()).where(ExperimentRow.ended_at.is_not(None)))
    if ended == session.scalar(select(func.coalesce(func.sum(TallyRow.ended), 0))):
        return False
    row = ExperimentRow
    key = row.campaign_id, row.purpose, func.coalesce(row.verdict, "")
    sums = func.count(), func.count(row.armed_at), func.sum(row.members_hurt)
    query = select(*key, *sums).where(row.ended_at.is_not(None)).group_by(*key)
    session.execute(delete(TallyRow))
    session.execute(insert(TallyRow).from_select(_COLUMNS, query))
    return True


def by_verdict(session: Session) -> dict[str, int]:
    """Count all experiments that were armed and have ended, by verdict; empty: with none."""
    query = select(TallyRow.verdict, func.sum(TallyRow.armed)).group_by(TallyRow.verdict)
    return {verdict: int(armed) for verdict, armed in session.execute(query)}


def _add(session: Session, row: ExperimentRow, ended: int, armed: int, hurt: int) -> None:
    """Add to what there is in one statement, whoever else may be doing so."""
    values = {"ended": ended, "armed": armed, "hurt": hurt}
    key = {
        "campaign_id": row.campaign_id,
        "purpose": row.purpose,
        "verdict": row.verdict or "",
    }
    query = _insert(session).values(**key, **values)
    grown = {name: getattr(TallyRow, name) + each for name, each in values.items()}
    session.execute(query.on_conflict_do_update(index_elements=list(key), set_=grown))


def _insert(session: Session) -> sqlite.Insert | postgresql.Insert:
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    return sqlite.insert(TallyRow) if on_sqlite else postgresql.insert(TallyRow)
