"""recommend: rows for a taste, kept for a moment, since many members share one."""

from __future__ import annotations

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.cache import Cache
from ldfi.demo.catalogue import Title, pick, skeleton
from ldfi.demo.client import fetch
from ldfi.demo.fallback import within

TASTES = 30

_rows: Cache[list[Title]] = Cache("rows", seconds=3.0)


async def recommend(request: Request) -> Response:
    """Recommend titles to a member. Names are looked up only when the cache does not have them."""
    member = request.path_params["member"]
    taste = str(sum(member.encode()) % TASTES)
    titles = await within(_rows.get(taste), None)
    if titles is None:
        titles = await fresh(request.app.state.client, taste)
    return JSONResponse({"titles": await within(scored(titles, member), titles)})


async def fresh(client: httpx.AsyncClient, taste: str) -> list[Title]:
    """Make the row of one taste; only a complete one is kept."""
    numbers = pick(f"taste/{taste}", count=6)
    try:
        answer = await fetch(client, "http://titles/titles", ids=",".join(map(str, numbers)))
    except httpx.HTTPError:
        return [skeleton(number) for number in numbers]
    titles: list[Title] = answer["titles"]
    _rows.put(taste, titles)
    return titles


@fit.point("function", "scored")
async def scored(titles: list[Title], member: str) -> list[Title]:
    """Order the titles, the likeliest first."""
    turn = len(member) % len(titles)
    return titles[turn:] + titles[:turn]


routes = [Route("/rows/{member}", recommend)]
