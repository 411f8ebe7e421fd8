"""What is asked of the service to say what a campaign would cost (:mod:`ldfi.dashboards.plan`)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fastapi import Request
from sqlalchemy import func, select

from ldfi.dashboards.campaign_story import does, hours, keeps_safe
from ldfi.dashboards.evidence_kept import KEPT, evidence_kept
from ldfi.dashboards.plan import Known, Past, Plan, plan
from ldfi.experiments.api.new_campaign import NewCampaign
from ldfi.experiments.api.service import forecast_of
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import arming
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import TallyRow
from ldfi.experiments.telemetry import clock


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, what it does in a sentence, when it may try anything, and what keeps it safe."""

    plan: Plan
    does: str
    hours: str
    safe: list[str]


async def planned(request: Request, new: NewCampaign, engine: Engine, db: Database) -> Planned:
    """Plan it by what is known now; of the busiest kinds of request where there are very many."""
    definition, now = new.definition(), clock.now()
    forecast = forecast_of(engine, definition, new)
    limit = engine.scheduler.state.limits.members_per_day
    chosen = _chosen(engine, new, now)
    with db.read() as session:
        sums = select(func.sum(TallyRow.armed), func.sum(TallyRow.hurt))
        armed, hurt = session.execute(sums).one()
        today = arming.charged_within(session, arming.DAY, now)
        evidence = evidence_kept(request).each_of(session, chosen)
    known = []
    for each in evidence:
        traffic, certificate = each.knowledge.traffic, each.certificate
        known.append(
            Known(
                each.knowledge.name,
                certificate["open"],
                bool(certificate["open_complete"]),
                traffic.topology.callees,
                sorted(traffic.usually_called()),
            )
        )
        await asyncio.sleep(0)  # the watch goes on in between
    windows = [each for each in engine.scheduler.state.windows if each.active(now)]
    past = Past(int(armed or 0), int(hurt or 0))
    made = plan(forecast, known, past, max(0, limit - today), limit, windows, now)
    settled = forecast.definition
    return Planned(made, does(settled), hours(settled.calendar), keeps_safe(settled))


def _chosen(engine: Engine, new: NewCampaign, now: float) -> list[KnownClass]:
    """Choose what a campaign would explore: fit, with traffic enough, and named if any are."""
    settings = new.settings()
    found = [
        known
        for known in engine.catalogue.classes.values()
        if (not new.classes or matching(new.classes, [known.name]) is not None)
        and known.unfit_for(settings.min_consistency) is None
        and known.traffic.good >= settings.min_traffic
    ]
    return sorted(found, key=lambda known: (-known.rate(now), known.name))[:KEPT]
