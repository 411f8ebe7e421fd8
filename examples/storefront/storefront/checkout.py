"""From a cart to an order."""

from __future__ import annotations

from typing import Any

from storefront.services import Services, Unavailable


async def place_order(services: Services, cart_id: str) -> dict[str, Any]:
    """Charge the customer, and say that the order is placed."""
    cart = await services.get("carts", f"/carts/{cart_id}")
    greeting = await services.get_or("", "customers", f"/greeting/{cart_id}")
    voucher = await services.get_or(0, "promotions", f"/vouchers/{cart_id}")
    shipping = await services.get_or("standard", "delivery", f"/options/{cart_id}")
    tax = await _tax(services, cart_id)
    total = cart["cents"] - voucher + tax
    payment = await services.post("payments", f"/charges/{cart_id}")
    # From here on the customer has paid.
    points = await _award_points(services, cart_id)
    await _confirm(services, cart_id)
    await services.get_or(None, "analytics", f"/orders/{cart_id}")
    return {
        "total": total,
        "payment": payment["id"],
        "points": points,
        "shipping": shipping,
        "greeting": greeting,
    }


async def _tax(services: Services, cart_id: str) -> int:
    try:
        return (await services.get("tax", f"/carts/{cart_id}"))["cents"]
    except Unavailable:
        return (await services.get("taxtable", "/default"))["cents"]


async def _award_points(services: Services, cart_id: str) -> int:
    return (await services.post("loyalty", f"/points/{cart_id}"))["points"]


async def _confirm(services: Services, cart_id: str) -> None:
    try:
        await services.post("mail", f"/confirmations/{cart_id}")
    except Unavailable:
        await services.post("outbox", f"/messages/{cart_id}")
