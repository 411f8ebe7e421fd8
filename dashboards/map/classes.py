"""Request classes: the list, each one with its lineage, and the history of each of its points."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import func, select
from sqlalchemy.orm import defer

from ldfi.analysis.phrases import said_point
from ldfi.dashboards.curves import looks_picture
from ldfi.dashboards.evidence_cache import evidence_kept
from ldfi.dashboards.experiment_rows import tried_of
from ldfi.dashboards.map.class_story import DONE, class_story, point_story, stopped_by
from ldfi.dashboards.proof_story import Proved
from ldfi.dashboards.render import rendered
from ldfi.dashboards.roles import ROLES
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.worst_findings import STATES, Weakness, callees, harm, hurting
from ldfi.errors import NotFound
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.class_view import ClassView
from ldfi.experiments.api.input_documents import Filter, Line
from ldfi.experiments.api.repairs import called_of
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.domain.campaign.lifecycle import SERIOUS
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.queries.experiment_summary import experiment_summary
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)

SHOWN = 200
NEWEST = 10


@router.get("/classes")
async def listing(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    name: Annotated[Filter, Query()] = None,
) -> Response:
    """List the classes learned so far, the busiest first."""
    now = clock.now()
    known = [
        each
        for each in engine.catalogue.classes.values()
        if name is None or matching([name, f"*{name}*"], [each.name]) is not None
    ]
    known.sort(key=lambda each: (-each.rate(now), each.name))
    query = (
        select(FindingRow.request_class, func.count())
        .where(FindingRow.state.in_(SERIOUS))
        .group_by(FindingRow.request_class)
    )
    with db.read() as session:
        hurting = dict(session.execute(query).tuples().all())
    return rendered(
        request,
        "map/classes.html",
        classes=[
            ClassView.of(each, now, engine.scheduler.state.injectors) for each in known[:SHOWN]
        ],
        more=max(0, len(known) - SHOWN),
        hurting=hurting,
        name=name,
        known=len(engine.catalogue.classes),
    )


@router.get("/classes/{name:path}")
async def show(name: str, request: Request, engine: Running, db: Db, _caller: Viewer) -> Response:
    """Show one class: what it relies on, what was proved, and what is still open."""
    known = _known(engine, name)
    found = select(FindingRow).where(FindingRow.request_class == name)
    tried = (
        select(ExperimentRow)
        .options(defer(ExperimentRow.lesson))
        .where(ExperimentRow.request_class == name, ExperimentRow.ended_at.is_not(None))
        .order_by(ExperimentRow.ended_at.desc(), ExperimentRow.id.desc())
    )
    done = select(AuditRow).where(AuditRow.subject == name[:64], AuditRow.what.startswith("class "))
    with db.read() as session:
        evidence = evidence_kept(request).of(session, known)
        newest = session.scalars(found.order_by(FindingRow.found_at.desc()).limit(NEWEST))
        weak = [Weakness(row, None) for row in newest]
        weak.sort(key=lambda each: harm(each.finding, None))
        findings = hurting(session, weak, callees(engine), called_of(request))
        experiments = [experiment_summary(row) for row in session.scalars(tried.limit(NEWEST))]
        changes = list(session.scalars(done.order_by(AuditRow.id.desc()).limit(NEWEST)))
    open_now = sum(each.finding.state in SERIOUS for each in weak)
    story = class_story(known, evidence.knowledge, evidence.certificate)
    now = clock.now()
    view = ClassView.of(known, now, engine.scheduler.state.injectors)
    campaigns = [each for each in engine.scheduler.state.campaigns.values() if each.live()]
    waiting = [each.waiting[name] for each in campaigns if name in each.waiting]
    current_state = await engine.current_state(now)
    reached = known.traffic.topology.callees
    return rendered(
        request,
        "map/class.html",
        story=story,
        stands=Proved(name, 0.0, story.stand, open_now).sentence,
        view=view,
        stopped=stopped_by(evidence.knowledge, current_state, waiting),
        unreached=[(said_point(at, reached), at, do) for at, do in view.no_injector.items()],
        looks=looks_picture(story.looks) if len(story.looks) > 1 else None,
        findings=findings,
        experiments=tried_of(experiments, callees(engine)),
        changes=[(DONE.get(row.what, row.what), row) for row in changes],
        states=STATES,
        roles=ROLES,
        trace_url=request.app.state.trace_url,
    )


@router.get("/point")
async def point(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    request_class: Annotated[Line, Query(max_length=1000)],
    point: Annotated[Line, Query(max_length=1000)],
) -> Response:
    """Show the history of one point of a class: a page, or what a page shows beside its graph."""
    known = _known(engine, request_class)
    with db.read() as session:
        evidence = evidence_kept(request).of(session, known)
    story = point_story(known, evidence.knowledge, evidence.certificate, point)
    template = "map/point_story.html" if "hx-request" in request.headers else "map/point.html"
    return rendered(request, template, story=story, known=known)


def _known(engine: Engine, name: str) -> KnownClass:
    """Find a class that is known. Raises NotFound."""
    known = engine.catalogue.classes.get(name)
    if known is None:
        raise NotFound(f"there is no request class {name!r}; it may have expired")
    return known
