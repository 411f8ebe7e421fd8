"""The page of a product."""

from __future__ import annotations

import asyncio
from typing import Any

from storefront.services import Services, Unavailable


async def page(services: Services, sku: str) -> dict[str, Any]:
    """Show a product, and all that is shown around it."""
    product = await services.get("catalogue", f"/products/{sku}")
    price, stock, similar, extras = await asyncio.gather(
        _price(services, sku, product["list_price"]),
        _stock(services, sku),
        _similar(services, sku),
        _extras(services, sku),
    )
    return {**product, "price": price, "stock": stock, "similar": similar, **extras}


async def _price(services: Services, sku: str, list_price: int) -> int:
    try:
        return (await services.get("pricing", f"/prices/{sku}"))["cents"]
    except Unavailable:
        cached = await services.get_or({}, "pricecache", f"/prices/{sku}")
        return cached.get("cents", list_price)


async def _stock(services: Services, sku: str) -> int | None:
    return (await services.get_or({}, "inventory", f"/stock/{sku}")).get("count")


async def _similar(services: Services, sku: str) -> list[str]:
    try:
        return await services.get("recommender", f"/similar/{sku}")
    except Unavailable:
        return await services.get_or([], "catalogue", "/bestsellers")


async def _extras(services: Services, sku: str) -> dict[str, Any]:
    reviews, images, seller, delivery, badges, questions = await asyncio.gather(
        services.get_or([], "reviews", f"/products/{sku}"),
        services.get_or([], "images", f"/products/{sku}"),
        services.get_or({}, "sellers", f"/of/{sku}"),
        services.get_or(None, "delivery", f"/estimate/{sku}"),
        services.get_or([], "promotions", f"/badges/{sku}"),
        services.get_or([], "community", f"/questions/{sku}"),
    )
    return {
        "reviews": reviews,
        "images": images,
        "seller": seller,
        "delivery": delivery,
        "badges": badges,
        "questions": questions,
    }
