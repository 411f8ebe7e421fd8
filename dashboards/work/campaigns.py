"""Campaigns: the list, one of them as it goes on, and what an operator may do to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.analysis.phrases import said_shortly
from ldfi.dashboards.experiment_rows import Tried, tried_of
from ldfi.dashboards.forms import Submitted, required
from ldfi.dashboards.links import to_campaign
from ldfi.dashboards.render import rendered, viewers_zone
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.todo import acts
from ldfi.dashboards.work.burn_down import burn_down, picture
from ldfi.dashboards.work.campaign_story import SHOWN, bounds, by_class, does, folds, hours, title
from ldfi.dashboards.work.campaigns_story import work
from ldfi.dashboards.worst_findings import STATES as WEAK
from ldfi.dashboards.worst_findings import callees
from ldfi.experiments.api import campaigns
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.campaign_view import CampaignView, ClassProgress
from ldfi.experiments.api.input_documents import Id, Reason
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.repairs import called_of
from ldfi.experiments.api.service import Db, Running, live_campaign, live_experiments
from ldfi.experiments.domain.campaign.campaign import Campaign, CampaignState
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.queries.campaign_summary import campaign_summary
from ldfi.experiments.queries.experiment_summary import (
    MOST,
    experiment_summary,
    experiments_of_run,
)
from ldfi.experiments.store import campaigns as stored
from ldfi.experiments.store.schema import (
    AuditRow,
    CampaignRow,
    ExperimentRow,
    FindingRow,
    finding_id,
)
from ldfi.experiments.telemetry import clock

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
    """Say what runs, what is planned and who must act; and list every campaign, newest first."""
    now, scheduler, callees_of = clock.now(), engine.scheduler.state, callees(engine)
    query = select(CampaignRow)
    if state is not None:
        query = query.where(CampaignRow.state == state)
    with db.read() as session:
        found = page(session, query, CampaignRow.created_at, CampaignRow.id, cursor, LISTED)
        views = list(campaigns.campaign_views(session, found.items, engine).values())
    every = list(scheduler.campaigns.values())
    edges = engine.board.edges(now)
    must = acts(
        [], every, scheduler.halted, None, scheduler.breach, edges, callees_of, called_of(request)
    )
    return rendered(
        request,
        "work/campaigns.html",
        work=work(every, scheduler.windows, must, callees_of, now),
        campaigns=views,
        titles={each.id: title(each, 0) for each in views},
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
    """Show one campaign: what it was to cost and has cost, and what its experiments came to."""
    live, running = live_campaign(engine, campaign_id), live_experiments(engine)
    callees_of = callees(engine)
    with db.read() as session:
        row = stored.load(session, campaign_id)
        run = row.run - 1 if row.state == "scheduled" and row.run > 1 else row.run
        summary = campaign_summary(session, row, live, running, run)
        query = select(ExperimentRow).where(ExperimentRow.campaign_id == campaign_id)
        found = page(session, query, ExperimentRow.created_at, ExperimentRow.id, cursor, LISTED)
        experiments = [experiment_summary(each, running.get(each.id)) for each in found.items]
        of_run = experiments_of_run(session, campaign_id, run, running)
        told = tried_of(of_run, callees_of)
        weak = _findings(session, told)
        done = _done(session, campaign_id)
        view = CampaignView.of(row, summary, live)
        definition = stored.definition_from_json(row.definition)
        held = sorted(live.held) if live is not None else []
    burn = burn_down(view, definition.calendar, told, done, clock.now())
    waiting = [each for each in told if each.summary.outcome == "waiting"]
    zone = viewers_zone(request)
    return rendered(
        request,
        "work/campaign.html",
        campaign=view,
        run=run,
        title=title(view, len(_unapproved(live))),
        live=live is not None and live.live(),
        classes=_unfinished_first(view.classes),
        held=held,
        definition=definition,
        does=does(definition),
        bounds=bounds(definition.settings),
        hours=hours(definition.calendar),
        burn=burn,
        picture=picture(burn, zone) if burn.drawn else None,
        zone=zone.key,
        hurt=by_class(summary.by_class),
        folds=folds(told),
        weak=weak,
        states=WEAK,
        all=len(told),
        shown=SHOWN,
        shortly=lambda faults, name: said_shortly(faults, callees_of(name)),
        most=MOST,
        experiments=tried_of(experiments, callees_of),
        waiting=waiting,
        next=found.next,
        first=cursor is None,
    )


def _unapproved(live: Campaign | None) -> list[Experiment]:
    running = live.running.values() if live is not None and live.state == "running" else ()
    return [each for each in running if each.state == "waiting" and each.approved_by is None]


def _findings(session: Session, told: Iterable[Tried]) -> dict[str, FindingRow]:
    """Find what the harmful ones are about, by experiment."""
    ids = {
        each.id: finding_id(each.request_class, each.hypothesis)
        for each in (one.summary for one in told)
        if each.outcome == "harmful"
    }
    query = select(FindingRow).where(FindingRow.id.in_(set(ids.values())))
    rows = {row.id: row for row in session.scalars(query)}
    return {each: rows[name] for each, name in ids.items() if name in rows}


def _done(session: Session, campaign_id: str) -> list[AuditRow]:
    """List what was done to it, newest first."""
    query = select(AuditRow).where(AuditRow.subject == campaign_id).order_by(AuditRow.id.desc())
    return list(session.scalars(query.limit(LISTED)))


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
