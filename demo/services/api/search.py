"""GET /search: matches for a query, and what the member may have meant."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ldfi.demo import limits
from ldfi.demo.client import fetch
from ldfi.demo.repairs import repaired
from ldfi.demo.services.api.rows import trending

Json = dict[str, Any]


async def search(request: Request) -> Response:
    """Find titles for a query; never an empty page."""
    client = request.app.state.client
    words = request.query_params.get("q", "")
    found, suggestion = await asyncio.gather(matches(client, words), spelling(client, words))
    return JSONResponse({"rows": [{"row": "matches", **found}], "suggestion": suggestion})


async def matches(client: httpx.AsyncClient, words: str) -> Json:
    """Fetch what the index finds, else what is trending."""
    try:
        answer: Json = await fetch(client, "http://search/search", limits.INNER, q=words)
    except httpx.HTTPError:
        return await trending(client)
    return answer


async def spelling(client: httpx.AsyncClient, words: str) -> str | None:
    """Fetch a better spelling; nobody misses it when it cannot be had."""
    seconds = limits.LEAF if repaired("search-spelling") else None
    try:
        answer = await fetch(client, "http://spelling/suggest", seconds, q=words)
    except httpx.HTTPError:
        return None
    suggestion: str | None = answer["suggestion"]
    return suggestion
