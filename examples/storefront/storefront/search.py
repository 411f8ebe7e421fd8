"""Search. Nothing is wrong with it: it has something to show whatever fails."""

from __future__ import annotations

import asyncio
from typing import Any

from storefront.services import Services, Unavailable


async def results(services: Services, query: str) -> dict[str, Any]:
    """Show what is found, or what sells best, or nothing."""
    found, spelling, adverts, history = await asyncio.gather(
        _found(services, query),
        services.get_or(query, "spelling", "/corrected"),
        services.get_or([], "adverts", "/matching"),
        services.get_or([], "customers", "/searches"),
    )
    return {"results": found, "spelling": spelling, "adverts": adverts, "history": history}


async def _found(services: Services, query: str) -> list[str]:
    try:
        return await services.get("index", f"/find/{query}")
    except Unavailable:
        return await services.get_or([], "catalogue", "/bestsellers")
