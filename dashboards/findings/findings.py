"""Weaknesses: all of them by what they cost, and for each one page that anybody can read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from ldfi.analysis.repairs.called import BY_THEIR_NAMES, Called
from ldfi.analysis.repairs.owners import Owners
from ldfi.dashboards.files import page_file
from ldfi.dashboards.findings.finding_story import FindingStory, finding_story
from ldfi.dashboards.findings.findings_story import MOST, Grouping, Wanted, matching, weaknesses
from ldfi.dashboards.forms import Submitted, read_as
from ldfi.dashboards.links import to_campaign, to_finding
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.worst import Which
from ldfi.experiments.api import findings as api
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.documents import Filter, Id, Reason
from ldfi.experiments.api.new_campaign import Bounded
from ldfi.experiments.api.repairs import Explained, called_of, explained, owners_of
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.domain.campaign.lifecycle import SERIOUS
from ldfi.experiments.queries.finding_commands import scenario_if_any
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import findings
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)
api_router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, include_in_schema=False)
"""The page as a file, for the command line with its token."""

EVIDENCE = 10
"""Experiments that tried just this, the newest, that are shown."""
HISTORY = 100
AT_ONCE = 50
"""Findings that are explained before anybody else has a turn: some hundredths of a second."""


@router.get("/findings")
async def listing(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    state: Annotated[Which | None, Query()] = None,
    request_class: Annotated[Filter, Query()] = None,
    owner: Annotated[Filter, Query()] = None,
    takes: Annotated[Filter, Query()] = None,
    group: Annotated[Grouping, Query()] = "cause",
    start: Annotated[int, Query(ge=0, le=MOST)] = 0,
) -> Response:
    """Show weaknesses, the worst first; what needs somebody, where nothing else is asked for."""
    now = clock.now()
    wanted = Wanted(state, request_class, owner, takes, group, start)
    newest = select(FindingRow).order_by(FindingRow.found_at.desc(), FindingRow.id)
    with db.read() as session:
        every = list(session.scalars(newest.limit(MOST)))
    told = await explained_in_turns(
        matching(every, state, now), engine, db, owners_of(request), called_of(request)
    )
    rates = {name: known.rate(now) for name, known in engine.catalogue.classes.items()}
    shown = weaknesses(every, told, rates, wanted, now, called_of(request))
    return rendered(request, "findings/findings.html", shown=shown, most=MOST)


async def explained_in_turns(
    rows: Sequence[FindingRow],
    engine: Engine,
    db: Database,
    owners: Owners,
    called: Called = BY_THEIR_NAMES,
) -> list[Explained]:
    """Explain findings, a few at a time: the engine has to tick meanwhile."""
    told: list[Explained] = []
    for start in range(0, len(rows), AT_ONCE):
        await asyncio.sleep(0)
        with db.read() as session:
            some = rows[start : start + AT_ONCE]
            told += explained(session, some, engine, owners, called)
    return told


@router.get("/findings/{finding_id}")
async def show(
    finding_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Show one finding."""
    with db.read() as session:
        story = told(session, engine, finding_id, request)
    return _page(request, story)


@router.post("/findings/{finding_id}/acknowledge")
async def acknowledge(
    finding_id: Id, request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Record that somebody knows of it, and says what will become of it."""
    why, problems = read_as(Reason, {"reason": form.text("reason")})
    if why is None:
        with db.read() as session:
            story = told(session, engine, finding_id, request)
        return _page(request, story, 422, problems["reason"])
    with db.change(clock.now(), caller.name) as change:
        findings.acknowledge(change, finding_id, why.reason)
    return RedirectResponse(to_finding(finding_id), status_code=303)


@router.post("/findings/{finding_id}/verify")
async def verify(
    finding_id: Id, request: Request, engine: Running, db: Db, caller: Operator
) -> Response:
    """Try it once more on live traffic, as a campaign of its own."""
    campaign = await api.verify(finding_id, Bounded.model_validate({}), request, engine, db, caller)
    return RedirectResponse(to_campaign(campaign.id), status_code=303)


@router.get("/findings/{finding_id}/file")
@api_router.get("/findings/{finding_id}/file")
async def file(
    finding_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Render one finding as a page that needs nothing from anywhere."""
    with db.read() as session:
        story = told(session, engine, finding_id, request)
    return page_file(request, "findings/finding_file.html", f"finding-{finding_id}", story=story)


def told(session: Session, engine: Engine, finding_id: str, request: Request) -> FindingStory:
    """Tell everything there is to tell of a finding: seven queries. Raises NotFound."""
    row = findings.load(session, finding_id)
    tried = (
        select(ExperimentRow)
        .where(
            ExperimentRow.ended_at.is_not(None),
            or_(ExperimentRow.tried == row.id, ExperimentRow.id == row.experiment_id),
        )
        .order_by(ExperimentRow.ended_at.desc(), ExperimentRow.id.desc())
        .limit(EVIDENCE)
    )
    done = select(AuditRow).where(AuditRow.subject == finding_id).order_by(AuditRow.id.desc())
    experiments = list(session.scalars(tried))
    history = list(session.scalars(done.limit(HISTORY)))
    mending = explained(session, [row], engine, owners_of(request), called_of(request))[0]
    url = request.app.state.public_url or str(request.base_url).rstrip("/")
    scenario = scenario_if_any(session, finding_id)
    return finding_story(mending, experiments, history, url, scenario)


def _page(request: Request, story: FindingStory, status: int = 200, problem: str = "") -> Response:
    return rendered(
        request,
        "findings/finding.html",
        status,
        story=story,
        problem=problem,
        hurting=story.finding.state in SERIOUS,
        trace_url=request.app.state.trace_url,
        base="",
    )
