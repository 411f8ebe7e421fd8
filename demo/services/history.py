"""history: what each member has watched. Without its database it answers `degraded`."""

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


async def history(request: Request) -> Response:
    """List the titles a member watched lately."""
    try:
        response = await request.app.state.client.post(
            "http://recordsdb/query",
            json={"table": "history", "key": request.path_params["member"]},
            timeout=limits.LEAF,
        )
        response.raise_for_status()
        rows = response.json()["rows"]
    except httpx.HTTPError:
        return JSONResponse({"rows": [], "degraded": True})
    rows = await within(without_repeats(rows), rows)
    return JSONResponse({"rows": rows, "degraded": False})


@fit.point("function", "without_repeats")
async def without_repeats(rows: list[Row]) -> list[Row]:
    """Keep each title once, at its latest viewing."""
    return list({row["title"]: row for row in rows}.values())


routes = [Route("/history/{member}", history)]
