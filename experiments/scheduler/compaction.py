"""Results that are old are compacted: what they came to is put on record in one piece.

What is compacted is what a start would learn from them, by the same way, so that whoever starts
afterwards knows the same. Of a campaign that goes on these are its earlier runs; of all campaigns
together, which is what people are told of a class, everything that had ended before. Once both
hold a result it is dropped; what shows a finding stays, and so does what left no record in the
chain of runs, for nothing else would tell of it.

A service may run meanwhile: it reads results when it starts, and only those in no snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.fault_history import Experience
from ldfi.experiments.domain.campaign.snapshot import Snapshot
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.scheduler.evidence import explored_from
from ldfi.experiments.scheduler.restore import explored, result_in
from ldfi.experiments.store import campaigns, classes, findings, snapshots
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.retention import BATCH, Pruned, Told
from ldfi.experiments.store.rewrite_rows import put_anew
from ldfi.experiments.store.schema import (
    CampaignRow,
    ExperimentRow,
    RunRow,
    SnapshotRow,
)
from ldfi.experiments.store.snapshots import ALL, StoredSnapshot, Taught

WHAT: Final = "lessons"
FRESH: Final = 86_400.0
"""Seconds for which results are not compacted. What ends with an earlier time than what was
compacted, for somebody has set the clock back, is passed over where people ask of a class."""
Reading = Callable[[], AbstractContextManager[Session]]
_GONE: Final = 0
"""The version of a class that there is no more: nothing is of it."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What classes stand at, in a campaign or in ``ALL`` of them, where they stood at ``was``."""

    campaign_id: str
    stored: Mapping[str, StoredSnapshot]
    was: Mapping[str, StoredSnapshot]


