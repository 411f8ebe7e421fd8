"""What people and programs do with the service: campaigns, findings, the kill switch."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from experiments.api.auth import Operator, Viewer
from experiments.domain.campaign import Campaign
from experiments.domain.settings import Settings
from experiments.domain.verdict import Thresholds
from experiments.engine import Engine
from experiments.store import Store
from experiments.store.store import counts_of
from fit.faults import KINDS, FaultKind

router = APIRouter(prefix="/api/v1")

Strategy = Literal["smallest", "likeliest", "union"]
Share = Annotated[float, Field(gt=0, le=0.5)]


class NewCampaign(BaseModel):
    """The bounds of a campaign. Times in seconds, shares of all devices."""

    model_config = ConfigDict(extra="forbid")
    classes: list[str] = []
    max_size: Annotated[int, Field(ge=1, le=4)] = 2
    kinds: Annotated[list[FaultKind], Field(min_length=1)] = list(KINDS)
    strategy: Strategy = "union"
    max_union: Annotated[int, Field(ge=1)] | None = 10
    treatment: Share = 0.05
    control: Share = 0.05
    window: Annotated[float, Field(ge=1, le=600)] = 30.0
    member_budget: Annotated[int, Field(ge=1)] = 10_000
    min_traffic: Annotated[int, Field(ge=1)] = 100
    delay: Annotated[float, Field(gt=0, le=60)] = 10.0
    delta: Annotated[float, Field(gt=0, lt=1)] = Thresholds().delta
    seed: int = 0

    def settings(self) -> Settings:
        """The same in the words of the domain."""
        values = self.model_dump(exclude={"classes", "delta", "kinds"})
        return Settings(**values, kinds=tuple(self.kinds), thresholds=Thresholds(delta=self.delta))


class Reason(BaseModel):
    """Why something is done; it goes into the audit."""

    reason: Annotated[str, Field(min_length=1, max_length=500)]


@router.get("/status", tags=["control"])
async def status(request: Request, _caller: Viewer) -> dict[str, Any]:
    """Whether anything is halted, what has come in, and what had to be dropped."""
    engine = _engine(request)
    return {
        "halted": engine.halted,
        "spans": engine.spans,
        "outcomes": engine.outcomes,
        "dropped": engine.drops(),
        "armed": len(engine.board.lease()["rules"]),
    }


@router.get("/classes", tags=["classes"])
async def classes(request: Request, _caller: Viewer) -> list[dict[str, Any]]:
    """The request classes seen, with their traffic and what they usually rely on."""
    return [
        {
            "name": name,
            "good": known.traffic.good,
            "success_rate": known.traffic.success_rate(),
            "support": sorted(known.traffic.usual_support()),
            "shared": {
                system: sorted(points)
                for system, points in sorted(known.traffic.topology.shared().items())
            },
        }
        for name, known in sorted(_engine(request).classes.items())
    ]


@router.post("/campaigns", status_code=201, tags=["campaigns"])
async def start_campaign(new: NewCampaign, request: Request, caller: Operator) -> dict[str, Any]:
    """Start a campaign over some classes, or over every class with enough traffic."""
    campaign = _engine(request).start_campaign(
        new.settings(), tuple(new.classes), caller.name, time.time()
    )
    return _summary(campaign)


@router.get("/campaigns", tags=["campaigns"])
async def campaigns(request: Request, _caller: Viewer) -> list[dict[str, Any]]:
    """The campaigns since the service started."""
    return [_summary(campaign) for campaign in _engine(request).campaigns.values()]


@router.get("/campaigns/{campaign_id}", tags=["campaigns"])
async def campaign(campaign_id: str, request: Request, _caller: Viewer) -> dict[str, Any]:
    """A campaign: how far it is, class by class."""
    return _summary(_engine(request).campaign(campaign_id))


@router.post("/campaigns/{campaign_id}/stop", tags=["campaigns"])
async def stop_campaign(
    campaign_id: str, why: Reason, request: Request, caller: Operator
) -> dict[str, Any]:
    """Stop a campaign; what is armed is disarmed at once."""
    engine = _engine(request)
    return _summary(engine.stop_campaign(campaign_id, why.reason, caller.name, time.time()))


@router.get("/campaigns/{campaign_id}/experiments", tags=["campaigns"])
async def experiments(campaign_id: str, request: Request, _caller: Viewer) -> list[dict[str, Any]]:
    """The experiments of a campaign, oldest first, with control against treatment."""
    live = _engine(request).campaign(campaign_id).experiments
    rows = _store(request).experiments(campaign_id)
    return [{**row, "counts": counts_of(live[row["id"]])} for row in rows]


@router.get("/campaigns/{campaign_id}/certificates", tags=["campaigns"])
async def certificates(campaign_id: str, request: Request, _caller: Viewer) -> list[dict[str, Any]]:
    """One certificate for each class: what was proved, from what, and what stayed open."""
    engine = _engine(request)
    return engine.certificates(engine.campaign(campaign_id))


@router.get("/findings", tags=["findings"])
async def findings(request: Request, _caller: Viewer) -> list[dict[str, Any]]:
    """Every finding, oldest first."""
    return _store(request).findings()


@router.get("/audit", tags=["control"])
async def audit(request: Request, _caller: Viewer) -> list[dict[str, Any]]:
    """Who did what, newest first."""
    return _store(request).audit()


@router.post("/halt", tags=["control"])
async def halt(why: Reason, request: Request, caller: Operator) -> dict[str, Any]:
    """Disarm everything at once; nothing starts again before ``resume``."""
    _engine(request).halt(why.reason, caller.name, time.time())
    return {"halted": why.reason}


@router.post("/resume", tags=["control"])
async def resume(request: Request, caller: Operator) -> dict[str, Any]:
    """Let experiments start again."""
    _engine(request).resume(caller.name, time.time())
    return {"halted": None}


def _engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _summary(campaign: Campaign) -> dict[str, Any]:
    return {
        "id": campaign.id,
        "state": campaign.state,
        "reason": campaign.reason,
        "experiments": len(campaign.experiments),
        "exposed_members": campaign.exposed(),
        "failed_members": campaign.hurt(),
        "classes": [
            {
                "name": name,
                "finished": exploration.finished,
                "open": exploration.open,
                "findings": [sorted(found) for found, _ in exploration.findings()],
                "waiting": campaign.waiting.get(name),
                "running": _running(campaign, name),
            }
            for name, exploration in campaign.explorations.items()
        ],
    }


def _running(campaign: Campaign, name: str) -> dict[str, Any] | None:
    experiment = campaign.running.get(name)
    if experiment is None:
        return None
    return {
        "id": experiment.id,
        "hypothesis": sorted(experiment.hypothesis),
        "armed_at": experiment.armed_at,
        "counts": counts_of(experiment),
    }
