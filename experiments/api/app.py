"""The application: routes, errors, and the engine that ticks while it runs."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse

from experiments import counts
from experiments.api import (
    auth,
    campaigns,
    classes,
    edge,
    events,
    experiments,
    findings,
    ingest,
    problems,
    safety,
    tokens,
)
from experiments.api.rate_limit import RateLimiter
from experiments.domain.settings import Limits
from experiments.engine import Engine, OutcomeSource
from experiments.guardrails import Guardrails
from experiments.notify import Target
from experiments.outbox import Outbox
from experiments.prometheus import Prometheus
from experiments.store import Database

ROUTERS: tuple[APIRouter, ...] = (
    ingest.router,
    edge.router,
    campaigns.router,
    experiments.router,
    findings.router,
    classes.router,
    safety.router,
    events.router,
    tokens.router,
)


@dataclass(frozen=True, slots=True)
class Service:
    """What the service is made with.

    ``lease``: seconds an edge may act without news. ``member_key`` hashes members and devices at
    the door; made anew by default, and then nobody is recognised after a restart.
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


def create_app(service: Service) -> FastAPI:
    """The service as an ASGI application."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        database = Database(service.database)
        service.tokens.database = database
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
    )
    app.state.tokens = service.tokens
    app.state.member_key = service.member_key
    app.state.rate_limiter = RateLimiter()
    app.state.streams = set()
    app.state.counts_outcomes = service.prometheus is not None
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.include_router(_about(app))
    return app


def _about(app: FastAPI) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @router.get("/readyz", tags=["health"])
    async def readyz(request: Request) -> JSONResponse:
        """The service takes spans and hands out rules."""
        engine: Engine = request.app.state.engine
        stalled = time.time() - engine.ticked_at
        ready = stalled < 5.0
        return JSONResponse(
            {"status": "ready" if ready else f"no tick for {stalled:.0f} s"},
            status_code=200 if ready else 503,
        )

    @router.get("/api/v1/openapi.json", tags=["about"])
    async def openapi(_caller: auth.Viewer) -> JSONResponse:
        """This API, described for programs (OpenAPI 3.1)."""
        return JSONResponse(app.openapi())

    return router
