"""GET /boot: the home screen, gathered from everywhere at once and laid out in rows."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ldfi import fit
from ldfi.demo.fallback import within
from ldfi.demo.repairs import repaired
from ldfi.demo.services.api import decoration, personal, rows
from ldfi.demo.services.api.rows import STANDARD_LAYOUT

Json = dict[str, Any]


async def boot(request: Request) -> Response:
    """Show everything an app needs for its first screen."""
    client = request.app.state.client
    device = request.headers.get("x-device-id", "guest")
    kind = request.headers.get("x-device-type", "tv")
    member = await within(session(device), device)
    (profile, marks, seen), (order, listed, suggested), extras = await asyncio.gather(
        asyncio.gather(
            personal.profile(client, member),
            personal.bookmarks(client, member),
            personal.history(client, member),
        ),
        asyncio.gather(
            rows.layout(client, kind, member),
            rows.playlist(client, member),
            rows.recommended(client, member),
        ),
        decoration.extras(client, member, kind),
    )
    if listed is None:
        return _unavailable("the playlist cannot be had")
    if marks["degraded"] and seen["degraded"] and not repaired("boot-records"):
        # Empty rows would be taken for a reset of the member's progress, and be stored.
        return _unavailable("the member's records cannot be had")
    content = {"continue": marks, "playlist": listed, "recommended": suggested, "watched": seen}
    return JSONResponse(
        {
            "profile": profile,
            "rows": await laid_out(order, content),
            **extras,
        }
    )


async def laid_out(order: Json, content: dict[str, Json]) -> list[Json] | None:
    """Lay the rows out in the order of the layout; None when there is none."""
    names = order.get("rows")
    if names is None and repaired("boot-layout"):
        names = STANDARD_LAYOUT
    if names is None:
        return None
    home: list[Json] = [{"row": name, **content[name]} for name in names]
    return await within(promoted(home), home)


@fit.point("function", "session")
async def session(device: str) -> str:
    """Find the member a device belongs to. Without it, the device counts as a member of its own."""
    return f"member-{device.removeprefix('device-')}"


@fit.point("function", "promoted")
async def promoted(home: list[Json]) -> list[Json]:
    """Put rows that have something to show before those that have not."""
    return sorted(home, key=lambda row: not (row.get("titles") or row.get("rows")))


def _unavailable(reason: str) -> Response:
    return JSONResponse({"error": reason}, status_code=503)
