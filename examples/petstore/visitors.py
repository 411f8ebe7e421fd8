"""Visitors of the petstore: they look at pets, look at orders and order, and say how it went.

What a visitor got is what counts: an answer is a success, the fallback's a degraded one, anything
else a failure. Root spans would not do, for 405 is no error of a server.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx
import petstore
from together import Visitors

VISITORS: Final = 6
APART: Final = 0.1
"""Seconds between an answer and the same visitor's next request."""
DEVICES: Final = 2000
TURNS: Final = ("GET /pets/*", *2 * ("GET /orders/*",), "POST /orders", "GET /orders/*")
"""What a visitor does, one after the other: orders are looked at more often than made."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """The way in, as a visitor sees it."""

    url: str
    http: httpx.Client

    def ask(self, kind: str, number: int, headers: Mapping[str, str] | None = None) -> str:
        """Make a request of a kind, about a pet or an order; ``success``, ``degraded`` or
        ``failure``."""
        method, _, path = kind.partition(" ")
        address = self.url + path.replace("*", str(number))
        query = {"pet": number} if method == "POST" else None
        try:
            answer = self.http.request(method, address, params=query, headers=headers)
        except httpx.HTTPError:
            return "failure"
        if not (answer.is_success and answer.content):  # an empty 200 hides an error
            return "failure"
        return "degraded" if "x-degraded" in answer.headers else "success"

    def breaker(self) -> str:
        """Return what the breaker is: CLOSED, OPEN or HALF_OPEN."""
        return self.http.get(f"{self.url}/breaker").text


@dataclass(frozen=True, slots=True)
class Devices:
    """They use the petstore. ``reports``, ``token``: where ldfi takes what they saw."""

    gateway: Gateway
    reports: str
    token: str

    def visiting(self) -> Visitors:
        """Let some at a time in, until the block is left."""
        return Visitors(self._visit, VISITORS, APART)

    def _visit(self, number: int) -> None:
        kind = TURNS[(number // VISITORS + number % VISITORS) % len(TURNS)]
        device, trace = f"device-{number % DEVICES:04}", secrets.token_hex(16)
        headers = {
            "x-device-id": device,
            "traceparent": f"00-{trace}-{secrets.token_hex(8)}-01",
        }
        outcome = self.gateway.ask(kind, 1 + number % petstore.PETS, headers)
        metric: dict[str, Any] = {"device": device, "trace_id": trace, "outcome": outcome}
        with suppress(httpx.HTTPError):  # a report may be lost
            self.gateway.http.post(
                f"{self.reports}/api/v1/device-metrics",
                json={"metrics": [metric]},
                headers={"authorization": f"Bearer {self.token}"},
            )
