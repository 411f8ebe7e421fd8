"""What every route works on: the engine, if this process has it, and the database."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from ldfi.errors import NotFound
from ldfi.experiments.api.forward import engine_of
from ldfi.experiments.api.new_campaign import Bounded
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.cluster.relay import EdgeRelay
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.forecast import Forecast, forecast
from ldfi.experiments.store import Database
from ldfi.experiments.telemetry import clock


async def _engine_if_here(request: Request) -> Engine | None:
    engine: Engine | None = request.app.state.engine
    return engine


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def _relay(request: Request) -> EdgeRelay:
    relay: EdgeRelay = request.app.state.relay
    return relay


Running = Annotated[Engine, Depends(engine_of)]
"""The engine. Where this process has none, the request goes to the one that has."""

PerhapsRunning = Annotated[Engine | None, Depends(_engine_if_here)]
"""The engine, for routes that any process can answer without."""

Relaying = Annotated[EdgeRelay, Depends(_relay)]
"""What serves the edges of this process while it has no engine."""

Db = Annotated[Database, Depends(_database)]


def check_promql(request: Request, bounds: Bounded) -> None:
    """Check that there is a Prometheus, where outcomes are counted by one. Raises Problem 422."""
    if bounds.settings().promql is not None and not request.app.state.counts_outcomes:
        raise Problem(422, "no-prometheus", "promql needs a Prometheus; set LDFI_PROMETHEUS_URL")


def live_campaign(engine: Engine, campaign_id: str) -> Campaign | None:
    """Find the campaign itself, while it is live."""
    return engine.scheduler.state.campaigns.get(campaign_id)


def live_experiments(engine: Engine) -> dict[str, Experiment]:
    """Find every experiment that is not over, by id."""
    return {
        experiment.id: experiment
        for campaign in engine.scheduler.state.campaigns.values()
        for experiment in campaign.running.values()
    }


def forecast_of(engine: Engine, definition: Definition, given: Bounded) -> Forecast:
    """Return how a campaign would start now, by the traffic there is."""
    fdr = engine.scheduler.state.fdr
    named = given.named()
    return forecast(definition, named, engine.catalogue, fdr, engine.waits, clock.now())


def check_reach(engine: Engine, definition: Definition) -> None:
    """Check that what is to be tried is ever reached. Raises NotFound for a class that nobody has
    seen, and Problem 422 for points that its requests never reach."""
    for request_class in definition.classes if definition.hypotheses else ():
        known = engine.catalogue.classes.get(request_class)
        if known is None:
            raise NotFound(f"there is no request class {request_class!r}; see /api/v1/classes")
        every = sorted({each for faults in definition.hypotheses for each in faults})
        knows = known.traffic.topology.knows
        if unknown := [each for each in every if not knows(each.partition("@")[2])]:
            raise Problem(
                422, "unknown-point", f"{request_class} never reaches {', '.join(unknown)}"
            )
