"""Was it us? What was armed in a window of time, what came of it, and who halted meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session, defer

from ldfi.experiments.api.audited import audited
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import Filter
from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, Rows, page
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, Running, live_experiments
from ldfi.experiments.api.views import AuditView, DevicesView, View
from ldfi.experiments.domain.judging.counts import DeviceCounts, counts_so_far
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.injected import Exposure, Injected, WasIt
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import injected as stored
from ldfi.experiments.store.schema import AuditRow, ExperimentRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/was-it-us", tags=["safety"], route_class=GuardedRoute)

LAST: Final = 900.0
"""Seconds that are looked back where nobody says how far."""

ENDED_BY: Final = ("halt", "resume", "disarmed", "experiment called off")
"""What is done to everything, or to an experiment, by somebody who wants it to end or go on."""

DONE: Final = 50
_LATEST: Final = 2.0**40

Moment = Annotated[float, Field(ge=0, le=_LATEST, allow_inf_nan=False)] | SkipJsonSchema[None]


class InjectedView(View):
    """An experiment that was armed in the window."""

    id: str = Field(description="The experiment's id.", examples=["7d20c4e8b1f3"])
    campaign_id: str = Field(
        description="The campaign that it belongs to.", examples=["0b9c6a7e2f10"]
    )
    request_class: str = Field(
        description="The request class whose requests it treated.", examples=["GET /boot"]
    )
    hypothesis: list[str] = Field(
        description="The set of failures that was tried: KIND@POINT or down@SYSTEM.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    state: str = Field(
        description="How far it is: `armed`, `observing` and `settling` may still inject; "
        "`decided` and `aborted` are over.",
        examples=["observing", "decided", "aborted"],
    )
    verdict: str | None = Field(
        description="What was decided; null: nothing yet, or it was aborted.",
        examples=["harmful", "tolerated", "inconclusive"],
    )
    reason: str = Field(
        description="Why it ended, in words; empty: there is nothing to say.",
        examples=["evidence"],
    )
    since: float = Field(description="When it was armed.")
    until: float | None = Field(description="After which nothing of it was injected, for sure.")
    treated: int = Field(
        description="Old form of `devices.treated`; where that is unknown, at most."
    )
    hurt: int = Field(description="Old form of `devices.hurt`.")
    devices: DevicesView = Field(description="Its devices, as far as anybody knows.")
    lost: bool = Field(description="Nobody knows what it did: whoever ran it was gone.")

    @classmethod
    def of(cls, injected: Injected) -> InjectedView:
        """Show it."""
        devices = DevicesView.model_validate(injected.counts)
        return cls(
            **{name: getattr(injected, name) for name in _INJECTED},
            treated=devices.treated or devices.unknown,
            hurt=devices.hurt,
            devices=devices,
        )


_INJECTED: Final = (
    *("id", "campaign_id", "request_class", "hypothesis", "state", "verdict", "reason"),
    *("since", "until", "lost"),
)


class WasItUsView(Page[InjectedView]):
    """The answer, and what it rests on: the experiments, newest first, and who intervened."""

    since: float = Field(
        description="Where the window begins (Unix seconds).", examples=[1767225600.0]
    )
    until: float = Field(description="Where it ends (Unix seconds).", examples=[1767225600.0])
    answer: WasIt = Field(description="`no` is certain; that it was is never said for certain.")
    words: str = Field(
        description="The answer in a sentence.",
        examples=["Perhaps: 2 of 4 experiments hurt 32 devices."],
    )
    experiments: int = Field(description="All that were armed in the window.")
    harmful: int = Field(0, description="Those of them with that verdict.")
    hurting: int = Field(0, description="Those that hurt devices, whatever the verdict.")
    treated: int = Field(0, description="Devices that they treated.")
    hurt: int = Field(description="Treated devices that failed under them.")
    bystanders_hurt: int = Field(0, description="Devices that nobody drew, and that failed.")
    done: list[AuditView] = Field(description="Halts, resumes and experiments called off.")


@router.get("")
async def was_it_us(
    engine: Running,
    db: Db,
    _caller: Viewer,
    links: Links,
    since: Annotated[Moment, Query(description="Unix seconds; 15 minutes ago.")] = None,
    until: Annotated[Moment, Query(description="Unix seconds; now.")] = None,
    request_class: Annotated[Filter, Query(description="Only on this class.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> WasItUsView:
    """Return whether anything was injected in a window of time, and what came of it."""
    until = clock.now() if until is None else until
    since = max(0.0, until - LAST) if since is None else since
    if since > until:
        said = (
            f"must not be after until, {until:g}: the window ends before it begins, got {since:g}"
        )
        raise Problem(422, "invalid", said, at="query/since")
    with db.read() as session:
        exposure = exposure_of(session, engine, since, until, request_class)
        found = armed(session, since, until, request_class, cursor, limit)
        rows = with_live(engine, [stored.injected_of(row) for row in found.items])
        done = audited(session, interventions(session, since, until))
    if found.next is not None:
        links.following(found.next)
    return WasItUsView(
        items=[InjectedView.of(each) for each in rows],
        cursor=found.next,
        since=since,
        until=until,
        answer=exposure.answer,
        words=exposure.words,
        experiments=exposure.experiments,
        harmful=exposure.harmful,
        hurting=exposure.hurting,
        hurt=exposure.counts.hurt,
        bystanders_hurt=exposure.counts.bystanders_hurt,
        treated=exposure.counts.treated,
        done=done,
    )


def armed(
    session: Session,
    since: float,
    until: float,
    request_class: str | None,
    cursor: str | None,
    limit: int,
    *unread: InstrumentedAttribute[Any],
) -> Rows[ExperimentRow]:
    """Read one page of what was armed in a window, the newest first, but for columns that are
    ``unread``. By when it was armed: there is an index for that, whatever the window is."""
    query = select(ExperimentRow).options(*map(defer, unread))
    query = query.where(stored.within(since, until, request_class))
    return page(session, query, ExperimentRow.armed_at, ExperimentRow.id, cursor, limit)


def exposure_of(
    session: Session, engine: Engine, since: float, until: float, request_class: str | None
) -> Exposure:
    """Sum up what a window's experiments did, those that still run included."""
    recorded = stored.exposure(session, since, until, request_class)
    return (
        recorded if since > clock.now() else recorded + live_exposure(engine, until, request_class)
    )


