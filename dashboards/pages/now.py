"""The first page, *Now*: how things stand, what was injected today, what hurts most and who must
act; below it what is armed, what it may still cost, what goes on and what was found."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from ldfi.dashboards import strip, windows
from ldfi.dashboards.now_story import ACTS, now_story
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.zones import viewers_zone
from ldfi.experiments.api.audited import audited
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.service import Db, Running, live_campaign
from ldfi.experiments.api.views import CampaignView, ExperimentView, finding_view
from ldfi.experiments.control.engine import Engine
from ldfi.experiments.store import arming
from ldfi.experiments.store import experiments as tried
from ldfi.experiments.store.schema import AuditRow, CampaignRow, FindingRow

router = APIRouter(route_class=PageRoute)

NEWEST = 6


@dataclass(frozen=True, slots=True)
class Budget:
    """Members charged within ``span``, of so many that may be."""

    span: str
    charged: int
    limit: int

    @property
    def left(self) -> int:
        """How many may still be."""
        return max(0, self.limit - self.charged)


@dataclass(frozen=True, slots=True)
class OpenClass:
    """A class that a campaign is not done with."""

    name: str
    campaign_id: str
    open: int
    waiting: str | None


@router.get("/")
async def first(request: Request, engine: Running, db: Db, _caller: Viewer) -> Response:
    """Show everything at a glance."""
    now = time.time()
    limits = engine.scheduler.state.limits
    tz = viewers_zone(request)
    with db.read() as session:
        story = now_story(session, engine, tz, now)
        hour = arming.charged(session, arming.within(now - arming.HOUR))
        day = arming.charged(session, arming.within(now - arming.DAY))
        newest = select(CampaignRow).order_by(CampaignRow.created_at.desc(), CampaignRow.id.desc())
        rows = list(session.scalars(newest.limit(NEWEST)))
        totals = tried.totals(session, [(row.id, row.run) for row in rows])
        campaigns = [
            CampaignView.of(row, totals[row.id], live_campaign(engine, row.id)) for row in rows
        ]
        found = select(FindingRow).order_by(FindingRow.found_at.desc(), FindingRow.id.desc())
        findings = [finding_view(row) for row in session.scalars(found.limit(NEWEST))]
        done = select(AuditRow).order_by(AuditRow.id.desc()).limit(NEWEST + 2)
        audit = audited(session, list(session.scalars(done)))
    return rendered(
        request,
        "now_page.html",
        story=story,
        axis=strip.axis(story.hours),
        kinds=strip.KINDS,
        most_acts=ACTS,
        zone=tz.key,
        class_names=sorted(engine.catalogue.classes),
        written=windows.written,
        armed=_armed(engine),
        budgets=[
            Budget("hour", hour, limits.members_per_hour),
            Budget("day", day, limits.members_per_day),
        ],
        campaigns=campaigns,
        findings=findings,
        audit=audit,
        open_classes=_open_classes(engine),
        classes=len(engine.catalogue.classes),
        edges=engine.board.edges(now),
        spans=engine.spans,
        outcomes=engine.outcomes,
    )


def _armed(engine: Engine) -> list[ExperimentView]:
    """List what is being injected, or was until a moment ago and is still being counted."""
    return [
        ExperimentView.live(experiment, campaign)
        for campaign in engine.scheduler.state.campaigns.values()
        for experiment in campaign.active()
    ]


def _open_classes(engine: Engine) -> list[OpenClass]:
    """List the classes where something is left to try, the most first."""
    found = [
        OpenClass(name, campaign.id, exploration.knowledge.open, campaign.waiting.get(name))
        for campaign in engine.scheduler.state.campaigns.values()
        if campaign.live()
        for name, exploration in campaign.explorations.items()
        if not exploration.finished
    ]
    return sorted(found, key=lambda each: (-each.open, each.name))
