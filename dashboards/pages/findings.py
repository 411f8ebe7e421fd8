"""Findings: the list, and for each one page that anybody can read."""

from __future__ import annotations

import json
import time
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import String, cast, or_, select
from sqlalchemy.orm import Session

from ldfi.dashboards.documents import read_as
from ldfi.dashboards.finding_story import FindingStory, finding_story
from ldfi.dashboards.forms import Submitted
from ldfi.dashboards.links import to_campaign, to_finding
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api import findings as api
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.documents import Filter, Id, Reason
from ldfi.experiments.api.new_campaign import Bounds
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.control.engine import Engine
from ldfi.experiments.domain.campaign.lifecycle import HURTING, FindingState
from ldfi.experiments.store import findings
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow

router = APIRouter(route_class=PageRoute)

STATES: tuple[FindingState, ...] = get_args(FindingState)
EVIDENCE = 10
"""Experiments that tried just this, the newest, that are shown."""
HISTORY = 100


@router.get("/findings")
async def listing(
    request: Request,
    db: Db,
    _caller: Viewer,
    state: Annotated[FindingState | None, Query()] = None,
    request_class: Annotated[Filter, Query()] = None,
    cursor: Cursor = None,
) -> Response:
    """List every finding, newest first."""
    query = select(FindingRow)
    wanted = {"state": state, "request_class": request_class}
    query = query.filter_by(**{name: value for name, value in wanted.items() if value is not None})
    with db.read() as session:
        found = page(session, query, FindingRow.found_at, FindingRow.id, cursor)
    return rendered(request, "findings.html", found=found, wanted=wanted, states=STATES)


@router.get("/findings/{finding_id}")
async def show(
    finding_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Show one finding."""
    with db.read() as session:
        story = told(session, engine, finding_id)
    return _page(request, story)


@router.post("/findings/{finding_id}/acknowledge")
async def acknowledge(
    finding_id: Id, request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Record that somebody knows of it, and says what will become of it."""
    why, problems = read_as(Reason, {"reason": form.text("reason")})
    if why is None:
        with db.read() as session:
            story = told(session, engine, finding_id)
        return _page(request, story, 422, problems["reason"])
    with db.change(time.time(), caller.name) as change:
        findings.acknowledge(change, finding_id, why.reason)
    return RedirectResponse(to_finding(finding_id), status_code=303)


@router.post("/findings/{finding_id}/verify")
async def verify(
    finding_id: Id, request: Request, engine: Running, db: Db, caller: Operator
) -> Response:
    """Try it once more on live traffic, as a campaign of its own."""
    campaign = await api.verify(finding_id, Bounds.model_validate({}), request, engine, db, caller)
    return RedirectResponse(to_campaign(campaign.id), status_code=303)


def told(session: Session, engine: Engine, finding_id: str) -> FindingStory:
    """Tell everything there is to tell of a finding: three queries. Raises NotFound."""
    row = findings.load(session, finding_id)
    same = cast(ExperimentRow.hypothesis, String) == json.dumps(sorted(row.faults))
    tried = (
        select(ExperimentRow)
        .where(
            ExperimentRow.request_class == row.request_class,
            ExperimentRow.ended_at.is_not(None),
            or_(same, ExperimentRow.id == row.experiment_id),
        )
        .order_by(ExperimentRow.ended_at.desc(), ExperimentRow.id.desc())
        .limit(EVIDENCE)
    )
    done = select(AuditRow).where(AuditRow.subject == finding_id).order_by(AuditRow.id.desc())
    experiments = list(session.scalars(tried))
    history = list(session.scalars(done.limit(HISTORY)))
    known = engine.catalogue.classes.get(row.request_class)
    callees = known.traffic.topology.callees if known is not None else {}
    return finding_story(row, experiments, history, callees)


def _page(request: Request, story: FindingStory, status: int = 200, problem: str = "") -> Response:
    return rendered(
        request,
        "finding.html",
        status,
        story=story,
        problem=problem,
        hurting=story.finding.state in HURTING,
        trace_url=request.app.state.trace_url,
        base="",
    )
