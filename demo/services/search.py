"""search: titles whose names contain the words asked for."""

from __future__ import annotations

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo.catalogue import TITLES, Title, pick, skeleton
from ldfi.demo.client import fetch
from ldfi.demo.fallback import within

MOST = 6


async def search(request: Request) -> Response:
    """Find the best matches; there is always something to show."""
    words = request.query_params.get("q", "")
    numbers = await within(matching(words), []) or pick(words, MOST)
    return JSONResponse({"titles": await described(request.app.state.client, numbers)})


async def described(client: httpx.AsyncClient, numbers: list[int]) -> list[Title]:
    """Describe the titles of these numbers; bare ones when they cannot be described."""
    try:
        answer = await fetch(client, "http://titles/titles", ids=",".join(map(str, numbers)))
    except httpx.HTTPError:
        return [skeleton(number) for number in numbers]
    titles: list[Title] = answer["titles"]
    return titles


@fit.point("function", "matching")
async def matching(words: str) -> list[int]:
    """Find the numbers of titles that share a word with the query."""
    wanted = set(words.lower().split())
    hits = (n for n, title in TITLES.items() if wanted & set(title["name"].lower().split()))
    return [number for _, number in zip(range(MOST), hits, strict=False)]


routes = [Route("/search", search)]
