"""What is said of a service that a trace store does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ldfi.errors import NotFound

_NAMED: Final = 30
"""Services that are listed, at most."""


def no_such_service(store: str, service: str, services: Sequence[str]) -> NotFound:
    """Return which services there are."""
    more = f" and {len(services) - _NAMED} more" if len(services) > _NAMED else ""
    there = ", ".join(services[:_NAMED]) + more or "none at all"
    asked = f"no service {service!r}" if service else "more than one service: choose with --service"
    return NotFound(f"{store} knows {asked}; there is {there}")
