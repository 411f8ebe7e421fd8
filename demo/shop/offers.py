"""offers: what is cheaper today."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


async def offers(_: Request) -> Response:
    """List it."""
    return JSONResponse({"offers": ["a teapot", "a chair", "a clock"]})


routes = [Route("/offers", offers)]
