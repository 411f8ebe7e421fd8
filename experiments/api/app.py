"""The application: routes, errors, and the engine that ticks while it runs."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Final, Literal

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel

from experiments import counts, instruments
from experiments.api import (
    auth,
    campaigns,
    classes,
    edge,
    events,
    experiments,
    findings,
    ingest,
    metrics,
    openapi,
    problems,
    replays,
    safety,
    tokens,
)
from experiments.api.rate_limit import RateLimiter
from experiments.api.routes import GuardedRoute
from experiments.domain.settings import Limits
from experiments.engine import Engine, OutcomeSource
from experiments.guardrails import Guardrails
from experiments.notify import Target
from experiments.outbox import Outbox
from experiments.prometheus import Prometheus
from experiments.store import Database

_log = logging.getLogger("ldfi")

ROUTERS: tuple[APIRouter, ...] = (
    ingest.router,
    edge.router,
    campaigns.router,
    experiments.router,
    findings.router,
    replays.router,
    classes.router,
    safety.router,
    events.router,
    tokens.router,
    metrics.router,
)


PAGES: Final = "ldfi.pages"
"""Entry points of this group are called with the application and put their pages on it. That is
how ``dashboards`` gets there, which this room knows nothing of."""

STALLED: Final = 5.0
"""Seconds without a tick after which the service does not count as ready."""


class Health(BaseModel):
    """How the process is."""

    status: Literal["ok", "ready"]


@dataclass(frozen=True, slots=True)
class Service:
    """What the service is made with.

    ``lease``: seconds an edge may act without news. ``member_key`` hashes members and devices at
    the door; made anew by default, and then nobody is recognised after a restart.
    ``trace_url``: where a trace can be looked at, with ``{trace_id}`` in it; empty: nowhere.
    """

    tokens: auth.Tokens
    database: str
    lease: float = 10.0
    quiet: float = 0.4
    limits: Limits = field(default_factory=Limits)
    member_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    outcomes: OutcomeSource = "devices"
    prometheus: Prometheus | None = None
    guardrails: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    public_url: str = ""
    trace_url: str = ""


def create_app(service: Service) -> FastAPI:
    """The service as an ASGI application."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        database = Database(service.database)
        service.tokens.database = database
        instruments.time_transactions(database.engine)
        engine = Engine(
            database,
            now=time.time(),
            lease=service.lease,
            quiet=service.quiet,
            limits=service.limits,
            outcomes=service.outcomes,
        )
        app.state.database, app.state.engine = database, engine
        tasks = [asyncio.create_task(engine.run())]
        if service.prometheus is not None:
            guardrails = Guardrails(service.prometheus, service.guardrails)
            tasks.append(asyncio.create_task(guardrails.watch(engine.scheduler)))
            tasks.append(asyncio.create_task(counts.watch(service.prometheus, engine.scheduler)))
        if service.targets:
            outbox = Outbox(database, service.targets, service.public_url)
            tasks.append(asyncio.create_task(outbox.run()))
        for task in tasks:
            task.add_done_callback(_note_end)
        yield
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        engine.scheduler.shut_down("the service was stopped", time.time())
        database.close()

    app = FastAPI(
        title="ldfi",
        summary="Lineage-driven fault injection",
        description=f"Errors are RFC 9457 documents; their types are listed at {problems.TYPE}.",
        version="1",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=openapi.operation_id,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # ours: experiments.tracing
    )
    app.add_middleware(metrics.CountRequests)
    app.state.tokens = service.tokens
    app.state.member_key = service.member_key
    app.state.trace_url = service.trace_url
    app.state.rate_limiter = RateLimiter()
    app.state.streams = set()
    app.state.counts_outcomes = service.prometheus is not None
    problems.install(app)
    openapi.install(app, (*ROUTERS, *_about(app)))
    for pages in entry_points(group=PAGES):
        pages.load()(app)
    return app


def _note_end(task: asyncio.Task[None]) -> None:
    """None of them ends by itself; one that does has died of something nobody thought of."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical("a part of the service has died", exc_info=error)


def _about(app: FastAPI) -> tuple[APIRouter, APIRouter]:
    health, about = APIRouter(tags=["health"]), APIRouter(tags=["about"], route_class=GuardedRoute)

    @health.get("/healthz", name="alive")
    async def healthz() -> Health:
        """The process answers."""
        return Health(status="ok")

    @health.get("/readyz", name="ready", responses={503: {}})
    async def readyz(request: Request) -> Health:
        """The service takes spans and hands out rules."""
        engine: Engine = request.app.state.engine
        stalled = time.time() - engine.ticked_at
        if stalled >= STALLED:
            raise problems.Problem(503, "not-ready", f"no tick for {stalled:.0f} s")
        return Health(status="ready")

    @about.get("/api/v1/openapi.json", name="openapi")
    async def document(_caller: auth.Viewer) -> dict[str, Any]:
        """This API, described for programs (OpenAPI 3.1)."""
        return app.openapi()

    return health, about
