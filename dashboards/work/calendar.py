"""The calendar: four weeks of runs, blackouts and maintenance windows, in the viewer's zone."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from ldfi.dashboards.render import rendered, viewers_zone
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.work.calendar_story import (
    add_begun,
    add_blackouts,
    add_maintenance,
    add_runs,
    days_from,
    monday,
    sort,
)
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.domain.campaign.local_time import wall
from ldfi.experiments.store import campaigns as stored
from ldfi.experiments.store import maintenance
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)

WEEKS: Final = 4
MOST: Final = 200
"""Windows and runs that are shown of so many days."""
_EARLIEST, _LATEST = date(1971, 1, 1), date(9990, 1, 1)


@router.get("/calendar")
async def calendar(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    start: Annotated[date | None, Query(alias="from", description="In the first week.")] = None,
) -> Response:
    """Show four weeks from this one, or from that of ``from``."""
    now, tz = clock.now(), viewers_zone(request)
    today = wall(now, tz).date()
    first = monday(min(max(start or today, _EARLIEST), _LATEST))
    days = days_from(first, 7 * WEEKS, tz)
    with db.read() as session:
        windows = maintenance.between(session, days[0].start, days[-1].end, MOST)
        begun = stored.between(session, days[0].start, days[-1].end, MOST)
    live = [each for each in engine.scheduler.state.campaigns.values() if each.live()]
    add_maintenance(days, windows, tz)
    add_blackouts(days, live)
    add_begun(days, begun, tz)
    add_runs(days, live, now, tz)
    sort(days)
    step = timedelta(weeks=WEEKS)
    return rendered(
        request,
        "work/calendar.html",
        weeks=[days[at : at + 7] for at in range(0, len(days), 7)],
        today=today,
        zone=tz.key,
        before=first - step,
        after=first + step,
        last=days[-1].date,
        campaigns=[
            (each, each.definition.calendar.opens(now) if each.definition.calendar else now)
            for each in live
            if each.definition.calendar or each.definition.schedule
        ],
        now=now,
    )
