"""What an ingest worker answers: whether it lives and works, and what it tells Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from ldfi.experiments.api import problems
from ldfi.experiments.api.auth import Metrics
from ldfi.experiments.api.metrics import CountRequests
from ldfi.experiments.api.rate_limit import RateLimiter
from ldfi.experiments.api.request_ids import NameRequests
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.cluster.ingest import Ingest
from ldfi.experiments.cluster.metrics import of_worker
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.telemetry import exposition


def worker_app(ingest: Ingest, tokens: Tokens) -> FastAPI:
    """Make the application of a process that does nothing but ingest. It has no database, so
    only tokens from the configuration open its metrics."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.tokens = tokens
    app.state.rate_limiter = RateLimiter()
    app.add_middleware(CountRequests)
    problems.install(app)
    app.add_middleware(NameRequests)
    router = APIRouter(route_class=GuardedRoute)

    @router.get("/metrics")
    def scrape(_caller: Metrics) -> Response:
        families = [*exposition.of_process(leads=False), *of_worker(ingest)]
        return Response(exposition.text(families), media_type=CONTENT_TYPE_LATEST)

    @app.get("/healthz")
    def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok")

    @app.get("/readyz")
    def readyz() -> PlainTextResponse:
        if not ingest.ready():
            raise problems.Problem(503, "not-ready", "Kafka does not answer")
        return PlainTextResponse("ready")

    app.include_router(router)
    return app
