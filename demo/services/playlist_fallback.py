"""playlist-fallback: a list that suits most members, for when the member's own cannot be had."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.catalogue import Title, pick, title
from ldfi.demo.fallback import within

EVERYBODYS = [title(number) for number in pick("everybody", count=5)]


async def playlist(request: Request) -> Response:
    """Show a list by region, or else the same for everybody."""
    region = request.path_params["member"][-1:]
    return JSONResponse({"titles": await within(regional(region), EVERYBODYS)})


@fit.point("function", "regional")
async def regional(region: str) -> list[Title]:
    """Choose what is watched in one region."""
    return [title(number) for number in pick(f"region/{region}", count=5)]


routes = [Route("/playlists/{member}", playlist)]
