"""ratings: stars for titles."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi.demo.cache import Cache
from ldfi.demo.fallback import within

_stars: Cache[float] = Cache("stars", seconds=3600.0)
for _number in range(1, 61):
    _stars.put(str(_number), 1 + _number % 9 / 2)

AVERAGE = 3.0


async def ratings(request: Request) -> Response:
    """Show the stars of the title in focus."""
    stars = await within(_stars.get(request.path_params["number"]), None)
    return JSONResponse({"stars": AVERAGE if stars is None else stars})


routes = [Route("/titles/{number}", ratings)]
