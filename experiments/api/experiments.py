"""Experiments: one at a time, on request; approval; control against treatment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import select

from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.campaign_view import CampaignView
from ldfi.experiments.api.campaigns import campaign_view
from ldfi.experiments.api.deprecated import noting
from ldfi.experiments.api.experiment_view import ExperimentView
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.input_documents import UNSAID, Filter, Id, PerhapsReason
from ldfi.experiments.api.new_campaign import NewExperiment
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
from ldfi.experiments.domain.judging.experiment import ExperimentState
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import campaigns as stored
from ldfi.experiments.store import experiments as on_record
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/experiments", tags=["experiments"], route_class=IdempotentRoute)


@router.post("", status_code=202, responses={404: {}})
async def try_one(
    new: Annotated[NewExperiment, Depends(noting(NewExperiment))],
    request: Request,
    engine: Running,
    db: Db,
    caller: Operator,
) -> CampaignView:
    """Try one hypothesis on one class, as a campaign of its own; watch that."""
    check_promql(request, new)
    check_reach(engine, new.definition())
    definition = forecast_of(engine, new.definition(), new).checked()
    campaign = engine.scheduler.commands.start(definition, caller.name, clock.now())
    with db.read() as session:
        row = stored.load(session, campaign.id)
        return campaign_view(session, row, engine, campaign)


@router.get("")
async def listing(
    engine: Running,
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[
        ExperimentState | SkipJsonSchema[None], Query(description="Only those in this state.")
    ] = None,
    verdict: Annotated[
        Verdict | SkipJsonSchema[None], Query(description="Only those that ended so.")
    ] = None,
    request_class: Annotated[Filter, Query(description="Only those on this class.")] = None,
) -> Page[ExperimentView]:
    """List every experiment, newest first."""
    query = select(ExperimentRow)
    wanted = {"state": state, "verdict": verdict, "request_class": request_class}
    query = query.filter_by(**{name: value for name, value in wanted.items() if value is not None})
    live = live_experiments(engine)
    with db.read() as session:
        found = page(session, query, ExperimentRow.created_at, ExperimentRow.id, cursor, limit)
        return found.answer(links, lambda row: ExperimentView.of(row, live.get(row.id)))


@router.get("/{experiment_id}")
async def show(experiment_id: Id, engine: Running, db: Db, _caller: Viewer) -> ExperimentView:
    """Show one experiment, with control against treatment and the course of the evidence."""
    return _view(engine, db, experiment_id)


@router.post("/{experiment_id}/approve")
async def approve(experiment_id: Id, engine: Running, db: Db, caller: Operator) -> ExperimentView:
    """Let an experiment that waits for approval be armed."""
    engine.scheduler.commands.approve(experiment_id, caller.name, clock.now())
    return _view(engine, db, experiment_id)


@router.post("/{experiment_id}/reject")
async def reject(
    experiment_id: Id, engine: Running, db: Db, caller: Operator, why: PerhapsReason = UNSAID
) -> ExperimentView:
    """Have an experiment that waits for approval never tried in its campaign."""
    engine.scheduler.commands.reject(experiment_id, why.reason, caller.name, clock.now())
    return _view(engine, db, experiment_id)


@router.post("/{experiment_id}/abort")
async def abort(
    experiment_id: Id, engine: Running, db: Db, caller: Operator, why: PerhapsReason = UNSAID
) -> ExperimentView:
    """Disarm an experiment at once. Its campaign goes on and may try the same again."""
    engine.scheduler.commands.abort(experiment_id, why.reason, caller.name, clock.now())
    return _view(engine, db, experiment_id)


def _view(engine: Engine, db: Database, experiment_id: str) -> ExperimentView:
    with db.read() as session:
        row = session.get(ExperimentRow, experiment_id)
        if row is not None:
            return ExperimentView.of(row, live_experiments(engine).get(experiment_id))
        on_record.unless_pruned(session, experiment_id)
    campaign, experiment = engine.scheduler.state.experiment(experiment_id)
    assert live_campaign(engine, campaign.id) is campaign  # noqa: S101
    return ExperimentView.live(experiment, campaign)
