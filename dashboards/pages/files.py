"""Findings and certificates as files: for a browser, and for the command line with its token."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from ldfi.dashboards.files import page_file
from ldfi.dashboards.pages.certificates import certificates_of
from ldfi.dashboards.pages.findings import told
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import Id
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, Running

pages = APIRouter(route_class=PageRoute)
api = APIRouter(prefix="/api/v1", route_class=GuardedRoute, include_in_schema=False)


@pages.get("/findings/{finding_id}/file")
@api.get("/findings/{finding_id}/file")
async def finding(
    finding_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Render one finding as a page that needs nothing from anywhere."""
    with db.read() as session:
        story = told(session, engine, finding_id, request)
    return page_file(request, "finding_file.html", f"finding-{_named(finding_id)}", story=story)


@pages.get("/certificates/{campaign_id}/file")
@api.get("/campaigns/{campaign_id}/certificates/file")
async def certificate(
    campaign_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Render the certificates of a campaign as a page that needs nothing from anywhere."""
    with db.read() as session:
        certified = certificates_of(session, engine, campaign_id)
    name = f"certificate-{_named(campaign_id)}"
    everything = len(certified.classes)
    return page_file(
        request, "certificate_file.html", name, certified=certified, spelt_out=everything
    )


def _named(identity: str) -> str:
    """Turn an id into what may stand in the name of a file."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", identity) + ".html"
