"""A cache in the process's own memory, with entries that expire. A look-up is a place to fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ldfi import fit

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """``name`` is the peer of its injection point, ``seconds`` the life of an entry."""

    def __init__(
        self, name: str, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._seconds = seconds
        self._clock = clock
        self._entries: dict[str, tuple[float, Value]] = {}

    async def get(self, key: str) -> Value | None:
        """Look an entry up; None on a miss."""
        async with fit.point("cache", "get", peer=self._name):
            found = self._entries.get(key)
            return found[1] if found is not None and found[0] > self._clock() else None

    def put(self, key: str, value: Value) -> None:
        """Keep an entry. Never a default: a cached default outlives the failure it stood for."""
        self._entries[key] = (self._clock() + self._seconds, value)
