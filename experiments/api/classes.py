"""Request classes: what the traffic consists of, and what each class relies on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import Filter
from ldfi.experiments.api.examples import example
from ldfi.experiments.api.repairs import called_of
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Running
from ldfi.experiments.api.views import ClassView
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/classes", tags=["classes"], route_class=GuardedRoute)


@router.get("")
async def listing(
    engine: Running,
    _caller: Viewer,
    name: Annotated[Filter, Query(description="A name or a pattern with *.")] = None,
    limit: Annotated[int, Query(ge=1, le=2000, description="How many at most.")] = 200,
) -> list[ClassView]:
    """List the request classes learned so far, the busiest first."""
    now = clock.now()
    wanted = [
        known
        for each, known in engine.catalogue.classes.items()
        if name is None or matching([name], [each]) is not None
    ]
    wanted.sort(key=lambda known: (-known.rate(now), known.name))
    injectors = engine.scheduler.state.injectors
    return [ClassView.of(known, now, injectors) for known in wanted[:limit]]


@router.get("/called", responses={200: example({"POST /graphql op=Cart": "look at the cart"})})
async def called(request: Request, engine: Running, _caller: Viewer) -> dict[str, str]:
    """Return how people call request classes, by their exact names: those for which somebody
    said."""
    names = called_of(request).names
    return {name: names[name] for name in sorted(engine.catalogue.classes) if name in names}
