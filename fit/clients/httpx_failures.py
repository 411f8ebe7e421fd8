"""What httpcore raises when a connection fails, in threads and under asyncio, and from what.

A real failure climbs through the layers of a library, and each leaves its mark on the exception.
These have the same types and messages, down to the operating system's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import httpcore

from ldfi.fit import error
from ldfi.fit.answers import Reply


class HttpxFailures(NamedTuple):
    """How connections fail in one of httpcore's backends."""

    refused: Callable[[str, int], Exception]
    """(host, port)"""
    reset: Callable[[], Exception]
    late: Callable[[], Exception]


class Cut:
    """A body that ends before its announced length, as h11 tells of it."""

    def __init__(self, answer: Reply) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield self._answer.body
        raise self._failure()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._answer.body
        raise self._failure()

    def _failure(self) -> Exception:
        message = (
            "peer closed connection without sending complete message body "
            f"(received {len(self._answer.body)} bytes, expected {self._answer.length})"
        )
        return error.marked(httpcore.RemoteProtocolError(message))


def _chain(kind: type[Exception], *causes: BaseException) -> Exception:
    """Chain a failure to its causes, the nearest first, and say what that says.

    httpcore's pools raise it ``from None``: what it came of is its context, and not shown.
    """
    for outer, inner in pairwise(causes):
        outer.__cause__ = inner
    failure = error.marked(kind(str(causes[0])))
    failure.__context__ = causes[0]
    failure.__suppress_context__ = True
    return failure


def _late(kind: type[BaseException], message: str) -> Callable[[], Exception]:
    return lambda: _chain(httpcore.ReadTimeout, kind(message))


def _refused(_host: str, _port: int) -> Exception:
    return _chain(httpcore.ConnectError, error.refused())


def _refused_async(host: str, port: int) -> Exception:
    attempts = OSError("All connection attempts failed")
    return _chain(httpcore.ConnectError, attempts, error.refused_at((host, port)))


def _reset_async() -> Exception:
    import anyio  # what httpcore has under asyncio; in threads it does without

    return _chain(httpcore.ReadError, anyio.BrokenResourceError(), error.reset())


SYNC: Final = HttpxFailures(
    _refused,
    lambda: _chain(httpcore.ReadError, error.reset()),
    _late(TimeoutError, "timed out"),
)
ASYNC: Final = HttpxFailures(_refused_async, _reset_async, _late(TimeoutError, ""))