def live_exposure(
    engine: Engine, until: float = math.inf, request_class: str | None = None
) -> Exposure:
    """Sum up what is not on record yet of those that still run: whom they have hurt so far."""
    counts = [
        counts_so_far(each, 0)
        for each in live_experiments(engine).values()
        if each.active
        and (each.armed_at or 0.0) <= until
        and request_class in {None, each.request_class}
    ]
    hurting = sum(each.hurting for each in counts)
    return Exposure(hurting=hurting, counts=sum(counts, DeviceCounts()))


def with_live(engine: Engine, injected: Sequence[Injected]) -> list[Injected]:
    """Count the devices of what still runs: that is on record only afterwards."""
    live = live_experiments(engine)
    return [_so_far(each, live.get(each.id)) for each in injected]


def _so_far(injected: Injected, experiment: Experiment | None) -> Injected:
    if experiment is None:
        return injected
    return replace(injected, counts=counts_so_far(experiment, injected.counts.reserved))


def interventions(session: Session, since: float, until: float) -> list[AuditRow]:
    """List who halted, resumed or called something off in a window, oldest first."""
    query = select(AuditRow).where(AuditRow.at.between(since, until), AuditRow.what.in_(ENDED_BY))
    return list(session.scalars(query.order_by(AuditRow.at, AuditRow.id).limit(DONE)))
