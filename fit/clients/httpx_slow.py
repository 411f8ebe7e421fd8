"""Bodies that come slowly, for httpx and httpcore: in threads and under asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ldfi.fit.slow import Pace, Slow, body_length, dripping, dripping_async


class SlowBody:
    """What is read of a body at its pace. Whoever waits longer for a piece than ``patience``
    (seconds) gets what ``late`` makes."""

    def __init__(
        self, body: Any, pace: Pace, patience: float | None, late: Callable[[], Exception]
    ) -> None:
        self._body = body
        self._pace = pace
        self._patience = patience
        self._late = late

    def __iter__(self) -> Iterator[bytes]:
        """Read it, holding up the thread."""
        return dripping(self._body, self._pace, self._wait)

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Read it, while other tasks run."""
        return dripping_async(self._body, self._pace, self._wait_async)

    def close(self) -> None:
        """Close the body."""
        self._body.close()

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()

    def _wait(self, seconds: float) -> None:
        time.sleep(self._bearable(seconds))
        self._give_up(seconds)

    async def _wait_async(self, seconds: float) -> None:
        await asyncio.sleep(self._bearable(seconds))
        self._give_up(seconds)

    def _bearable(self, seconds: float) -> float:
        return max(0.0, seconds if self._patience is None else min(seconds, self._patience))

    def _give_up(self, seconds: float) -> None:
        if self._patience is not None and seconds > self._patience:
            raise self._late()


def _plain(header: tuple[bytes, bytes]) -> tuple[str, str]:
    name, value = header
    return name.decode("latin-1").lower(), value.decode("latin-1")


def slowed(
    slow: Slow,
    status: int,
    headers: list[tuple[bytes, bytes]],
    body: Any,
    patience: float | None,
    late: Callable[[], Exception],
) -> SlowBody | None:
    """Make the body of an answer whose headers have come slow; None where it stays as it is."""
    pace = slow.begun(lambda: body_length(status, dict(map(_plain, headers))))
    return None if pace is None else SlowBody(body, pace, patience, late)
