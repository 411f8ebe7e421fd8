"""playlist: what a member put on the list, with the titles' names where they can be had."""

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

_lists: Cache[list[Title]] = Cache("lists", seconds=3.0)


async def playlist(request: Request) -> Response:
    """Show a member's list."""
    numbers = pick("playlist/" + request.path_params["member"], count=5)
    key = ",".join(map(str, numbers))
    titles = await within(_lists.get(key), None)
    if titles is None:
        titles = await named(request.app.state.client, numbers, key)
    return JSONResponse({"titles": await within(newest_first(titles), titles)})


async def named(client: httpx.AsyncClient, numbers: list[int], key: str) -> list[Title]:
    """Find the titles of these numbers; without names, and not kept, when those cannot be had."""
    try:
        answer = await fetch(client, "http://titles/titles", ids=key)
    except httpx.HTTPError:
        return [skeleton(number) for number in numbers]
    titles: list[Title] = answer["titles"]
    _lists.put(key, titles)
    return titles


@fit.point("function", "newest_first")
async def newest_first(titles: list[Title]) -> list[Title]:
    """Put the newest first: higher numbers came later."""
    return sorted(titles, key=lambda title: -title["id"])


routes = [Route("/playlists/{member}", playlist)]
