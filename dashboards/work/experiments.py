"""Experiments: the list, and each one while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from ldfi.dashboards.evidence_cache import evidence_kept
from ldfi.dashboards.experiment_rows import said_ended, tried_of
from ldfi.dashboards.forms import Submitted, read_as
from ldfi.dashboards.lineage_graph import LineageGraph, class_graph
from ldfi.dashboards.links import to_experiment
from ldfi.dashboards.render import rendered
from ldfi.dashboards.roles import ROLES, roles_of
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.run_tree import callees_of, runs_shown
from ldfi.dashboards.work.experiment_story import (
    Now,
    evidence_of,
    now_of,
    runs_beside,
    said_faults,
    thresholds,
)
from ldfi.dashboards.worst_findings import callees
from ldfi.errors import NotFound
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.experiment_view import ExperimentView
from ldfi.experiments.api.input_documents import Filter, Id, Reason
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running, live_experiments
from ldfi.experiments.domain.judging.experiment import ExperimentState
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.queries.experiment_summary import experiment_summary
from ldfi.experiments.queries.wording import OUTCOMES, purpose_in_words
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import campaign_tallies
from ldfi.experiments.store import experiments as stored
from ldfi.experiments.store.campaigns import definition_from_json
from ldfi.experiments.store.schema import (
    AuditRow,
    CampaignRow,
    ExperimentRow,
    FindingRow,
    finding_id,
)
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)

STATES: tuple[ExperimentState, ...] = get_args(ExperimentState)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
TIMELINE = 100


@dataclass(frozen=True, slots=True)
class Found:
    """An experiment, on record or not yet."""

    view: ExperimentView
    row: ExperimentRow | None


@router.get("/experiments")
async def listing(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    state: Annotated[ExperimentState | None, Query()] = None,
    verdict: Annotated[Verdict | None, Query()] = None,
    request_class: Annotated[Filter, Query()] = None,
    campaign: Annotated[Filter, Query()] = None,
    cursor: Cursor = None,
) -> Response:
    """List every experiment, newest first, and count what came of them."""
    wanted = {"state": state, "verdict": verdict, "request_class": request_class}
    chosen = {**wanted, "campaign_id": campaign}
    query = select(ExperimentRow).options(defer(ExperimentRow.lesson))
    query = query.filter_by(**{name: value for name, value in chosen.items() if value is not None})
    live = live_experiments(engine)
    with db.read() as session:
        rows = page(session, query, ExperimentRow.created_at, ExperimentRow.id, cursor)
        summaries = [experiment_summary(row, live.get(row.id)) for row in rows.items]
        ended = campaign_tallies.by_verdict(session)
    return rendered(
        request,
        "work/experiments.html",
        title=said_ended(ended),
        experiments=tried_of(summaries, callees(engine)),
        following=rows.next,
        wanted={**wanted, "campaign": campaign},
        ended=ended,
        verdicts=VERDICTS,
        came=OUTCOMES,
    )


@router.get("/experiments/{experiment_id}")
async def show(
    experiment_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Show one experiment: control against treatment, and why it ended."""
    return _page(request, engine, db, experiment_id)


