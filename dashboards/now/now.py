"""The first page, *Now*: how things stand, what was injected today, what hurts most and who must
act; below it what is armed, what is open and what it may still cost."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from ldfi.dashboards.experiment_rows import KINDS
from ldfi.dashboards.now import strip
from ldfi.dashboards.now.day_kept import day_kept
from ldfi.dashboards.now.missing import missing
from ldfi.dashboards.now.now_story import ACTS, now_story
from ldfi.dashboards.render import rendered, viewers_zone
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.repairs import called_of
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.api.views import ExperimentView
from ldfi.experiments.domain.campaign import windows
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import arming, switches
from ldfi.experiments.telemetry import clock

router = APIRouter(route_class=PageRoute)


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
    now = clock.now()
    limits = engine.scheduler.state.limits
    tz = viewers_zone(request)
    with db.read() as session:
        story = now_story(session, engine, day_kept(request), called_of(request), tz, now)
        hour = arming.charged_within(session, arming.HOUR, now)
        day = arming.charged_within(session, arming.DAY, now)
        jumped = switches.jumped(session, now)
    url = request.app.state.public_url or str(request.base_url).rstrip("/")
    lacks = story.standing.missing and not story.running
    return rendered(
        request,
        "now/now.html",
        story=story,
        missing=missing(engine, request.app.state.otlp_grpc, url, now) if lacks else None,
        axis=strip.axis(story.hours),
        kinds=KINDS,
        most_acts=ACTS,
        zone=tz.key,
        class_names=sorted(engine.catalogue.classes),
        written=windows.written,
        armed=_armed(engine),
        budgets=[
            Budget("hour", hour, limits.members_per_hour),
            Budget("day", day, limits.members_per_day),
        ],
        jumped=jumped,
        open_classes=_open_classes(engine),
        classes=len(engine.catalogue.classes),
        edges=engine.board.edges(now),
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
