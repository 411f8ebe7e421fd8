"""layout: which sections the first page has, in order."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


async def layout(_: Request) -> Response:
    """List them."""
    return JSONResponse({"sections": ["offers", "favourites"]})


routes = [Route("/layout", layout)]
