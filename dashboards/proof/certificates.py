"""Certificates: what a campaign has proved of each class, and what stayed open."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session, load_only

from ldfi.dashboards.evidence_cache import KEPT, EvidenceKept, evidence_kept
from ldfi.dashboards.files import page_file
from ldfi.dashboards.proof_story import STANDINGS, Proved, Stand, headline, stand_of
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.input_documents import Id
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, Running, live_campaign
from ldfi.experiments.domain.campaign.lifecycle import SERIOUS
from ldfi.experiments.domain.settings import DEFAULTS
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import campaigns, chain
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import CampaignRow, FindingRow
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)
api_router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, include_in_schema=False)
"""The page as a file, for the command line with its token."""

SPELT_OUT = 50
"""Classes of one campaign whose certificates are spelt out on one page."""


@dataclass(frozen=True, slots=True)
class Certified:
    """One class of a campaign. ``document``: the certificate, as it can be checked."""

    name: str
    stand: Stand
    document: str


@dataclass(frozen=True, slots=True)
class CampaignCertificates:
    """Those of one campaign, the classes with most left to try first."""

    id: str
    name: str
    state: str
    ended_at: float | None
    run: int
    classes: tuple[Certified, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is left to try within the bounds, in any class."""
        return bool(self.classes) and all(each.stand.complete for each in self.classes)


@router.get("/certificates")
async def listing(
    request: Request, engine: Running, db: Db, _caller: Viewer, cursor: Cursor = None
) -> Response:
    """Say of the busiest kinds of request what is shown, and on what that rests; and list every
    campaign, newest first."""
    columns = (
        CampaignRow.id,
        CampaignRow.name,
        CampaignRow.state,
        CampaignRow.run,
        CampaignRow.created_at,
        CampaignRow.ended_at,
    )
    query = select(CampaignRow).options(load_only(*columns))
    with db.read() as session:
        found = page(session, query, CampaignRow.created_at, CampaignRow.id, cursor)
        head = chain.bare_head_of(session)
    proved = await _proved(engine, db, evidence_kept(request))
    return rendered(
        request,
        "proof/certificates.html",
        found=found,
        title=headline(proved),
        proved=proved,
        standings=STANDINGS,
        bounds=DEFAULTS,
        most=KEPT,
        head=head,
        first=cursor is None,
    )


async def _proved(engine: Engine, db: Database, kept: EvidenceKept) -> list[Proved]:
    """Gather what is shown of the busiest kinds of request; what is worst comes first."""
    now = clock.now()
    rates = {name: known.rate(now) for name, known in engine.catalogue.classes.items()}
    total = sum(rates.values())
    chosen = sorted(engine.catalogue.classes.values(), key=lambda each: -rates[each.name])[:KEPT]
    hurt = select(FindingRow.request_class, func.count()).where(FindingRow.state.in_(SERIOUS))
    with db.read() as session:
        evidence = kept.each_of(session, chosen)
        hurting = Counter(
            dict(session.execute(hurt.group_by(FindingRow.request_class)).tuples().all())
        )
    found = []
    for each in evidence:
        name, callees = each.knowledge.name, each.knowledge.traffic.topology.callees
        share = rates[name] / total if total else 0.0
        stand = stand_of(each.certificate, callees)
        found.append(Proved(name, share, stand, hurting[name]))
        await asyncio.sleep(0)  # the watch goes on in between
    order = list(STANDINGS)
    return sorted(found, key=lambda each: (order.index(each.standing), -each.share, each.name))


@router.get("/certificates/{campaign_id}")
async def show(
    campaign_id: Id,
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    request_class: Annotated[str | None, Query(max_length=1000)] = None,
) -> Response:
    """Show the certificates of one campaign, or of one class in it."""
    with db.read() as session:
        certified = certificates_of(session, engine, campaign_id, request_class)
    return rendered(
        request,
        "proof/certificate.html",
        certified=certified,
        only=request_class,
        spelt_out=SPELT_OUT,
        base="",
    )


@router.get("/certificates/{campaign_id}/file")
@api_router.get("/campaigns/{campaign_id}/certificates/file")
async def file(
    campaign_id: Id, request: Request, engine: Running, db: Db, _caller: Viewer
) -> Response:
    """Render the certificates of a campaign as a page that needs nothing from anywhere."""
    with db.read() as session:
        certified = certificates_of(session, engine, campaign_id)
    name = f"certificate-{campaign_id}"
    everything = len(certified.classes)
    return page_file(
        request, "proof/certificate_file.html", name, certified=certified, spelt_out=everything
    )


def certificates_of(
    session: Session, engine: Engine, campaign_id: str, request_class: str | None = None
) -> CampaignCertificates:
    """Find them as they stand now; those of a campaign that is over as they stood then. Raises
    NotFound."""
    row = campaigns.load(session, campaign_id)
    live = live_campaign(engine, campaign_id)
    items = engine.scheduler.certificates(live) if live is not None else row.certificates
    certified = [
        _certified(engine, item["request_class"], item["certificate"])
        for item in items
        if request_class is None or item["request_class"] == request_class
    ]
    certified.sort(key=lambda each: (each.stand.complete, each.name))
    state = live.state if live is not None else row.state
    return CampaignCertificates(row.id, row.name, state, row.ended_at, row.run, tuple(certified))


def _certified(engine: Engine, name: str, certificate: Mapping[str, Any]) -> Certified:
    known = engine.catalogue.classes.get(name)
    callees = known.traffic.topology.callees if known is not None else {}
    data = dict(certificate)
    return Certified(name, stand_of(data, callees), json.dumps(data, sort_keys=True))
