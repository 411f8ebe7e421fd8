"""promos: a banner that nobody misses, from a service that fails now and then by itself."""

from __future__ import annotations

import random

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.fallback import within

FAILS_BY_ITSELF = 0.03


async def banner(request: Request) -> Response:
    """Show a banner for one kind of device."""
    if random.random() < FAILS_BY_ITSELF:
        return JSONResponse({"message": "no inventory"}, status_code=500)
    device = request.query_params.get("device", "tv")
    return JSONResponse({"banner": await within(targeted(device), "Welcome back")})


@fit.point("function", "targeted")
async def targeted(device: str) -> str:
    """Choose words that suit the screen."""
    return "Big nights on the big screen" if device == "tv" else "Take it with you"


routes = [Route("/banner", banner)]
