"""Lessons that are old are folded: what they came to is put on record in one piece.

What is folded is what a start would learn from them, by the same way, so that whoever starts
afterwards knows the same. Of a campaign that goes on these are its earlier runs; of all campaigns
together, which is what people are told of a class, everything that had ended before. Once both
hold a lesson it is dropped; what shows a finding stays, and so does what left no record in the
chain of runs, for nothing else would tell of it.

A service may run meanwhile: it reads lessons when it starts, and only those in no balance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session

from ldfi.experiments.control.evidence import explored_from
from ldfi.experiments.control.restore import explored, lesson_in
from ldfi.experiments.domain.campaign.balance import Balance
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.experience import Experience
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.store import balances, campaigns, classes, findings
from ldfi.experiments.store.anew import put_anew
from ldfi.experiments.store.balances import ALL, Stood
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.retention import LOT, Pruned, Told
from ldfi.experiments.store.schema import (
    BalanceRow,
    CampaignRow,
    ExperimentRow,
    RunRow,
)

WHAT: Final = "lessons"
FRESH: Final = 86_400.0
"""Seconds for which lessons are not folded. What ends with an earlier time than what was folded,
for somebody has set the clock back, is passed over where people ask of a class."""
_TAUGHT: Final = (
    ExperimentRow.request_class,
    ExperimentRow.run,
    ExperimentRow.ended_at,
    ExperimentRow.lesson,
)
"""What is read of experiments to fold their lessons."""
Reading = Callable[[], AbstractContextManager[Session]]
_GONE: Final = 0
"""The version of a class that there is no more: nothing is of it."""


@dataclass(frozen=True, slots=True)
class Folding:
    """What classes stand at, in a campaign or in ``ALL`` of them, where they stood at ``was``."""

    campaign_id: str
    stood: Mapping[str, Stood]
    was: Mapping[str, Stood]


def fold(
    database: Database, before: float, now: float, who: str, told: Told | None = None
) -> Pruned:
    """Fold all lessons but those of the last day, and drop those that are older than ``before``
    (Unix seconds): so a start has little to read, and people can look at them for longer. What a
    campaign that is over stood at is forgotten, for nobody takes it up. Asked again after a crash
    it goes on. Raises what the database raises."""
    for each in _foldings(database.read, max(before, now - FRESH)):
        with database.change(now, who) as change:
            database.lock(change)
            if balances.of(change.session, each.campaign_id, each.stood) == each.was:
                balances.save(change, each.campaign_id, each.stood)
    with database.change(now, who) as change:
        balances.forget(change, {row.id for row in campaigns.live(change.session)})
    return _drop(database, before, now, who, told)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What folding would come to. ``going``: the experiments whose lessons would go; ``stands``:
    the documents of what classes would stand at."""

    lessons: Pruned
    going: frozenset[str]
    stands: Sequence[Any]


def foreseen(session: Session, before: float, now: float) -> Foreseen:
    """Fold all lessons, and put nothing on record: say what would go. Nothing is changed."""
    foldings = list(_foldings(lambda: nullcontext(session), max(before, now - FRESH)))
    going = frozenset(_going(session, before, foldings))
    live = {ALL, *(row.id for row in campaigns.live(session))}
    stands = {
        (row.campaign_id, row.request_class): row.document
        for row in session.scalars(select(BalanceRow).where(BalanceRow.campaign_id.in_(live)))
    }
    for each in foldings:
        for name, stood in each.stood.items():
            stands[each.campaign_id, name] = stood.balance.to_json()
    return Foreseen(Pruned(WHAT, len(going), before), going, list(stands.values()))


def _foldings(read: Reading, before: float) -> Iterator[Folding]:
    with read() as session:
        catalogue = Catalogue.from_json(classes.load(session))
        live = campaigns.live(session)
        taught = ExperimentRow.lesson.is_not(None), ExperimentRow.ended_at < before
        names = session.scalars(select(ExperimentRow.request_class).where(*taught).distinct()).all()
    for row in live:
        yield _of_campaign(read, row, catalogue, before)
    for name in sorted(names):
        yield _of_class(read, name, catalogue.classes.get(name), before)


def _of_campaign(read: Reading, row: CampaignRow, catalogue: Catalogue, before: float) -> Folding:
    """Fold the runs of a campaign that are over, up to the first that is not or is young."""
    campaign = Campaign(row.id, campaigns.definition_from_json(row.definition), new_id=str)
    with read() as session:
        was, rows = balances.of_campaign(session, row.id, _TAUGHT)
    young = (each.run for each in rows if each.ended_at is None or each.ended_at >= before)
    campaign.run = min([row.run, *young])
    old: dict[str, list[ExperimentRow]] = {}
    for each in rows:
        if each.run < campaign.run:
            old.setdefault(each.request_class, []).append(each)
    found = dict(was)
    for name in sorted({*was, *old}) if old else ():
        mine = old.get(name, [])
        known, before_that = catalogue.classes.get(name), was.get(name)
        experience = Experience()
        if before_that is not None:
            experience.join(before_that.experience)
        for each in mine:
            experience.add(lesson_in(each))
        found[name] = Stood(
            version=_GONE if known is None else known.version,
            run=campaign.run,
            until=0.0,
            experience=experience,
            balance=Balance()
            if known is None
            else explored(campaign, known, before_that, mine).balance(),
        )
    return Folding(row.id, found, was)


def _of_class(read: Reading, name: str, known: KnownClass | None, before: float) -> Folding:
    """Fold what all campaigns have taught of a class."""
    with read() as session:
        taught = balances.of_classes(session, [name], before=before)[name]
    was = {} if taught.stood is None else {name: taught.stood}
    if not taught.lessons:
        return Folding(ALL, was, was)
    balance = Balance() if known is None else explored_from(known, taught).balance()
    version = _GONE if known is None else known.version
    return Folding(ALL, {name: Stood(version, 0, before, Experience(), balance)}, was)


def _drop(database: Database, before: float, now: float, who: str, told: Told | None) -> Pruned:
    """Drop the lessons that are folded, a few hundred at a time."""
    with database.read() as session:
        keys = _going(session, before)
    for start in range(0, len(keys), LOT):
        some = keys[start : start + LOT]
        with database.change(now, who) as change:
            if not start:
                change.audit("pruned", WHAT, f"{len(keys)} of them, by age")
            put_anew(change.session, ExperimentRow.id, {each: {"lesson": None} for each in some})
        if told is not None:
            told(Pruned(WHAT, len(keys), before), start + len(some))
    return Pruned(WHAT, len(keys), before)


def _going(session: Session, before: float, foldings: Sequence[Folding] = ()) -> list[str]:
    """List the experiments whose lessons go, by where classes stand on record and in these."""
    told = balances.runs(session)
    until = balances.untils(session)
    for each in foldings:
        if each.campaign_id == ALL:
            until |= {name: stood.until for name, stood in each.stood.items()}
        elif each.stood:
            told[each.campaign_id] = max(stood.run for stood in each.stood.values())
    runs = {row.id: told.get(row.id, 0) for row in campaigns.live(session)}
    row = ExperimentRow
    query = select(row.id, row.request_class, row.ended_at)
    old = session.execute(query.where(row.ended_at < before, *_covered(session, runs)))
    return [identity for identity, name, ended in old if ended < until.get(name, 0.0)]


def _covered(session: Session, runs: Mapping[str, int]) -> list[ColumnElement[bool]]:
    """Choose lessons that no campaign that goes on will ask for. ``runs``: of such campaigns, the
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
