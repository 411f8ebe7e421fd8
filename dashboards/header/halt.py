"""Halt and resume: the kill switch asks why, and whoever comes next can read it."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from ldfi.dashboards.forms import Submitted, read_as
from ldfi.dashboards.render import rendered, state_seen
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api import safety
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.input_documents import Reason
from ldfi.experiments.api.service import Db, PerhapsRunning, Relaying, Running
from ldfi.experiments.cluster.tokens import Caller

router = APIRouter(route_class=PageRoute)

LONGEST: Final = 80
"""Letters of a page's path that the reason of a halt names."""


@router.get("/now")
async def now(
    request: Request,
    engine: Running,
    _caller: Viewer,
    seen: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Show what every page shows of what is going on; nothing where that is what was ``seen``."""
    if seen == state_seen(engine):
        return Response(status_code=204)
    return rendered(request, "header/now_fragment.html")


@router.get("/halt")
async def ask(request: Request, _caller: Operator) -> Response:
    """Show the form that asks why."""
    return rendered(request, "header/halt.html", problem="", reason="")


@router.post("/halt")
async def halt(
    request: Request,
    form: Submitted,
    engine: PerhapsRunning,
    relay: Relaying,
    db: Db,
    caller: Operator,
) -> Response:
    """Disarm everything at once; nothing starts again before somebody resumes.

    Whoever has ``held`` the button need not say why.
    """
    held = form.text("held")
    said = _held(held, caller) if held else form.text("reason")
    why, problems = read_as(Reason, {"reason": said})
    if why is None:
        problem = problems["reason"]
        return rendered(
            request, "header/halt.html", 422, problem=problem, reason=form.text("reason")
        )
    await safety.halt(engine, relay, db, caller, why)
    return RedirectResponse("/", status_code=303)


@router.post("/resume")
async def resume(engine: Running, caller: Operator) -> Response:
    """Let experiments start again."""
    await safety.resume(engine, caller)
    return RedirectResponse("/", status_code=303)


def _held(path: str, caller: Caller) -> str:
    """Say who has held the button, and on which page; no path is so odd that nothing is halted."""
    page = "".join(each for each in unquote(path) if each.isprintable())
    return f"{caller.name} held the button on {page[:LONGEST]}"
