"""Find anything by name or short id: as a page, and as what the palette shows while one types."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ldfi.analysis.repairs.request_names import Called
from ldfi.dashboards.header.search_story import SHOWN, Group, groups, words_of
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.input_documents import LINE
from ldfi.experiments.api.repairs import called_of
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.cluster.tokens import Caller
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.search import named

router = APIRouter(route_class=PageRoute)

Typed = Annotated[str, Query(pattern=LINE, max_length=200)]


@router.get("/search")
async def search(
    request: Request, engine: Running, db: Db, caller: Viewer, q: Typed = ""
) -> Response:
    """Show everything that is called so, and a field to look for something else."""
    found = _found(q, engine, db, caller, called_of(request))
    return rendered(request, "header/search.html", typed=q, groups=found)


@router.get("/search/found")
async def found(
    request: Request, engine: Running, db: Db, caller: Viewer, q: Typed = ""
) -> Response:
    """Show the same as options of the palette."""
    found = _found(q, engine, db, caller, called_of(request))
    return rendered(request, "header/palette_found.html", typed=q, groups=found)


def _found(typed: str, engine: Engine, db: Database, caller: Caller, called: Called) -> list[Group]:
    known = engine.catalogue.classes
    callees = {
        point: callee
        for each in known.values()
        for point, callee in each.traffic.topology.callees.items()
    }
    points = {point for each in known.values() for point in each.traffic.topology.paths}
    callers = {point.partition(">")[0] for point in points if ">" in point}
    words = words_of(typed, callees, called)
    with db.read() as session:
        stored = named(session, words, SHOWN + 1)
    return groups(words, caller, {*callees.values(), *callers}, known, stored, callees, called)
