"""The web pages, put on the service's application."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI

from dashboards import login
from dashboards.assets import PREFIX, Assets
from dashboards.evidence_kept import EvidenceKept
from dashboards.pages import (
    audit,
    calendar,
    campaigns,
    certificates,
    classes,
    experiments,
    files,
    findings,
    live,
    maintenance,
    new_campaign,
    overview,
    safety,
    tokens,
    what_if,
)
from dashboards.sessions import Sessions

ROUTERS: Final[tuple[APIRouter, ...]] = (
    login.router,
    live.router,
    overview.router,
    new_campaign.router,  # before /campaigns/{id}
    campaigns.router,
    calendar.router,
    what_if.router,
    maintenance.router,
    audit.router,
    tokens.router,
    safety.router,
    findings.router,
    classes.router,
    experiments.router,
    certificates.router,
    files.pages,
    files.api,
)


def install(app: FastAPI) -> None:
    """Serve the pages beside the API: found by the service as an entry point ``ldfi.pages``."""
    app.state.sessions = Sessions(app.state.member_key)
    app.state.evidence_kept = EvidenceKept()
    for router in ROUTERS:
        app.include_router(router)
    app.mount(PREFIX, Assets(), name="static")
