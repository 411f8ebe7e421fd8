"""What makes the home screen nicer and is missed by nobody: stars, a banner, flags."""

from __future__ import annotations

import asyncio
from typing import Any
from zlib import crc32

import httpx

from ldfi import fit
from ldfi.demo.cache import Cache
from ldfi.demo.catalogue import TITLES
from ldfi.demo.client import fetch
from ldfi.demo.fallback import within

Json = dict[str, Any]

ATTEMPTS = 2

_flags: Cache[Json] = Cache("flags", seconds=0.5)


async def extras(client: httpx.AsyncClient, member: str, kind: str) -> Json:
    """Gather all of it at once."""
    focus, text, features = await asyncio.gather(
        stars(client, member), banner(client, kind), flags(kind)
    )
    return {"focus": focus, "banner": text, "flags": features}


async def stars(client: httpx.AsyncClient, member: str) -> Json:
    """Fetch the rating of the title in focus; asked for once more when the first call fails."""
    number = 1 + crc32(member.encode()) % len(TITLES)
    for _ in range(ATTEMPTS):
        try:
            rating: Json = await fetch(client, f"http://ratings/titles/{number}")
        except httpx.HTTPError:
            continue
        return {"title": number, **rating}
    return {"title": number, "stars": None}


async def banner(client: httpx.AsyncClient, kind: str) -> str | None:
    """Fetch a word from the sponsors, if there is one."""
    try:
        answer: Json = await fetch(client, "http://promos/banner", device=kind)
    except httpx.HTTPError:
        return None
    text: str = answer["banner"]
    return text


async def flags(kind: str) -> Json:
    """Find out which features are on; worked out anew when the cache has nothing."""
    known = await within(_flags.get(kind), None)
    if known is not None:
        return known
    found = await within(evaluated_flags(kind), None)
    if found is None:
        return {}
    _flags.put(kind, found)
    return found


@fit.point("function", "evaluated_flags")
async def evaluated_flags(kind: str) -> Json | None:
    """Evaluate the rules for one kind of device."""
    return {"previews": kind == "tv", "downloads": kind != "tv"}
