"""Campaigns: start, watch, pause, stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.deprecated import noting
from ldfi.experiments.api.documents import UNSAID, Document, Id, Line, PerhapsReason
from ldfi.experiments.api.examples import example
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.new_campaign import NewCampaign
from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, page
from ldfi.experiments.api.service import (
    Db,
    Running,
    check_promql,
    check_reach,
    forecast_of,
    live_campaign,
    live_experiments,
)
from ldfi.experiments.api.views import CampaignView, ExperimentView
from ldfi.experiments.domain.campaign.campaign import Campaign, CampaignState
from ldfi.experiments.queries.campaign_summary import campaign_summaries, campaign_summary
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import campaigns as stored
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/campaigns", tags=["campaigns"], route_class=IdempotentRoute)


class ClassName(Document):
    """A request class."""

    request_class: Annotated[
        Line,
        Field(
            description="The exact name of the class.",
            min_length=1,
            max_length=1000,
            examples=["GET /boot"],
        ),
    ]


@router.post("", status_code=201, responses={404: {}})
async def start(
    new: Annotated[NewCampaign, Depends(noting(NewCampaign))],
    request: Request,
    engine: Running,
    db: Db,
    caller: Operator,
) -> CampaignView:
    """Start a campaign, now or when its schedule says; none that could not decide anything."""
    check_promql(request, new)
    check_reach(engine, new.definition())
    definition = forecast_of(engine, new.definition(), new).checked()
    campaign = engine.scheduler.commands.start(definition, caller.name, clock.now())
    return _view(db, campaign.id, engine, campaign)


@router.get("")
async def listing(
    engine: Running,
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[
        CampaignState | SkipJsonSchema[None], Query(description="Only those in this state.")
    ] = None,
) -> Page[CampaignView]:
    """List every campaign, newest first."""
    query = select(CampaignRow)
    if state is not None:
        query = query.where(CampaignRow.state == state)
    with db.read() as session:
        found = page(session, query, CampaignRow.created_at, CampaignRow.id, cursor, limit)
        views = campaign_views(session, found.items, engine)
        return found.answer(links, lambda row: views[row.id])


@router.get("/{campaign_id}")
async def show(campaign_id: Id, engine: Running, db: Db, _caller: Viewer) -> CampaignView:
    """Show a campaign: how far it is, class by class."""
    return _view(db, campaign_id, engine)


@router.post("/{campaign_id}/stop")
async def stop(
    campaign_id: Id, engine: Running, db: Db, caller: Operator, why: PerhapsReason = UNSAID
) -> CampaignView:
    """Stop a campaign for good; what is armed is disarmed at once."""
    campaign = engine.scheduler.commands.stop(campaign_id, why.reason, caller.name, clock.now())
    return _view(db, campaign_id, engine, campaign)


@router.post("/{campaign_id}/pause")
async def pause(
    campaign_id: Id, engine: Running, db: Db, caller: Operator, why: PerhapsReason = UNSAID
) -> CampaignView:
    """Let a campaign start nothing more for now; what is armed is disarmed at once."""
    campaign = engine.scheduler.commands.pause(campaign_id, why.reason, caller.name, clock.now())
    return _view(db, campaign_id, engine, campaign)


@router.post("/{campaign_id}/resume")
async def resume(campaign_id: Id, engine: Running, db: Db, caller: Operator) -> CampaignView:
    """Let a paused campaign go on."""
    campaign = engine.scheduler.commands.unpause(campaign_id, caller.name, clock.now())
    return _view(db, campaign_id, engine, campaign)


@router.post("/{campaign_id}/release")
async def release(
    campaign_id: Id, held: ClassName, engine: Running, db: Db, caller: Operator
) -> CampaignView:
    """Let a class that is held since its lineage changed be explored again."""
    engine.scheduler.commands.release(campaign_id, held.request_class, caller.name, clock.now())
    return _view(db, campaign_id, engine)


@router.get("/{campaign_id}/experiments")
async def experiments(
    campaign_id: Id,
    engine: Running,
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[ExperimentView]:
    """List the experiments of a campaign, newest first, with control against treatment."""
    live = live_experiments(engine)
    with db.read() as session:
        stored.load(session, campaign_id)
        query = select(ExperimentRow).where(ExperimentRow.campaign_id == campaign_id)
        found = page(session, query, ExperimentRow.created_at, ExperimentRow.id, cursor, limit)
        return found.answer(links, lambda row: ExperimentView.of(row, live.get(row.id)))


_CERTIFICATE: Final = {
    "request_class": "GET /boot",
    "version": 1,
    "certificate": {
        "format": "ldfi-certificate/2",
        "findings": [["error@api>http:GET:playlist/*"]],
        "open": [],
    },
}


@router.get("/{campaign_id}/certificates", responses={200: example([_CERTIFICATE])})
async def certificates(
    campaign_id: Id, engine: Running, db: Db, _caller: Viewer
) -> list[dict[str, Any]]:
    """Show one certificate for each class: what was proved, from what, and what stayed open."""
    live = live_campaign(engine, campaign_id)
    if live is not None:
        return engine.scheduler.certificates(live)
    with db.read() as session:
        return list(stored.load(session, campaign_id).certificates)


def campaign_view(
    session: Session, row: CampaignRow, engine: Engine, live: Campaign | None = None
) -> CampaignView:
    """Show one campaign from its record, and from itself (``live``) while it is."""
    live = live or live_campaign(engine, row.id)
    summary = campaign_summary(session, row, live, live_experiments(engine))
    return CampaignView.of(row, summary, live)


def campaign_views(
    session: Session, rows: Sequence[CampaignRow], engine: Engine
) -> dict[str, CampaignView]:
    """Show campaigns, by id: as many questions to the database however many there are."""
    campaigns = engine.scheduler.state.campaigns
    summaries = campaign_summaries(session, rows, campaigns, live_experiments(engine))
    return {
        row.id: CampaignView.of(row, summary, campaigns.get(row.id))
        for row, summary in zip(rows, summaries, strict=True)
    }


def _view(
    db: Database, campaign_id: str, engine: Engine, live: Campaign | None = None
) -> CampaignView:
    with db.read() as session:
        return campaign_view(session, stored.load(session, campaign_id), engine, live)
