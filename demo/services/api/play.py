"""GET /play/{title_id}: what a player needs to start."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ldfi import fit
from ldfi.demo import limits
from ldfi.demo.catalogue import skeleton
from ldfi.demo.client import fetch
from ldfi.demo.fallback import within
from ldfi.demo.repairs import repaired

Json = dict[str, Any]

OFFLINE_LICENSE = {"key": "k-offline", "quality": "480p"}
ORIGIN = "origin.example"


async def play(request: Request) -> Response:
    """Gather licence, stream, title and the position to resume at."""
    client = request.app.state.client
    number = request.path_params["title_id"]
    device = request.headers.get("x-device-id", "guest")
    kind = request.headers.get("x-device-type", "tv")
    license_, found, resume, host = await asyncio.gather(
        license_for(client, number, kind),
        title(client, number),
        position(client, device, number),
        within(nearest_edge(device), ORIGIN),
    )
    if license_ is None:
        return JSONResponse({"error": "no licence"}, status_code=502)
    stream = f"https://{host}/{number}/{license_['quality']}.mpd"
    return JSONResponse({"license": license_, "stream": stream, "title": found, "resume": resume})


async def license_for(client: httpx.AsyncClient, number: int, kind: str) -> Json | None:
    """Fetch the right to play; None when it cannot be had."""
    try:
        answer: Json = await fetch(
            client, f"http://license/licenses/{number}", limits.INNER, device=kind
        )
    except httpx.HTTPError:
        return OFFLINE_LICENSE if repaired("play-license") else None
    return answer


async def title(client: httpx.AsyncClient, number: int) -> Json:
    """Fetch the title's name and length, or just its number."""
    try:
        answer: Json = await fetch(client, f"http://titles/titles/{number}")
    except httpx.HTTPError:
        return skeleton(number)
    return answer


async def position(client: httpx.AsyncClient, device: str, number: int) -> int:
    """Find where to resume, in seconds; from the beginning when nobody knows."""
    member = f"member-{device.removeprefix('device-')}"
    try:
        answer = await fetch(client, f"http://bookmarks/bookmarks/{member}/{number}", limits.INNER)
    except httpx.HTTPError:
        return 0
    return int(answer["seconds"])


@fit.point("function", "nearest_edge")
async def nearest_edge(device: str) -> str:
    """Choose the delivery host closest to a device."""
    return f"edge-{sum(device.encode()) % 8}.example"