def compact(
    database: Database, before: float, now: float, who: str, told: Told | None = None
) -> Pruned:
    """Fold all results but those of the last day, and drop those that are older than ``before``
    (Unix seconds): so a start has little to read, and people can look at them for longer. What a
    campaign that is over stood at is forgotten, for nobody takes it up. Asked again after a crash
    it goes on. Raises what the database raises."""
    for each in _foldings(database.read, max(before, now - FRESH)):
        with database.change(now, who) as change:
            database.lock(change)
            if snapshots.of(change.session, each.campaign_id, each.stored) == each.was:
                snapshots.save(change, each.campaign_id, each.stored)
    with database.change(now, who) as change:
        snapshots.forget(change, {row.id for row in campaigns.live(change.session)})
    return _drop(database, before, now, who, told)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What folding would come to. ``going``: the experiments whose results would go; ``stands``:
    the documents of what classes would stand at."""

    results: Pruned
    going: frozenset[str]
    stands: Sequence[Any]


def foreseen(session: Session, before: float, now: float) -> Foreseen:
    """Return what a compaction would delete, and change nothing."""
    foldings = list(_foldings(lambda: nullcontext(session), max(before, now - FRESH)))
    going = frozenset(_going(session, before, foldings))
    live = {ALL, *(row.id for row in campaigns.live(session))}
    stands = {
        (row.campaign_id, row.request_class): row.document
        for row in session.scalars(select(SnapshotRow).where(SnapshotRow.campaign_id.in_(live)))
    }
    for each in foldings:
        for name, stored in each.stored.items():
            stands[each.campaign_id, name] = stored.snapshot.to_json()
    return Foreseen(Pruned(WHAT, len(going), before), going, list(stands.values()))


def _foldings(read: Reading, before: float) -> Iterator[Compaction]:
    """Fold class by class, for all campaigns and for each that goes on: so each result is read
    once, and no more than those of a class at a time."""
    with read() as session:
        catalogue = Catalogue.from_json(classes.load(session))
        live = [_going_on(session, row, before) for row in campaigns.live(session)]
        taught = ExperimentRow.lesson.is_not(None), ExperimentRow.ended_at < before
        names = session.scalars(select(ExperimentRow.request_class).where(*taught).distinct()).all()
    going = [each for each in live if each.runs]
    runs = {each.campaign.id: each.runs for each in going}
    for name in sorted({*names, *(name for each in going for name in each.was)}):
        known = catalogue.classes.get(name)
        with read() as session:
            was = snapshots.of(session, ALL, [name])
            until = was[name].until if was else 0.0
            rows = snapshots.rows_of_class(session, name, until, before, runs)
        decided = [each for each in rows if each.state == "decided" and _ended(each) >= until]
        if decided:
            yield Compaction(ALL, {name: _of_class(known, was.get(name), decided, before)}, was)
        for each in going:
            mine = [row for row in rows if each.ran(row)]
            if mine or name in each.was:
                each.stored[name] = _of_campaign(each, known, each.was.get(name), mine)
    for each in going:
        yield Compaction(each.campaign.id, each.stored, each.was)


def _ended(row: ExperimentRow) -> float:
    assert row.ended_at is not None, "only what has ended is asked for"  # noqa: S101
    return row.ended_at


@dataclass(slots=True)
class _GoingOn:
    """A campaign that goes on. ``runs``: those that are over, from the first that its classes do
    not stand for up to the first that is not over or is young; ``was``: where they stand."""

    campaign: Campaign
    runs: range
    was: Mapping[str, StoredSnapshot]
    stored: dict[str, StoredSnapshot] = field(default_factory=dict)

    def ran(self, row: ExperimentRow) -> bool:
        """Return whether an experiment is of these runs."""
        return row.campaign_id == self.campaign.id and row.run in self.runs


def _going_on(session: Session, row: CampaignRow, before: float) -> _GoingOn:
    campaign = Campaign(row.id, campaigns.definition_from_json(row.definition), new_id=str)
    was = snapshots.in_campaign(session, row.id)
    first = snapshots.first_untold(was)
    since = snapshots.runs_since(session, row.id, first, before)
    campaign.run = min([row.run, *(run for run, over in since.items() if not over)])
    some = any(run < campaign.run for run in since)
    return _GoingOn(campaign, range(first, campaign.run if some else first), was)


def _of_campaign(
    going: _GoingOn,
    known: KnownClass | None,
    was: StoredSnapshot | None,
    rows: Sequence[ExperimentRow],
) -> StoredSnapshot:
    """Return the snapshot of a class after these runs of a campaign."""
    campaign, experience = going.campaign, Experience()
    if was is not None:
        experience.join(was.experience)
    for each in rows:
        experience.add(result_in(each))
    return StoredSnapshot(
        version=_GONE if known is None else known.version,
        run=campaign.run,
        until=0.0,
        experience=experience,
        snapshot=Snapshot() if known is None else explored(campaign, known, was, rows).snapshot(),
    )


def _of_class(
    known: KnownClass | None,
    was: StoredSnapshot | None,
    rows: Sequence[ExperimentRow],
    before: float,
) -> StoredSnapshot:
    """Return the snapshot of a class after the results of all campaigns."""
    taught = Taught(was, [each.lesson for each in rows if each.lesson is not None])
    snapshot = Snapshot() if known is None else explored_from(known, taught).snapshot()
    version = _GONE if known is None else known.version
    return StoredSnapshot(version, 0, before, Experience(), snapshot)


def _drop(database: Database, before: float, now: float, who: str, told: Told | None) -> Pruned:
    """Drop the results that are compacted, a few hundred at a time."""
    with database.read() as session:
        keys = _going(session, before)
    for start in range(0, len(keys), BATCH):
        some = keys[start : start + BATCH]
        with database.change(now, who) as change:
            if not start:
                change.audit("pruned", WHAT, f"{len(keys)} of them, by age")
            put_anew(change.session, ExperimentRow.id, {each: {"lesson": None} for each in some})
        if told is not None:
            told(Pruned(WHAT, len(keys), before), start + len(some))
    return Pruned(WHAT, len(keys), before)


def _going(session: Session, before: float, foldings: Sequence[Compaction] = ()) -> list[str]:
    """List the experiments whose results go, by where classes stand on record and in these."""
    told = snapshots.runs(session)
    until = snapshots.untils(session)
    for each in foldings:
        if each.campaign_id == ALL:
            until |= {name: stored.until for name, stored in each.stored.items()}
        elif each.stored:
            told[each.campaign_id] = max(stored.run for stored in each.stored.values())
    runs = {row.id: told.get(row.id, 0) for row in campaigns.live(session)}
    row = ExperimentRow
    query = select(row.id, row.request_class, row.ended_at)
    old = session.execute(query.where(row.ended_at < before, *_covered(session, runs)))
    return [identity for identity, name, ended in old if ended < until.get(name, 0.0)]


def _covered(session: Session, runs: Mapping[str, int]) -> list[ColumnElement[bool]]:
    """Choose results that no campaign that goes on will ask for. ``runs``: of such campaigns, the
    one before which all is told."""
    over = ExperimentRow.campaign_id.not_in(runs)
    told = (
        and_(ExperimentRow.campaign_id == each, ExperimentRow.run < run)
        for each, run in runs.items()
    )
    in_chain = exists().where(RunRow.experiment_id == ExperimentRow.id)
    return [
        ExperimentRow.lesson.is_not(None),
        or_(over, *told),
        or_(in_chain, ExperimentRow.armed_at.is_(None)),
        ExperimentRow.id.not_in(findings.shown_by(session)),
    ]
