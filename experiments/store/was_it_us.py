"""Which experiments were armed in a window of time: one question, answered by one index.

Read from the record, so it holds for experiments of before as well, and costs what the window
holds, however much is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Float, and_, case, func, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import GenericFunction

from ldfi.experiments.domain.campaign.recording import GONE
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.judging.experiment import ACTIVE, ExperimentState
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.judging.was_it_us import Bunch, Exposure, Injected
from ldfi.experiments.store.device_sums import (
    FIGURES,
    HURTING,
    SUMS,
    compared,
    counts_on_record,
)
from ldfi.experiments.store.schema import ExperimentRow

LONGEST: Final = 3_600.0
"""No experiment injects for so long: it observes and settles for minutes, and its lease ends it.
So the index over ``armed_at`` alone finds all of a window."""


class _whole(GenericFunction[float]):  # noqa: N801 - a function
    """The whole part of a number; of one below 0 it does not matter which."""

    type = Float()
    name = "floor"
    inherit_cache = True


@compiles(_whole, "sqlite")
def _whole_in_sqlite(element: _whole, compiler: Any, **options: Any) -> str:
    """SQLite need not have ``floor``."""
    return f"CAST({compiler.process(element.clauses, **options)} AS INTEGER)"


_Row = ExperimentRow
_COLUMNS: Final = (
    *(_Row.id, _Row.campaign_id, _Row.request_class, _Row.hypothesis, _Row.state, _Row.verdict),
    *(_Row.reason, _Row.armed_at, _Row.ended_at, _Row.lease_until),
    *(_Row.members_reserved, _Row.members_charged, _Row.members_hurt),
)
_SUMS: Final = (
    func.count(),
    func.count().filter(_Row.verdict == "harmful"),
    func.count().filter(_Row.state.in_(ACTIVE)),
    func.count().filter(_Row.reason == GONE),
    func.count().filter(HURTING),
    *SUMS,
)
"""The fields of an :class:`Exposure`, and of its counts, in their order."""


def within(since: float, until: float, request_class: str | None = None) -> ColumnElement[bool]:
    """Choose experiments of which anything may have been injected in this window."""
    chosen = and_(_Row.armed_at.between(since - LONGEST, until), _lasted(since))
    if request_class is None:
        return chosen
    # Not by the index over classes: that would read all there ever was of this one.
    return chosen & (_Row.request_class.concat("") == request_class)


def injected(session: Session, *chosen: ColumnElement[bool]) -> list[Injected]:
    """List experiments in the order in which they were armed."""
    query = select(*_COLUMNS, *FIGURES).where(*chosen)
    rows = session.execute(query.order_by(_Row.armed_at, _Row.id))
    return [_injected(row, compared(row[len(_COLUMNS) :])) for row in rows]


def injected_of(row: ExperimentRow) -> Injected:
    """Read the same from a whole record."""
    return _injected(row, row.comparison or {})


def exposure(
    session: Session, since: float, until: float, request_class: str | None = None
) -> Exposure:
    """Sum up what they did, as far as it is on record."""
    query = select(*_SUMS).where(within(since, until, request_class))
    return _exposure(*session.execute(query.select_from(_Row)).one())


def _lasted(since: float) -> ColumnElement[bool]:
    return and_(
        or_(_Row.ended_at.is_(None), _Row.ended_at >= since),
        or_(_Row.lease_until.is_(None), _Row.lease_until >= since),
    )


def bunches(
    session: Session,
    since: float,
    until: float,
    every: float,
    known: tuple[float, float] | None = None,
) -> list[Bunch]:
    """List everything in a window, in steps of ``every`` seconds: however much it is, that ends.

    But for what was armed from one time until before another that is ``known`` to the caller.
    """
    step = _whole(_Row.armed_at / every)
    first, last = known or (until, until)
    chosen = _lasted(since) & or_(
        and_(_Row.armed_at >= since - LONGEST, _Row.armed_at < first),
        and_(_Row.armed_at >= last, _Row.armed_at <= until),
    )
    running = case((_Row.state.in_(ACTIVE), 1), else_=0)
    of = (_Row.request_class, step, _Row.verdict, running)
    query = select(*of[:3], func.min(_Row.id), func.min(_Row.armed_at), *_SUMS)
    rows = session.execute(query.where(chosen).group_by(*of))
    return [
        Bunch(name, int(at), cast(Verdict | None, verdict), first, begun, _exposure(*sums))
        for name, at, verdict, first, begun, *sums in rows
    ]


def _exposure(
    experiments: int, harmful: int, running: int, lost: int, hurting: int, *devices: int
) -> Exposure:
    return Exposure(experiments, harmful, running, lost, hurting, DeviceCounts(*map(int, devices)))


def _injected(row: Any, comparison: Mapping[str, Any]) -> Injected:
    """``row``: a record, or ``_COLUMNS`` of it."""
    ends = [each for each in (row.ended_at, row.lease_until) if each is not None]
    return Injected(
        id=row.id,
        campaign_id=row.campaign_id,
        request_class=row.request_class,
        hypothesis=tuple(row.hypothesis),
        state=cast(ExperimentState, row.state),
        verdict=cast(Verdict | None, row.verdict),
        reason=row.reason,
        since=row.armed_at,
        until=min(ends, default=None),
        counts=counts_on_record(row, comparison),
        lost=row.reason == GONE,
    )
