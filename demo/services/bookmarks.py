"""bookmarks: where each member stopped watching. Without its database it answers `degraded`."""

from __future__ import annotations

from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo import limits
from ldfi.demo.fallback import within

Row = dict[str, Any]


async def bookmarks(request: Request) -> Response:
    """List a member's bookmarks, unfinished ones first."""
    member = request.path_params["member"]
    try:
        rows = await stored(request.app.state.client, member)
    except httpx.HTTPError:
        return JSONResponse({"rows": [], "degraded": True})
    rows = await within(unfinished_first(rows), rows)
    return JSONResponse({"rows": rows, "degraded": False})


async def position(request: Request) -> Response:
    """Return where a member stopped watching one title, in seconds."""
    member, title = request.path_params["member"], request.path_params["title"]
    try:
        rows = await stored(request.app.state.client, member)
    except httpx.HTTPError:
        return JSONResponse({"seconds": 0, "degraded": True})
    seconds = next((row["seconds"] for row in rows if row["title"] == title), 0)
    return JSONResponse({"seconds": seconds, "degraded": False})


async def stored(client: httpx.AsyncClient, member: str) -> list[Row]:
    """Ask the database. Raises httpx.HTTPError."""
    response = await client.post(
        "http://recordsdb/query",
        json={"table": "bookmarks", "key": member},
        timeout=limits.LEAF,
    )
    response.raise_for_status()
    rows: list[Row] = response.json()["rows"]
    return rows


@fit.point("function", "unfinished_first")
async def unfinished_first(rows: list[Row]) -> list[Row]:
    """Put the longest watched first: it is the likeliest to be taken up again."""
    return sorted(rows, key=lambda row: -row["seconds"])


routes = [
    Route("/bookmarks/{member}", bookmarks),
    Route("/bookmarks/{member}/{title:int}", position),
]
