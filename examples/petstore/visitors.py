"""Visitors of the petstore: they look at pets, look at orders and order, and say how it went.

What a visitor got is what counts: an answer is a success, the fallback's a degraded one, anything
else a failure. Root spans would not do, for 405 is no error of a server.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx
import petstore

VISITORS: Final = 6
APART: Final = 0.1
"""Seconds between an answer and the same visitor's next request."""
DEVICES: Final = 2000
TURNS: Final = ("GET /pets/*", "GET /orders/*", "POST /orders", "GET /orders/*")
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
        """Say what the breaker is: CLOSED, OPEN or HALF_OPEN."""
        return self.http.get(f"{self.url}/breaker").text


class Visitors:
    """Devices that use the petstore, some at a time, until the block is left.

    ``told``: where ldfi takes their reports, and with which token.
    """

    def __init__(self, gateway: Gateway, told: tuple[str, str]) -> None:
        self._gateway = gateway
        self._reports, self._token = told
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._visit, args=(i,)) for i in range(VISITORS)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _visit(self, first: int) -> None:
        for number in itertools.count(first, VISITORS):
            self._one(TURNS[(number // VISITORS + first) % len(TURNS)], number)
            if self._over.wait(APART):
                return

    def _one(self, kind: str, number: int) -> None:
        device, trace = f"device-{number % DEVICES:04}", secrets.token_hex(16)
        headers = {
            "x-device-id": device,
            "traceparent": f"00-{trace}-{secrets.token_hex(8)}-01",
        }
        outcome = self._gateway.ask(kind, 1 + number % petstore.PETS, headers)
        metric: dict[str, Any] = {"device": device, "trace_id": trace, "outcome": outcome}
        with suppress(httpx.HTTPError):  # a report may be lost
            self._gateway.http.post(
                f"{self._reports}/api/v1/device-metrics",
                json={"metrics": [metric]},
                headers={"authorization": f"Bearer {self._token}"},
            )
