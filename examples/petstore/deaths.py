"""What really fails when a process of the petstore is killed.

Each is dead for longer than the cache keeps a name and the breaker stays open. Three things are
looked at: requests at once, while the cache still has what they need; requests when it has nothing
left and the breaker is closed, for nobody has asked meanwhile; and requests while the breaker is
open, if failing calls open it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import petstore
from together import killed
from visitors import TURNS, Gateway

from ldfi.explore.external.services import Service, Services

KINDS: Final = tuple(dict.fromkeys(TURNS))
ONE: Final = 1
"""The pet and the order that are asked for."""
PATIENCE: Final = 60.0
"""Seconds until the breaker has to be closed again once all is well."""
ASKED: Final = 3 * petstore.WINDOW
"""Requests after which a breaker that is still closed counts as one that stays so."""


@dataclass(frozen=True, slots=True)
class Death:
    """What failed while one process was dead: at once, later with the breaker closed, and with it
    open (None: it never opened)."""

    service: str
    kept: frozenset[str]
    closed: frozenset[str]
    open: frozenset[str] | None


def died(running: Services, every: Sequence[Service], gateway: Gateway, service: str) -> Death:
    """Kill a process, ask for everything, and start it again. Raises TimeoutError."""
    recovered(gateway)
    time.sleep(petstore.KEPT_SECONDS)
    gateway.ask("GET /pets/*", ONE)  # so that it was read anew just now
    with killed(running, every, [service]):
        began = time.monotonic()
        at_once = failing(gateway, ["GET /pets/*"])
        time.sleep(petstore.KEPT_SECONDS + 0.5)
        closed = failing(gateway, KINDS)
        opened = _opened(gateway)
        open_ = failing(gateway, KINDS, while_open=True) if opened else None
        time.sleep(max(0.0, began + petstore.KEPT_SECONDS + petstore.OPEN_SECONDS - _now()))
    recovered(gateway)
    return Death(service, at_once, closed, open_)


def failing(gateway: Gateway, kinds: Sequence[str], *, while_open: bool = False) -> frozenset[str]:
    """List the kinds of request that fail; ``while_open``: with the breaker open, before and after.

    Raises TimeoutError where it does not stay open for long enough.
    """
    asked = partial(_asked_while_open if while_open else Gateway.ask, gateway)
    return frozenset(kind for kind in kinds if asked(kind, ONE) == "failure")


def recovered(gateway: Gateway) -> None:
    """Wait until every kind of request is answered as ever, and the breaker is closed. Raises
    TimeoutError."""
    _until(
        lambda: (
            all(gateway.ask(kind, ONE) == "success" for kind in KINDS)
            and gateway.breaker() == "CLOSED"
        ),
        "the petstore has not recovered",
    )


def _opened(gateway: Gateway) -> bool:
    """Look at orders until the breaker opens; whether it did."""
    for _ in range(ASKED):
        gateway.ask("GET /orders/*", ONE)
        if gateway.breaker() == "OPEN":
            return True
    return False


def _asked_while_open(gateway: Gateway, kind: str, number: int) -> str:
    outcome = ""

    def was_open() -> bool:
        nonlocal outcome
        _opened(gateway)
        before = gateway.breaker()
        outcome = gateway.ask(kind, number)
        return before == gateway.breaker() == "OPEN"

    _until(was_open, "the breaker does not stay open while one request is made")
    return outcome


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    end = _now() + PATIENCE
    while not holds():
        if _now() > end:
            raise TimeoutError(f"{otherwise} after {PATIENCE:.0f} s")
        time.sleep(0.2)


_now = time.monotonic
