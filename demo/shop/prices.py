"""prices: what things cost."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


async def prices(_: Request) -> Response:
    """Tell the price of the thing in focus."""
    return JSONResponse({"price": 37})


routes = [Route("/prices", prices)]
