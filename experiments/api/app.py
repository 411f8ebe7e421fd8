"""The application: routes, errors, and what goes on in the process while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final, Literal

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, Field
from starlette.types import Scope

from ldfi.errors import Conflict
from ldfi.experiments.api import (
    application_state,
    auth,
    campaigns,
    classes,
    edge,
    events,
    experiments,
    findings,
    forecast,
    heads,
    ids,
    ingest,
    loose_calls,
    metrics,
    namespaces,
    openapi,
    problems,
    replay_runs,
    replays,
    safety,
    tokens,
    was_it_us,
)
from ldfi.experiments.api.by_namespace import ByNamespace
from ldfi.experiments.api.forward import Forwarder
from ldfi.experiments.api.halt_door import HaltDoor
from ldfi.experiments.api.namespace_applications import NamespaceApplications
from ldfi.experiments.api.otlp_grpc import OtlpGrpc
from ldfi.experiments.api.request_ids import NameRequests
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.cluster.candidate import Candidate
from ldfi.experiments.cluster.election import FileLock, election_of
from ldfi.experiments.cluster.post import Post
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.telemetry import clock

ROUTERS: tuple[APIRouter, ...] = (
    ingest.router,
    edge.router,
    campaigns.router,
    heads.router,
    forecast.router,
    experiments.router,
    findings.router,
    replay_runs.router,
    replays.router,
    classes.router,
    loose_calls.router,
    safety.router,
    was_it_us.router,
    events.router,
    ids.router,
    tokens.router,
    namespaces.router,
    metrics.router,
)


PAGES: Final = "ldfi.pages"
"""Entry points of this group are called with the application and put their pages on it. That is
how ``dashboards`` gets there, which this room knows nothing of."""

STALLED: Final = 5.0
"""Seconds without a tick after which the service does not count as ready."""


class Health(BaseModel):
    """How the process is. ``standby``: ready too, but the engine is in another process."""

    status: Literal["ok", "ready", "standby"] = Field(
        description="`ok`: alive; `ready`: with the engine; `standby`: ready, and the engine is "
        "in another process."
    )


def create_app(service: Service) -> FastAPI:
    """Make the service as an ASGI application."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await _open(app, service, stack)
            _make_routes(app)
            yield

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
        telemetry={"tracing": False, "metrics": False, "logs": False},  # ours: tracing.py
    )
    app.add_middleware(metrics.CountRequests)
    application_state.begin(app, service)
    app.state.namespaces, app.state.of_each = None, []
    problems.install(app)
    app.add_middleware(NameRequests)
    app.add_middleware(ByNamespace, find=partial(_of_namespace, app))
    openapi.install(app, (*ROUTERS, *_about(app)))
    for pages in entry_points(group=PAGES):
        pages.load()(app)
    return app


def _make_routes(app: FastAPI) -> None:
    """Have routes make what they answer with before anybody asks: FastAPI would do it in the first
    request, while the loop waits."""
    asked: Scope = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []}
    for route in app.routes:
        route.matches({**asked})


def _of_namespace(app: FastAPI, name: str) -> FastAPI | None:
    """Find the application of another namespace than the default one."""
    known: NamespaceApplications | None = app.state.namespaces
    return None if known is None else known.get(name)


async def _open(app: FastAPI, service: Service, stack: AsyncExitStack) -> None:
    """Begin everything that this process does; it ends in the opposite order, with the stack."""
    database = Database(service.database, service.keys)
    stack.callback(database.close)
    service.tokens.database = database
    if service.grpc_at is not None:
        app.state.otlp_grpc = OtlpGrpc(app, *service.grpc_at)
    known = app.state.namespaces = NamespaceApplications(app, service, database)
    stack.push_async_callback(known.close)
    application_state.furnish(app, service, database, stack)
    if service.halt_at is not None:
        known.door = HaltDoor(
            service.halt_at, service.tokens, database, lambda: app.state.engine, app.state.relay
        )
        app.state.halt_door = known.door
        stack.callback(app.state.halt_door.close)
    if service.role != "api":
        await _stand(app, service, stack)
    await known.look()
    application_state.take_in(app, service, stack)
    application_state.beside(stack, known.run())
    if app.state.otlp_grpc is not None:  # last, so it is the first that ends
        await stack.enter_async_context(app.state.otlp_grpc.listening())


async def _stand(app: FastAPI, service: Service, stack: AsyncExitStack) -> None:
    """Lead, now or when nobody else does any more."""
    election, known = election_of(service.database), app.state.namespaces
    post = Post(service, app.state.database, application_state.told(app))
    candidate = known.candidate = Candidate(post, election, known.look)
    if not await candidate.stand() and isinstance(election, FileLock):
        raise Conflict(f"{election}: stop it, or use PostgreSQL, which several processes can share")
    stack.push_async_callback(candidate.end)
    application_state.beside(stack, candidate.run())


def _about(app: FastAPI) -> tuple[APIRouter, APIRouter]:
    health, about = APIRouter(tags=["health"]), APIRouter(tags=["about"], route_class=GuardedRoute)

    @health.get("/healthz", name="alive")
    async def healthz() -> Health:
        """Answer, if the process can."""
        return Health(status="ok")

    @health.get("/readyz", name="ready", responses={503: {}})
    async def readyz(request: Request) -> Health:
        """Return whether the service takes spans and hands out rules, or knows who does."""
        engine: Engine | None = request.app.state.engine
        if engine is None:
            forwarder: Forwarder = request.app.state.forwarder
            await forwarder.leader()
            if not forwarder.answers:
                raise problems.Problem(503, "not-ready", "the database does not answer")
            return Health(status="standby")
        stalled = clock.now() - engine.ticked_at
        if stalled >= STALLED:
            raise problems.Problem(
                503, "not-ready", f"the scheduler has made no step for {stalled:.0f} s"
            )
        return Health(status="ready")

    @about.get("/api/v1/openapi.json", name="openapi")
    async def document(_caller: auth.Viewer) -> dict[str, Any]:
        """Describe this API for programs (OpenAPI 3.1)."""
        return await asyncio.to_thread(app.openapi)

    return health, about
