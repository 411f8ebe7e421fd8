"""The head of the chain of runs, and certificates with all that they rest on."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import Id
from ldfi.experiments.api.examples import example
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, Running, live_campaign
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.store import campaigns, chain, chain_check
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.evidence_file import evidence_file, grown, version_of
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1", tags=["certificates"], route_class=GuardedRoute)

Since = Annotated[
    Annotated[int, Field(ge=0, le=2**31 - 1)] | SkipJsonSchema[None],
    Query(
        description="The size of a head that was kept: it is proved that the chain grew from it."
    ),
]

_HEAD: Final = {
    "format": "ldfi-head/3",
    "runs": [["GET /boot", 1, 12]],
    "counts": "7b06f86d0e97cec74526055049498ac9dda88f5f52ed05b804f732d42101dde3",
    "size": 12,
    "root": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "time": 1767225600.0,
    "keys": [],
    "signatures": {},
}

_EVIDENCE: Final = {"format": "ldfi-evidence/1", "head": _HEAD, "grown": [], "classes": []}


@router.get("/head", responses={200: example({"head": _HEAD, "grown": []}), 409: {}})
async def head(db: Db, _caller: Viewer, since: Since = None) -> dict[str, Any]:
    """Show the head of the chain of all runs, signed as of now where the service has a key.

    Keep it: whoever checks a certificate later can hold it against this one. `grown` proves that
    the chain has grown from the size asked for.
    """
    return await asyncio.to_thread(_head, db, since, clock.now())


@router.get("/campaigns/{campaign_id}/evidence", responses={200: example(_EVIDENCE), 409: {}})
async def evidence(
    campaign_id: Id, engine: Running, db: Db, _caller: Viewer, since: Since = None
) -> dict[str, Any]:
    """Give a campaign's certificates with the runs that they rest on, proved to be in the chain.

    Every run of their class versions is in it, and the head. `python -m ldfi.checker` checks it.
    """
    live = live_campaign(engine, campaign_id)
    if live is None:
        certified = await asyncio.to_thread(_certified, db, campaign_id)
    else:
        given = live.certificates()
        await asyncio.to_thread(_certify, db, live, given, clock.now())
        certified = campaigns.written(live, given)
    return await asyncio.to_thread(_evidence, db, certified, since, clock.now())


def _head(db: Database, since: int | None, now: float) -> dict[str, Any]:
    with db.read() as session:
        signed = chain.signed(session, chain.head_of(session), db.keys, now)
        proved = [] if since is None else [grown(signed, since, chain_check.node_of(session))]
    return {"head": signed.to_json(), "grown": proved}


def _certify(db: Database, live: Campaign, given: list[dict[str, Any]], now: float) -> None:
    """Sign what a campaign that is not over gives out."""
    with db.change(now) as change:
        campaigns.certify(change, live, given)


def _certified(db: Database, campaign_id: str) -> list[CampaignCertificate]:
    """Read the certificates of a campaign that is over. Raises NotFound."""
    with db.read() as session:
        return [
            CampaignCertificate(
                campaign_id,
                each["request_class"],
                version_of(session, each["request_class"], campaign_id),
                each["certificate"],
            )
            for each in campaigns.load(session, campaign_id).certificates
        ]


def _evidence(
    db: Database, certified: list[CampaignCertificate], since: int | None, now: float
) -> dict[str, Any]:
    with db.read() as session:
        return evidence_file(session, certified, db.keys, now, since)
