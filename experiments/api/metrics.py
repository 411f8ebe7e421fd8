"""The route that Prometheus scrapes, and the middleware that counts requests for it.

What is in memory is this process's own; what is on record is the same in all: take ``max`` of it,
not ``sum``, over several processes.
"""

from __future__ import annotations

import time
from typing import Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldfi.experiments.api.auth import Metrics
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, PerhapsRunning
from ldfi.experiments.cluster import metrics as worker_measured
from ldfi.experiments.scheduler import metrics as engine_measured
from ldfi.experiments.store import metrics as record_measured
from ldfi.experiments.telemetry import clock, exposition, instruments
from ldfi.experiments.telemetry.instruments import HTTP_REQUESTS, HTTP_SECONDS

METRICS: Final = (
    *exposition.IN_PROCESS,
    *engine_measured.IN_MEMORY,
    *instruments.METRICS,
    *worker_measured.IN_WORKER,
    *record_measured.IN_DATABASE,
)
"""All there are, in the order of docs/reference. A process that does not ingest lacks those."""

router = APIRouter(tags=["about"], route_class=GuardedRoute)

_TEXT: Final = {"text/plain": {"schema": {"type": "string"}, "example": "ldfi_halted 0.0\n"}}
_NO_ROUTE: Final = "none"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@router.get("/metrics", response_class=Response, responses={200: {"content": _TEXT}})
async def scrape(
    request: Request, engine: PerhapsRunning, database: Db, _caller: Metrics
) -> Response:
    """Tell Prometheus about this process, in its text format; of another namespace than the default
    one, only what is its own."""
    now, whole = clock.now(), not database.namespace
    in_memory = list(exposition.of_process(leads=engine is not None))
    if engine is not None:
        in_memory += engine_measured.of_engine(engine, now)
    if request.app.state.ingest is not None:
        in_memory += worker_measured.of_worker(request.app.state.ingest)
    limits = request.app.state.limits
    on_record = await run_in_threadpool(record_measured.of_database, database, limits, now)
    text = exposition.text([*in_memory, *on_record], whole=whole)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def table() -> str:
    """Write all metrics as a Markdown table, which docs/reference has."""
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.type} | {labels} | {metric.meaning} |")
    return "\n".join(lines)


class CountRequests:
    """Counts every request and times it until its answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, counted = time.perf_counter(), False

        async def counting(message: Message) -> None:
            nonlocal counted
            if message["type"] == "http.response.start" and not counted:
                counted = True
                _count(scope, str(message["status"]), time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, counting)


def _count(scope: Scope, status: str, seconds: float) -> None:
    route = getattr(scope.get("route"), "path", _NO_ROUTE)
    method = scope["method"] if scope["method"] in _METHODS else "other"
    HTTP_REQUESTS.labels(method, route, status).inc()
    HTTP_SECONDS.labels(route).observe(seconds)
