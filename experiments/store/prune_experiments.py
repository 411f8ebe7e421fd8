"""Rows of experiments go when they are old, once nothing rests on them any more.

By then a result is folded, and a record is pruned: what an experiment taught is in what its class
stands at, and that it was tried, and what it came to, is in the chain of runs. Its row is what
lists and pages show. It stays for as long as a finding names it or is shown best by it; as its
record is whole, which is when a certificate rests on it; and while its campaign is in the same run,
whose budget it counts in. The last one of a campaign on a class stays, too: it tells of which
version of the class the campaign's certificate is. All stay counted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlalchemy import and_, exists, false, func, not_, or_, select
from sqlalchemy.orm import Session

from ldfi.experiments.store import campaign_tallies, campaigns, findings
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.retention import BATCH, Pruned, Told
from ldfi.experiments.store.schema import ExperimentRow, RunRow

WHAT: Final = "experiments"


def prune(
    database: Database, before: float, now: float, who: str, told: Told | None = None
) -> Pruned:
    """Drop experiments that ended ``before`` then (Unix seconds). Asked again after a crash it goes
    on. Raises what the database raises."""
    with database.read() as session:
        ids = old(session, before)
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        with database.change(now, who) as change:
            if not start:
                change.audit("pruned", WHAT, f"{len(ids)} of them, by age")
            campaign_tallies.drop(change.session, some)
        if told is not None:
            told(Pruned(WHAT, len(ids), before), start + len(some))
    return Pruned(WHAT, len(ids), before)


def old(
    session: Session,
    before: float,
    compacted: Collection[str] = (),
    pruned: Collection[str] = (),
) -> list[str]:
    """Return ids of the experiments to delete, oldest first. ``compacted``, ``pruned``: experiments
    whose results, or whose records, count as deleted already."""
    row = ExperimentRow
    whole = exists().where(RunRow.experiment_id == row.id, RunRow.remains.is_(None))
    under_way = or_(
        false(),
        *(
            and_(row.campaign_id == each.id, row.run == each.run)
            for each in campaigns.live(session)
        ),
    )
    query = select(row.id, row.lesson.is_not(None), whole).where(
        row.ended_at < before, not_(under_way)
    )
    kept = findings.shown_by(session) | _last(session)
    found = session.execute(query.order_by(row.ended_at, row.id))
    return [
        each
        for each, taught, on_record in found
        if each not in kept
        and (not taught or each in compacted)
        and (not on_record or each in pruned)
    ]


def _last(session: Session) -> set[str]:
    """List the last experiment of each campaign on each class."""
    row = ExperimentRow
    place = func.row_number().over(
        partition_by=(row.campaign_id, row.request_class),
        order_by=(row.ended_at.desc(), row.id.desc()),
    )
    ended = select(row.id, place.label("place")).where(row.ended_at.is_not(None)).subquery()
    return set(session.scalars(select(ended.c.id).where(ended.c.place == 1)))
