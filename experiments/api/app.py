"""The application: routes, errors, and the engine that ticks while it runs."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

import experiments.api.control
import experiments.api.edge
import experiments.api.ingest
from experiments.api import problems
from experiments.api.auth import Tokens
from experiments.engine import Engine
from experiments.store import Store


def create_app(tokens: Tokens, store_url: str, *, lease: float = 10.0) -> FastAPI:
    """The service as an ASGI application. ``lease``: seconds an edge may act without news."""

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        store = Store(store_url)
        app.state.store = store
        app.state.engine = Engine(store, now=time.time(), lease=lease)
        task = asyncio.create_task(app.state.engine.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        store.close()

    app = FastAPI(
        title="ldfi",
        summary="Lineage-driven fault injection",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.tokens = tokens
    app.state.member_salt = secrets.token_bytes(32)
    problems.install(app)
    for module in (experiments.api.ingest, experiments.api.edge, experiments.api.control):
        app.include_router(module.router)

    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["health"])
    async def readyz() -> dict[str, str]:
        """The service takes spans and hands out rules."""
        return {"status": "ready"}

    return app
