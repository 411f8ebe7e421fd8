"""Findings: what hurts, and what has become of it."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import select

from experiments.api.auth import Operator, Viewer
from experiments.api.documents import Filter, Id, Reason
from experiments.api.idempotency import IdempotentRoute
from experiments.api.new_campaign import Bounds
from experiments.api.pagination import Cursor, Limit, Links, Page, page
from experiments.api.service import Db, Running, check_promql
from experiments.api.views import CampaignView, FindingView, finding_view
from experiments.domain.campaign import Definition
from experiments.errors import NotFound
from experiments.store import campaigns as stored
from experiments.store import findings
from experiments.store.schema import FindingRow

router = APIRouter(prefix="/api/v1/findings", tags=["findings"], route_class=IdempotentRoute)

State = Literal["suspected", "open", "refuted", "fixed", "acknowledged", "regressed"]


@router.get("")
async def listing(
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[
        State | SkipJsonSchema[None], Query(description="Only those in this state.")
    ] = None,
    request_class: Annotated[Filter, Query(description="Only those of this class.")] = None,
) -> Page[FindingView]:
    """Every finding, newest first; those that were refuted as well."""
    wanted = {"state": state, "request_class": request_class}
    query = select(FindingRow)
    query = query.filter_by(**{name: value for name, value in wanted.items() if value is not None})
    with db.read() as session:
        return page(session, query, FindingRow.found_at, FindingRow.id, cursor, limit).answer(
            links, finding_view
        )


@router.get("/{finding_id}")
async def show(finding_id: Id, db: Db, _caller: Viewer) -> FindingView:
    """One finding."""
    with db.read() as session:
        row = session.get(FindingRow, finding_id)
        if row is None:
            raise NotFound(f"there is no finding {finding_id!r}")
        return finding_view(row)


@router.post("/{finding_id}/acknowledge")
async def acknowledge(finding_id: Id, why: Reason, db: Db, caller: Operator) -> FindingView:
    """Say that somebody knows of it and what will become of it."""
    with db.change(time.time(), caller.name) as change:
        return finding_view(findings.acknowledge(change, finding_id, why.reason))


@router.post("/{finding_id}/verify", status_code=202)
async def verify(
    finding_id: Id, bounds: Bounds, request: Request, engine: Running, db: Db, caller: Operator
) -> CampaignView:
    """Try it once more, as a campaign of its own: is it fixed, or has it regressed?"""
    check_promql(request, bounds)
    with db.read() as session:
        row = session.get(FindingRow, finding_id)
        if row is None:
            raise NotFound(f"there is no finding {finding_id!r}")
        definition = Definition(
            settings=bounds.settings(),
            classes=(row.request_class,),
            name=f"verify {finding_id}",
            hypotheses=(frozenset(row.faults),),
        )
    campaign = engine.scheduler.start(definition, caller.name, time.time())
    with db.read() as session:
        return CampaignView.of(stored.load(session, campaign.id), (0, 0, 0), campaign)
