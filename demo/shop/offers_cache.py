"""offers-cache: what was cheaper a while ago, for when nobody can say what is today."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


async def offers(_: Request) -> Response:
    """List it."""
    return JSONResponse({"offers": ["a chair"]})


routes = [Route("/offers", offers)]
