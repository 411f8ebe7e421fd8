"""What experiments have taught, on record: what earlier ones came to, and the results since.

Of each class there is one :class:`~ldfi.experiments.domain.campaign.snapshot.Snapshot` of every
campaign that goes on, as of the beginning of a run (the same one for all of its classes), and one
of all campaigns together, as of some moment. Results that such a snapshot holds are passed over,
whether they are still there or not, so they can be dropped at leisure afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, or_, select
from sqlalchemy.orm import Session, load_only

from ldfi.experiments.domain.campaign.fault_history import Experience
from ldfi.experiments.domain.campaign.snapshot import Snapshot
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import ExperimentRow, SnapshotRow

ALL: Final = ""
"""In place of a campaign: all there ever were."""
FAR: Final = 1e12
"""Unix seconds that nothing is after."""


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """``snapshot``: what was learned of this ``version`` of the class in runs before ``run``, and
    of all campaigns by ``until`` (Unix seconds), its end. ``experience``: of all versions."""

    version: int
    run: int
    until: float
    experience: Experience
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Taught:
    """``stored``: what earlier experiments came to, if that is on record; ``results``: what those
    since have taught, in their order, as they were written."""

    stored: StoredSnapshot | None
    results: Sequence[Mapping[str, Any]]


def of_campaign(
    session: Session, campaign_id: str
) -> tuple[dict[str, StoredSnapshot], list[ExperimentRow]]:
    """Read what each class stood at in a campaign, and the experiments since that taught something,
    in their order; rejected ones did."""
    stored = in_campaign(session, campaign_id)
    query = select(ExperimentRow).where(*_since_run(campaign_id, first_untold(stored)))
    rows = session.scalars(query.order_by(ExperimentRow.ended_at, ExperimentRow.id))
    return stored, list(rows)


def in_campaign(session: Session, campaign_id: str) -> dict[str, StoredSnapshot]:
    """Read what each class stands at in a campaign."""
    found = _stored(session, SnapshotRow.campaign_id == campaign_id)
    return {name: each for (_, name), each in found.items()}


def runs_since(session: Session, campaign_id: str, run: int, before: float) -> Mapping[int, bool]:
    """List the runs of a campaign from this one on that taught something; of each whether all that
    did had ended ``before`` then (Unix seconds)."""
    row = ExperimentRow
    ended = func.min(case((row.ended_at < before, 1), else_=0))
    query = select(row.run, ended).where(*_since_run(campaign_id, run)).group_by(row.run)
    return {each: bool(all_of_it) for each, all_of_it in session.execute(query)}


def first_untold(stored: Mapping[str, StoredSnapshot]) -> int:
    """Say from which run of a campaign on its classes do not stand for what it taught."""
    return max((each.run for each in stored.values()), default=0)


def _since_run(campaign_id: str, run: int) -> list[ColumnElement[bool]]:
    row = ExperimentRow
    return [row.campaign_id == campaign_id, row.run >= run, row.lesson.is_not(None)]


def rows_of_class(
    session: Session, name: str, until: float, before: float, runs: Mapping[str, range]
) -> list[ExperimentRow]:
    """Read of a class what had ended ``before`` then and taught something, in its order, rejected
    ones included: what ended after ``until`` (both Unix seconds), and what these ``runs`` of
    campaigns did. Of each row no more than the result, and what that belongs to."""
    row = ExperimentRow
    wanted = or_(
        row.ended_at >= until,
        *(
            and_(row.campaign_id == each, row.run >= some.start, row.run < some.stop)
            for each, some in runs.items()
        ),
    )
    query = select(row).options(
        load_only(row.campaign_id, row.run, row.state, row.ended_at, row.lesson)
    )
    query = query.where(
        row.request_class == name, row.ended_at < before, row.lesson.is_not(None), wanted
    )
    return list(session.scalars(query.order_by(row.ended_at, row.id)))


def of_classes(
    session: Session, names: Collection[str], most: int | None = None
) -> dict[str, Taught]:
    """Read what all experiments taught of each of these classes. ``most``: of the results since,
    the newest, so many of each class."""
    stored = of(session, ALL, names)
    results: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for name, result in session.execute(_since(names, stored, most)) if results else ():
        if result is not None:
            results[name].append(result)
    return {name: Taught(stored.get(name), since[::-1]) for name, since in results.items()}


def _since(
    names: Collection[str], stored: Mapping[str, StoredSnapshot], most: int | None
) -> Select[tuple[str, dict[str, Any] | None]]:
    """Ask for the results of classes since they stood somewhere, the newest first."""
    row, newest = ExperimentRow, (ExperimentRow.ended_at.desc(), ExperimentRow.id.desc())
    nowhere = [name for name in names if name not in stored]
    wanted = or_(
        row.request_class.in_(nowhere),
        *(and_(row.request_class == name, row.ended_at >= stored[name].until) for name in stored),
    )
    # joined to nothing, or SQLite goes over all that are decided instead of those of the classes
    decided = row.state.concat("") == "decided"
    known = wanted, row.ended_at < FAR, decided, row.lesson.is_not(None)
    query = select(row.request_class, row.lesson).where(*known).order_by(*newest)
    if most is None:
        return query
    place = func.row_number().over(partition_by=row.request_class, order_by=newest)
    placed = select(row.id, place.label("place")).where(*known).subquery()
    return query.join(placed, placed.c.id == row.id).where(placed.c.place <= most)


def of(session: Session, campaign_id: str, names: Collection[str]) -> dict[str, StoredSnapshot]:
    """Read what these classes stand at, as far as they do."""
    chosen = SnapshotRow.campaign_id == campaign_id, SnapshotRow.request_class.in_(names)
    return {name: each for (_, name), each in _stored(session, *chosen).items()}


def runs(session: Session) -> dict[str, int]:
    """Read of each campaign the run before which all is told by where its classes stand."""
    query = select(SnapshotRow.campaign_id, func.max(SnapshotRow.run))
    chosen = query.where(SnapshotRow.campaign_id != ALL).group_by(SnapshotRow.campaign_id)
    return {each[0]: each[1] for each in session.execute(chosen)}


def untils(session: Session) -> dict[str, float]:
    """Read until when (Unix seconds) each class stands for what all campaigns have taught."""
    query = select(SnapshotRow.request_class, SnapshotRow.until)
    return dict(session.execute(query.where(SnapshotRow.campaign_id == ALL)).tuples().all())


def save(change: Change, campaign_id: str, stored: Mapping[str, StoredSnapshot]) -> None:
    """Put on record what classes stand at."""
    for name, each in stored.items():
        change.session.merge(
            SnapshotRow(
                campaign_id=campaign_id,
                request_class=name,
                version=each.version,
                run=each.run,
                until=each.until,
                experience=each.experience.to_json(),
                document=each.snapshot.to_json(),
            )
        )


def forget(change: Change, live: Collection[str]) -> None:
    """Forget where classes stand in all campaigns but these."""
    over = SnapshotRow.campaign_id.not_in({ALL, *live})
    change.session.execute(delete(SnapshotRow).where(over))


def _stored(session: Session, *chosen: Any) -> dict[tuple[str, str], StoredSnapshot]:
    return {
        (row.campaign_id, row.request_class): StoredSnapshot(
            version=row.version,
            run=row.run,
            until=row.until,
            experience=Experience.from_json(row.experience),
            snapshot=Snapshot.from_json(row.document),
        )
        for row in session.scalars(select(SnapshotRow).where(*chosen))
    }
