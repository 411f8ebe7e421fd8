"""What the other services answer."""

from __future__ import annotations

import httpx

ANSWERS = {
    "adverts": [],
    "analytics": {},
    "badges": ["new"],
    "bestsellers": ["lamp"],
    "carts": {"cents": 5000},
    "charges": {"id": "charge"},
    "confirmations": {},
    "corrected": "chair",
    "default": {"cents": 950},
    "estimate": "tomorrow",
    "find": ["chair"],
    "greeting": "Hello!",
    "matching": [],
    "messages": {},
    "of": {"name": "Carpenters"},
    "options": "express",
    "orders": {},
    "points": {"points": 50},
    "prices": {"cents": 4200},
    "products": {"name": "Chair", "list_price": 4900},
    "questions": [],
    "searches": [],
    "similar": ["table"],
    "stock": {"count": 3},
    "vouchers": 500,
}


def answer(request: httpx.Request) -> httpx.Response:
    """Answer as whichever service is asked."""
    what = request.url.path.split("/")[1]
    return httpx.Response(200, json=ANSWERS[what])
