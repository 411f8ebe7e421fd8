"""What happens, as it happens: the API's stream of events, for whoever is logged in."""

from __future__ import annotations

from fastapi import APIRouter
from sse_starlette import EventSourceResponse

from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api import events

router = APIRouter(route_class=PageRoute)
router.get("/live", response_class=EventSourceResponse)(events.events)
