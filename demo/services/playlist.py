"""playlist: what a member put on the list, with the titles' names where they can be had."""

from __future__ import annotations

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import fit
from demo.catalogue import Title, pick, skeleton
from demo.client import fetch
from demo.fallback import within


async def playlist(request: Request) -> Response:
    """A member's list."""
    numbers = pick("playlist/" + request.path_params["member"], count=5)
    numbers = await within(newest_first(numbers), numbers)
    return JSONResponse({"titles": await named(request.app.state.client, numbers)})


async def named(client: httpx.AsyncClient, numbers: list[int]) -> list[Title]:
    """The titles of these numbers; without names when those cannot be had."""
    try:
        answer = await fetch(client, "http://titles/titles", ids=",".join(map(str, numbers)))
    except httpx.HTTPError:
        return [skeleton(number) for number in numbers]
    titles: list[Title] = answer["titles"]
    return titles


@fit.point("function", "newest_first")
async def newest_first(numbers: list[int]) -> list[int]:
    """Higher numbers came later."""
    return sorted(numbers, reverse=True)


routes = [Route("/playlists/{member}", playlist)]
