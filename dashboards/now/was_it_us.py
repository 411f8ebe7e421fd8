"""*Was it us?*: what was armed in a window of time, and who intervened.

The address of an answer can be shared.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session

from ldfi.dashboards.links import to_was_it_us
from ldfi.dashboards.now.now_story import told
from ldfi.dashboards.render import rendered, viewers_zone
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.worst_findings import callees
from ldfi.errors import InvalidCalendar
from ldfi.experiments.api import was_it_us as api
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.input_documents import LINE
from ldfi.experiments.api.pagination import Cursor
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.domain.campaign import windows
from ldfi.experiments.domain.campaign.local_time import zone as zone_of
from ldfi.experiments.domain.campaign.windows import Window
from ldfi.experiments.domain.judging.was_it_us import Exposure
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import was_it_us as stored
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.experiments.telemetry.clock import now

router = APIRouter(route_class=PageRoute)

_UNSHOWN = (ExperimentRow.lesson, ExperimentRow.draft)

ROWS: Final = 25
"""Of what was armed so many are shown at a time: the answer is in the sentence above them."""

Typed = Annotated[str, Query(pattern=LINE, max_length=64)]


@router.get("/was-it-us")
async def was_it_us(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    since: Typed = "",
    until: Typed = "",
    zone: Typed = "",
    request_class: Annotated[str, Query(pattern=LINE, max_length=1000)] = "",
    cursor: Cursor = None,
) -> Response:
    """Answer for a window. Times as somebody typed them lead to the address that says them in UTC:
    it is the same window for whoever gets the link, wherever and whenever."""
    tz, wanted = viewers_zone(request), request_class.strip() or None
    try:
        clock = zone_of(zone) if zone else tz
        window = windows.window_of(since.strip(), until.strip(), clock, now(), api.LAST)
    except (ValueError, InvalidCalendar) as error:
        typed = (since, until, request_class)
        return _page(request, engine, typed, status=422, problem=str(error))
    to = to_was_it_us(window.since, window.until, wanted)
    if (since or until) and not (since.endswith("Z") and until.endswith("Z") and not zone):
        return RedirectResponse(to, status_code=303)
    with db.read() as session:
        shown = _shown(session, engine, window, wanted, cursor)
    typed = (windows.written(window.since, tz), windows.written(window.until, tz), request_class)
    base = (request.app.state.public_url or str(request.base_url)).rstrip("/")
    return _page(request, engine, typed, window=window, link=f"{base}{to}", address=to, **shown)


def _page(
    request: Request,
    engine: Engine,
    typed: tuple[str, str, str],
    status: int = 200,
    **shown: Any,
) -> Response:
    since, until, request_class = typed
    return rendered(
        request,
        "now/was_it_us.html",
        status,
        since=since,
        until=until,
        request_class=request_class,
        zone=viewers_zone(request).key,
        class_names=sorted(engine.catalogue.classes),
        **{"problem": "", "window": None, **shown},
    )


def _shown(
    session: Session, engine: Engine, window: Window, wanted: str | None, cursor: str | None
) -> dict[str, Any]:
    bounds = (window.since, window.until)
    found = api.armed(session, *bounds, wanted, cursor, ROWS, *_UNSHOWN)
    rows = api.with_live(engine, [stored.injected_of(row) for row in found.items])
    exposure: Exposure = api.exposure_of(session, engine, *bounds, wanted)
    callees_of = callees(engine)
    return {
        "exposure": exposure,
        "told": [told(each, callees_of) for each in rows],
        "next": found.next,
        "first": cursor is None,
        "done": api.interventions(session, *bounds),
    }
