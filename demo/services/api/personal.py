"""What is known of the member: profile, bookmarks, history."""

from __future__ import annotations

from typing import Any

import httpx

from ldfi.demo import limits
from ldfi.demo.cache import Cache
from ldfi.demo.catalogue import pick
from ldfi.demo.client import fetch
from ldfi.demo.fallback import within

Json = dict[str, Any]

GUEST: Json = {"name": "Guest", "preferences": {}, "maturity": "all ages"}
STALE: Json = {
    "rows": [{"title": number, "seconds": 0} for number in pick("stale", count=4)],
    "degraded": False,
}
"""Shown when a service cannot be asked at all. What the service itself says is believed."""

_profiles: Cache[Json] = Cache("profiles", seconds=300.0)


async def profile(client: httpx.AsyncClient, member: str) -> Json:
    """Fetch the profile, else the one seen last, else a guest's."""
    try:
        found: Json = await fetch(client, f"http://profiles/profiles/{member}")
    except httpx.HTTPError:
        return await within(_profiles.get(member), None) or GUEST
    _profiles.put(member, found)
    return found


async def bookmarks(client: httpx.AsyncClient, member: str) -> Json:
    """Fetch the row `continue watching`."""
    return await _records(client, f"http://bookmarks/bookmarks/{member}")


async def history(client: httpx.AsyncClient, member: str) -> Json:
    """Fetch the row `watch again`."""
    return await _records(client, f"http://history/history/{member}")


async def _records(client: httpx.AsyncClient, url: str) -> Json:
    try:
        answer: Json = await fetch(client, url, limits.INNER)
    except httpx.HTTPError:
        return STALE
    return answer
