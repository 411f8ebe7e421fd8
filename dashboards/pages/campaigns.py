"""Campaigns: the list, one of them as it goes on, and what an operator may do to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select

from ldfi.dashboards.documents import required
from ldfi.dashboards.forms import Submitted
from ldfi.dashboards.links import to_campaign
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api import campaigns
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.documents import Id, Reason
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running, live_campaign, live_experiments
from ldfi.experiments.api.views import CampaignView, ClassProgress, ExperimentView
from ldfi.experiments.domain.campaign.campaign import CampaignState
from ldfi.experiments.store import campaigns as stored
from ldfi.experiments.store import experiments as tried
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow

router = APIRouter(prefix="/campaigns", route_class=PageRoute)

STATES: Final[tuple[CampaignState, ...]] = get_args(CampaignState)
LISTED: Final = 30


@router.get("")
async def listing(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    state: Annotated[CampaignState | None, Query()] = None,
    cursor: Cursor = None,
) -> Response:
    """List every campaign, newest first."""
    query = select(CampaignRow)
    if state is not None:
        query = query.where(CampaignRow.state == state)
    with db.read() as session:
        found = page(session, query, CampaignRow.created_at, CampaignRow.id, cursor, LISTED)
        totals = tried.totals(session, [(row.id, row.run) for row in found.items])
        views = [
            CampaignView.of(row, totals[row.id], live_campaign(engine, row.id))
            for row in found.items
        ]
    return rendered(
        request,
        "campaigns.html",
        campaigns=views,
        next=found.next,
        first=cursor is None,
        states=STATES,
        state=state,
    )


@router.get("/{campaign_id}")
async def show(
    request: Request,
    campaign_id: Id,
    engine: Running,
    db: Db,
    _caller: Viewer,
    cursor: Cursor = None,
) -> Response:
    """Show one campaign: class by class, and its experiments, newest first."""
    live, running = live_campaign(engine, campaign_id), live_experiments(engine)
    with db.read() as session:
        row = stored.load(session, campaign_id)
        totals = tried.totals(session, [(row.id, row.run)])
        query = select(ExperimentRow).where(ExperimentRow.campaign_id == campaign_id)
        found = page(session, query, ExperimentRow.created_at, ExperimentRow.id, cursor, LISTED)
        experiments = [ExperimentView.of(each, running.get(each.id)) for each in found.items]
        view = CampaignView.of(row, totals[row.id], live)
        definition = stored.definition_from_json(row.definition)
        held = sorted(live.held) if live is not None else []
    return rendered(
        request,
        "campaign.html",
        campaign=view,
        live=live is not None and live.live(),
        classes=_unfinished_first(view.classes),
        held=held,
        definition=definition,
        experiments=experiments,
        waiting=[each for each in experiments if each.state == "waiting"],
        next=found.next,
        first=cursor is None,
    )


@router.post("/{campaign_id}/pause")
async def pause(
    campaign_id: Id, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Let it start nothing more for now."""
    why = required(Reason, {"reason": form.text("reason")})
    await campaigns.pause(campaign_id, engine, db, caller, why)
    return _back(campaign_id)


@router.post("/{campaign_id}/resume")
async def resume(campaign_id: Id, engine: Running, db: Db, caller: Operator) -> Response:
    """Let a paused one go on."""
    await campaigns.resume(campaign_id, engine, db, caller)
    return _back(campaign_id)


@router.post("/{campaign_id}/stop")
async def stop(
    campaign_id: Id, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Stop it for good."""
    why = required(Reason, {"reason": form.text("reason")})
    await campaigns.stop(campaign_id, engine, db, caller, why)
    return _back(campaign_id)


@router.post("/{campaign_id}/release")
async def release(
    campaign_id: Id, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Let a class whose lineage changed be explored again."""
    held = required(campaigns.ClassName, {"request_class": form.text("request_class")})
    await campaigns.release(campaign_id, held, engine, db, caller)
    return _back(campaign_id)


def _back(campaign_id: str) -> Response:
    return RedirectResponse(to_campaign(campaign_id), status_code=303)


def _unfinished_first(classes: Iterable[ClassProgress]) -> list[ClassProgress]:
    return sorted(
        classes, key=lambda each: (each.running is None, each.finished, -each.open, each.name)
    )
