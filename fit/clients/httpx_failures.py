"""What httpcore raises when a connection fails, in threads and under asyncio, and from what.

A real failure climbs through the layers of a library, and each leaves its mark on the exception.
These have the same types and messages, down to the operating system's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from ldfi.fit import error
from ldfi.fit.answers import Reply
from ldfi.fit.protocol.kinds import FaultKind


class HttpxFailures(NamedTuple):
    """How connections fail in one of the backends of ``core``: httpcore, or httpcore2."""

    core: Any
    unconnected: Callable[[FaultKind, tuple[str, int]], Exception]
    """(kind, (host, port))"""
    reset: Callable[[], Exception]
    late: Callable[[], Exception]


class Cut:
    """A body that ends before its announced length, as h11 tells of it."""

    def __init__(self, answer: Reply, core: Any) -> None:
        self._answer = answer
        self._core = core

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
        failure: Exception = error.marked(self._core.RemoteProtocolError(message))
        return failure


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


def _unconnected_async(core: Any, kind: FaultKind, address: tuple[str, int]) -> Exception:
    attempts = error.CONNECTING[kind]["python"].get("anyio")
    tried = [OSError(attempts)] if attempts else []
    return _chain(core.ConnectError, *tried, error.connecting_at(kind, address))


def _reset_async(core: Any) -> Exception:
    import anyio  # what httpcore has under asyncio; in threads it does without

    return _chain(core.ReadError, anyio.BrokenResourceError(), error.reset())


def in_threads(core: Any) -> HttpxFailures:
    """Return how connections fail that block."""
    return HttpxFailures(
        core,
        lambda kind, _address: _chain(core.ConnectError, error.connecting(kind)),
        lambda: _chain(core.ReadError, error.reset()),
        lambda: _chain(core.ReadTimeout, TimeoutError("timed out")),
    )


def in_tasks(core: Any) -> HttpxFailures:
    """Return how connections fail under asyncio."""
    return HttpxFailures(
        core,
        partial(_unconnected_async, core),
        partial(_reset_async, core),
        lambda: _chain(core.ReadTimeout, TimeoutError("")),
    )
