"""The web pages, put on the service's application."""

from __future__ import annotations

from functools import partial
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException

from ldfi.dashboards import login
from ldfi.dashboards.assets import PREFIX, Assets
from ldfi.dashboards.csp import confined
from ldfi.dashboards.evidence_cache import EvidenceKept
from ldfi.dashboards.findings import findings
from ldfi.dashboards.header import halt, search, tokens
from ldfi.dashboards.map import classes, services
from ldfi.dashboards.now import now, was_it_us
from ldfi.dashboards.now.day_totals import DayKept
from ldfi.dashboards.proof import audit, certificates
from ldfi.dashboards.render import error_page
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.sessions import Sessions
from ldfi.dashboards.work import (
    calendar,
    campaigns,
    experiments,
    maintenance,
    new_campaign,
    replays,
)
from ldfi.experiments.api import events
from ldfi.experiments.api.problems import Problem

live = APIRouter(route_class=PageRoute)
"""What happens, as it happens: the API's stream of events, for whoever is logged in."""
live.get("/live", response_class=EventSourceResponse)(events.events)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    login.router,
    login.api,
    live,
    now.router,
    was_it_us.router,
    new_campaign.router,  # before /campaigns/{id}
    campaigns.router,
    calendar.router,
    services.router,
    maintenance.router,
    audit.router,
    tokens.router,
    halt.router,
    search.router,
    findings.router,
    classes.router,
    experiments.router,
    certificates.router,
    replays.router,
    findings.api_router,
    certificates.api_router,
)

PROGRAMS: Final = ("/api/", "/v1/")
"""Nobody looks for a page there."""


_MISSING: Final = {404: "no-such-route", 405: "method-not-allowed"}
"""Statuses of addresses where there is nothing to look at: nothing at all, or a form's target."""


def install(app: FastAPI) -> None:
    """Serve the pages beside the API: found by the service as an entry point ``ldfi.pages``."""
    _begin(app)
    app.state.of_each.append(_begin)
    for router in ROUTERS:
        app.include_router(router)
    app.mount(PREFIX, Assets(), name="static")
    _have_missing_pages(app)


def _begin(app: FastAPI) -> None:
    """Put into the state of a namespace's application what the pages keep."""
    app.state.sessions = Sessions(
        app.state.member_key,
        lambda: app.state.database,
        secure=(app.state.public_url or "").startswith("https://"),
        namespace=app.state.namespace,
    )
    app.state.login_path = partial(login.login_path, app.state.sessions)  # for whoever starts us
    app.state.evidence_kept = EvidenceKept()
    app.state.day_kept = DayKept()


def _have_missing_pages(app: FastAPI) -> None:
    """Show whoever looks for a page that is not there a page that says so; programs get a
    document."""
    document = app.exception_handlers[HTTPException]

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        looks = "text/html" in request.headers.get("accept", "")
        kind = _MISSING.get(error.status_code)
        if kind is not None and looks and not request.url.path.startswith(PROGRAMS):
            detail = f"there is no page at {request.url.path}"
            problem = Problem(error.status_code, kind, detail, error.headers)
            return confined(error_page(request, problem))
        answer: Response = await document(request, error)  # type: ignore[misc]
        return answer
