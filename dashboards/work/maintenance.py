"""Maintenance windows: what is being worked on is left alone."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select

from ldfi.dashboards.forms import Form, Submitted, read_as
from ldfi.dashboards.links import MOST_DOWN
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api import safety
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.input_documents import Id, Line
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.maintenance import window_of
from ldfi.experiments.store.schema import MaintenanceRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/maintenance", route_class=PageRoute)

LISTED: Final = 40
HOUR: Final = 3_600.0


@router.get("")
async def listing(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    cursor: Cursor = None,
    down: Annotated[list[Line], Query(max_length=MOST_DOWN)] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """List the windows, newest first, with a form for another: for what the map has down."""
    return _page(request, engine, db, Form({"down": ["\n".join(down)]}), cursor=cursor)


@router.post("")
async def open_window(
    request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Open a window: whatever touches it pauses, and it ends by itself."""
    new, problems = read_as(safety.NewMaintenance, _document(form))
    if new is None:
        return _page(request, engine, db, form, problems)
    await safety.open_maintenance(new, engine, caller)
    return RedirectResponse("/maintenance", status_code=303)


@router.post("/{window_id}/close")
async def close(window_id: Id, engine: Running, caller: Operator) -> Response:
    """Close a window before its time."""
    await safety.close_maintenance(window_id, engine, caller)
    return RedirectResponse("/maintenance", status_code=303)


def _document(form: Form) -> dict[str, object]:
    """Turn the form into what the API would be asked. Hours become seconds where they are a
    number."""
    hours = form.text("hours")
    try:
        seconds: object = float(hours) * HOUR
    except ValueError:
        seconds = hours
    return {"down": form.lines("down"), "seconds": seconds, "reason": form.text("reason")}


def _page(
    request: Request,
    engine: Engine,
    db: Database,
    form: Form | None = None,
    problems: dict[str, str] | None = None,
    cursor: str | None = None,
) -> Response:
    with db.read() as session:
        found = page(
            session,
            select(MaintenanceRow),
            MaintenanceRow.opened_at,
            MaintenanceRow.id,
            cursor,
            LISTED,
        )
        rows = [window_of(row) for row in found.items]
    now = clock.now()
    typed = form or Form({})
    return rendered(
        request,
        "work/maintenance.html",
        422 if problems else 200,
        open=[window for window in rows if window.active(now)],
        over=[window for window in rows if not window.active(now)],
        next=found.next,
        first=cursor is None,
        systems=_systems(engine),
        values={
            "down": typed.text("down"),
            "hours": typed.text("hours", "2"),
            "reason": typed.text("reason"),
        },
        problems={name.partition(".")[0]: what for name, what in (problems or {}).items()},
    )


def _systems(engine: Engine) -> list[str]:
    """Return the names of all services and systems that the known request classes reach."""
    topologies = (known.traffic.topology for known in engine.catalogue.classes.values())
    return sorted({name for each in topologies for name in each.callees.values() if name})
