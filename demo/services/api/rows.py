"""Rows of the home screen: their order, and the titles in them."""

from __future__ import annotations

from typing import Any

import httpx

from ldfi.demo import limits
from ldfi.demo.catalogue import pick, title
from ldfi.demo.client import fetch
from ldfi.demo.repairs import repaired

Json = dict[str, Any]

STANDARD_LAYOUT = ["continue", "playlist", "recommended", "watched"]
CLASSICS: Json = {"titles": [title(number) for number in pick("classics", count=6)]}


async def layout(client: httpx.AsyncClient, kind: str, member: str) -> Json:
    """Fetch the names of rows, in order."""
    try:
        answer: Json = await fetch(
            client, "http://layout/layout", limits.INNER, device=kind, member=member
        )
        return answer
    except httpx.HTTPError:
        return {}


async def playlist(client: httpx.AsyncClient, member: str) -> Json | None:
    """Fetch the member's list, else one that suits most; None when neither can be had."""
    for service, seconds in (("playlist", limits.INNER), ("playlist-fallback", limits.LEAF)):
        try:
            answer: Json = await fetch(client, f"http://{service}/playlists/{member}", seconds)
            return answer
        except httpx.HTTPError:
            continue
    return CLASSICS if repaired("boot-playlist") else None


async def recommended(client: httpx.AsyncClient, member: str) -> Json:
    """Fetch personal suggestions, else what is trending, else the classics."""
    try:
        return await _titles(client, f"http://recommend/rows/{member}", limits.INNER)
    except httpx.HTTPError:
        return await trending(client)


async def trending(client: httpx.AsyncClient) -> Json:
    """Fetch what everybody watches, else the classics."""
    try:
        return await _titles(client, "http://trending/top", limits.LEAF)
    except httpx.HTTPError:
        return CLASSICS


async def _titles(client: httpx.AsyncClient, url: str, seconds: float) -> Json:
    answer: Json = await fetch(client, url, seconds)
    return answer
