"""stock: what is there and what is on its way. With either it answers; with neither it says so."""

from __future__ import annotations

import asyncio

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


async def stock(request: Request) -> Response:
    """Tell in how many days an order comes."""
    client = request.app.state.client
    there, coming = await asyncio.gather(_read(client, "levels"), _read(client, "arrivals"))
    known = [days for days in (there, coming) if days is not None]
    return JSONResponse({"known": bool(known), "days": min(known, default=None)})


async def _read(client: httpx.AsyncClient, table: str) -> int | None:
    try:
        response = await client.get(f"http://stockdb/{table}", timeout=None)
        response.raise_for_status()
    except httpx.HTTPError:
        return None
    return int(response.json()["days"])


routes = [Route("/stock", stock)]
