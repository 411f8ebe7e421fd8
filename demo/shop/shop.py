"""shop: the gateway that devices talk to. ``GET /home`` and ``GET /checkout``."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi.demo import repairs
from ldfi.demo.client import fetch
from ldfi.demo.repairs import repaired

Json = dict[str, Any]

STANDARD_LAYOUT = ["offers", "favourites"]
FAVOURITES = ["a kettle", "a lamp"]
CLASSICS = ["a chair"]
TOTAL = 40
LAST_KNOWN: Json = {"known": True, "days": 3}
"""Shown when stock cannot be asked at all. What stock itself says is believed."""


async def home(request: Request) -> Response:
    """Show the first page: offers and a price, in the sections of the layout."""
    client = request.app.state.client
    layout, found, price = await asyncio.gather(
        _asked(client, "http://layout/layout"), offers(client), focus(client)
    )
    if found is None and repaired("home-offers"):
        found = CLASSICS
    if found is None:
        return JSONResponse({"error": "nobody knows today's offers"}, status_code=503)
    if layout is None and repaired("home-layout"):
        layout = {"sections": STANDARD_LAYOUT}
    if layout is None:
        return JSONResponse({"sections": None})
    content = {"offers": found, "favourites": FAVOURITES}
    sections = [{"name": name, "items": content[name]} for name in layout["sections"]]
    return JSONResponse({"sections": sections, "price": price})


async def checkout(request: Request) -> Response:
    """Return what an order costs, and when it comes."""
    delivery = await stock(request.app.state.client)
    if not delivery["known"] and not repaired("checkout-stock"):
        return JSONResponse({"error": "nobody knows what is in stock"}, status_code=503)
    return JSONResponse({"total": TOTAL, "delivery": delivery})


async def offers(client: httpx.AsyncClient) -> list[str] | None:
    """Fetch today's offers, else those that were kept; None when neither can be had."""
    for service in ("offers", "offers-cache"):
        answer = await _asked(client, f"http://{service}/offers")
        if answer is not None:
            found: list[str] = answer["offers"]
            return found
    return None


async def focus(client: httpx.AsyncClient) -> int | None:
    """Fetch the price of what is shown first; the page does without."""
    answer = await _asked(client, "http://prices/prices")
    return None if answer is None else int(answer["price"])


async def stock(client: httpx.AsyncClient) -> Json:
    """Fetch what is in stock and when it comes."""
    return await _asked(client, "http://stock/stock") or LAST_KNOWN


async def _asked(client: httpx.AsyncClient, url: str) -> Json | None:
    try:
        answer: Json = await fetch(client, url, None)
    except httpx.HTTPError:
        return None
    return answer


routes = [Route("/home", home), Route("/checkout", checkout), *repairs.routes]