@router.get("/experiments/{experiment_id}/now")
async def now(
    experiment_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Show what changes while it runs, to be put into its page. When it is over, that is loaded
    anew."""
    with db.read() as session:
        found = _found(session, engine, experiment_id)
    current = now_of(found.view)
    response = rendered(request, "work/experiment_now.html", now=current)
    if current.over:
        response.headers["HX-Refresh"] = "true"
    return response


@router.post("/experiments/{experiment_id}/approve")
async def approve(experiment_id: Id, engine: Running, caller: Operator) -> Response:
    """Let an experiment that waits for it be armed."""
    engine.scheduler.commands.approve(experiment_id, caller.name, clock.now())
    return RedirectResponse(to_experiment(experiment_id), status_code=303)


@router.post("/experiments/{experiment_id}/reject")
async def reject(
    experiment_id: Id, request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Have an experiment that waits never tried in its campaign."""
    why, problems = read_as(Reason, {"reason": form.text("reason")})
    if why is None:
        return _page(request, engine, db, experiment_id, problems["reason"])
    engine.scheduler.commands.reject(experiment_id, why.reason, caller.name, clock.now())
    return RedirectResponse(to_experiment(experiment_id), status_code=303)


@router.post("/experiments/{experiment_id}/abort")
async def abort(
    experiment_id: Id, request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Disarm an experiment at once; its campaign goes on."""
    why, problems = read_as(Reason, {"reason": form.text("reason")})
    if why is None:
        return _page(request, engine, db, experiment_id, problems["reason"])
    engine.scheduler.commands.abort(experiment_id, why.reason, caller.name, clock.now())
    return RedirectResponse(to_experiment(experiment_id), status_code=303)


def _found(session: Session, engine: Engine, experiment_id: str) -> Found:
    """Find an experiment on record, or one that is still running. Raises NotFound."""
    row = session.get(ExperimentRow, experiment_id)
    if row is not None:
        return Found(ExperimentView.of(row, live_experiments(engine).get(experiment_id)), row)
    stored.unless_pruned(session, experiment_id)
    try:
        campaign, experiment = engine.scheduler.state.experiment(experiment_id)
    except NotFound as error:
        raise NotFound(
            f"there is no experiment {experiment_id!r}; /experiments lists them"
        ) from error
    return Found(ExperimentView.live(experiment, campaign), None)


def _page(
    request: Request, engine: Engine, db: Db, experiment_id: str, problem: str = ""
) -> Response:
    with db.read() as session:
        found = _found(session, engine, experiment_id)
        view = found.view
        campaign = session.get(CampaignRow, view.campaign_id)
        finding = session.get(FindingRow, finding_id(view.request_class, view.hypothesis))
        done = select(AuditRow).where(AuditRow.subject == experiment_id).order_by(AuditRow.id)
        timeline = list(session.scalars(done.limit(TIMELINE)))
        graph, callees = _lineage(request, engine, session, view)
    definition = definition_from_json(campaign.definition) if campaign is not None else None
    decides = thresholds(definition.settings if definition else None, view)
    current = now_of(view)
    result = found.row.lesson if found.row is not None else None
    runs = runs_shown(found.row)
    return rendered(
        request,
        "work/experiment.html",
        422 if problem else 200,
        problem=problem,
        now=current,
        view=view,
        said=said_faults(view, {**callees, **callees_of(runs)}),
        purpose=purpose_in_words(view.purpose),
        campaign_name=definition.name if definition else "",
        decides=decides,
        picture=evidence_of(current, decides),
        chart=_chart(current, decides),
        settings=definition.settings if definition else Settings(),
        runs=runs,
        beside=runs_beside(runs),
        traces=(result or {}).get("traces", []),
        graph=graph,
        roles=ROLES,
        finding=finding,
        timeline=timeline,
        trace_url=request.app.state.trace_url,
        base="",
    )


def _lineage(
    request: Request, engine: Engine, session: Session, view: ExperimentView
) -> tuple[LineageGraph | None, Mapping[str, str]]:
    """Draw the hypothesis on the lineage of its class, while the class is known."""
    known = engine.catalogue.classes.get(view.request_class)
    if known is None:
        return None, {}
    roles = roles_of(evidence_kept(request).of(session, known).knowledge)
    for fault in view.faults:
        roles.setdefault(fault.partition("@")[2], "untested")
    return class_graph(known.traffic, roles, view.faults), known.traffic.topology.callees


def _chart(now: Now, decides: Any) -> dict[str, Any] | None:
    """Write what the script draws of the evidence, and goes on drawing."""
    if decides is None:
        return None
    return {
        "experiment": now.view.id,
        "curve": now.curve,
        "harmful": decides.harmful,
        "tolerated": decides.tolerated,
    }
