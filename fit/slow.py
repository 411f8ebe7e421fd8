"""The fault ``slow``: the answer's headers come at once, and its body over a length of time.

A dependency that swaps, or a line that is full, goes on sending, little by little. A timeout that
starts anew with each piece does not end that; only one for the whole call does. So the real call is
made, and what comes of its body is passed on in as many equal pieces as there are of :data:`GAP` in
the length, ten at least, the last of them when the length is over. Where nobody announced how long
the body is, what comes first is passed on so, and what comes after that when the length is over.

Nothing is kept but what was read at once. Whether there is a body is known when the headers have
come; the proof is written then, for a call without one was not hit.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Final

from ldfi.fit import runtime
from ldfi.fit.clock import steady

GAP: Final = 0.1
"""Seconds between two pieces, at most, as long as the body has a byte for each."""

_FEWEST: Final = 10


@dataclass(slots=True)
class Pace:
    """When which byte of a body may come, in seconds after its headers.

    ``length``: bytes of the body, None where nobody has announced it.
    """

    seconds: float
    length: int | None
    began: float

    def due(self, at: int) -> float:
        """Return how many seconds are left until byte number ``at`` comes; 0 or less where it may.

        The first is number 0.
        """
        length = self.length or 0
        if at >= length:
            return self.began + self.seconds - steady()
        pieces = self._pieces(length)
        which = at * pieces // length + 1
        return self.began + self.seconds * which / pieces - steady()

    def size(self, at: int, there: int) -> int:
        """Return how many of the bytes that are ``there`` come at once, from number ``at`` on."""
        if self.length is None:
            self.length = there
        if at >= self.length:
            return there
        pieces = self._pieces(self.length)
        end = -(-(at * pieces // self.length + 1) * self.length // pieces)
        return min(end - at, there)

    def cut(self, at: int, chunk: bytes) -> Iterator[bytes]:
        """Cut what has come, from byte number ``at`` on, into what comes at once."""
        start = 0
        while start < len(chunk):
            size = self.size(at + start, len(chunk) - start)
            yield chunk[start : start + size]
            start += size

    def _pieces(self, length: int) -> int:
        return min(max(_FEWEST, math.ceil(self.seconds / GAP)), length)


class Slow:
    """What is to happen to a call once its answer's headers have come."""

    def __init__(self, seconds: float, write: Callable[[], bool], end: Callable[[], None]) -> None:
        """``write`` writes the proof, and tells whether the fault takes effect; ``end`` comes
        last."""
        self._seconds = seconds
        self._write = write
        self._end = end

    def begun(self, length: Callable[[], int | None]) -> Pace | None:
        """Take note that the headers have come. ``length`` reads of them how long the body is (0:
        there is none; None: not announced).

        Returns the pace at which it comes; None where nothing happens. Raises nothing.
        """
        try:
            read = length()
            if read == 0 or not self._write():
                return None
            return Pace(self._seconds, read, steady())
        except Exception:
            runtime.swallow()
            return None
        finally:
            self.over()

    def over(self) -> None:
        """Take note that nothing more is to be written: also where no answer came. Raises
        nothing."""
        end, self._end = self._end, _nothing
        try:
            end()
        except Exception:
            runtime.swallow()


def _nothing() -> None:
    """End nothing: it has ended."""


def body_length(status: int, headers: Any) -> int | None:
    """Return the length of an answer's body, not of one to HEAD; 0 without one, None where it is
    not announced. ``headers``: names in lower case → values."""
    if status in (204, 304) or 100 <= status < 200:
        return 0
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return None
    announced = headers.get("content-length", "")
    return int(announced) if announced.isascii() and announced.isdigit() else None


def dripping(body: Any, pace: Pace, wait: Callable[[float], None]) -> Iterator[bytes]:
    """Pass on what comes of a body, at its pace. ``wait``: for so many seconds, or until the
    caller's own patience is over, which raises."""
    at = 0
    with closing(body):
        for chunk in body:
            for piece in pace.cut(at, chunk):
                wait(pace.due(at))
                yield piece
                at += len(piece)
        wait(pace.due(at))


async def dripping_async(
    body: Any, pace: Pace, wait: Callable[[float], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """Do what :func:`dripping` does while other tasks run."""
    at = 0
    async with aclosing(body):
        async for chunk in body:
            for piece in pace.cut(at, chunk):
                await wait(pace.due(at))
                yield piece
                at += len(piece)
        await wait(pace.due(at))
