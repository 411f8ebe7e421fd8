"""Halt and resume: the kill switch asks why, and whoever comes next can read it."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from dashboards.documents import read_as
from dashboards.forms import Submitted
from dashboards.render import rendered
from dashboards.route import PageRoute
from experiments.api.auth import Operator
from experiments.api.documents import Reason
from experiments.api.service import Running

router = APIRouter(route_class=PageRoute)


@router.get("/halt")
async def ask(request: Request, _caller: Operator) -> Response:
    """The form that asks why."""
    return rendered(request, "halt.html", problem="", reason="")


@router.post("/halt")
async def halt(request: Request, form: Submitted, engine: Running, caller: Operator) -> Response:
    """Disarm everything at once; nothing starts again before somebody resumes."""
    why, problems = read_as(Reason, {"reason": form.text("reason")})
    if why is None:
        problem = problems["reason"]
        return rendered(request, "halt.html", 422, problem=problem, reason=form.text("reason"))
    engine.scheduler.halt(why.reason, caller.name, time.time())
    return RedirectResponse("/", status_code=303)


@router.post("/resume")
async def resume(engine: Running, caller: Operator) -> Response:
    """Let experiments start again."""
    engine.scheduler.resume(caller.name, time.time())
    return RedirectResponse("/", status_code=303)
