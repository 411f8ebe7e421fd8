"""Injection points by hand: a decorator and a context manager for anything that can fail.

    @fit.point("cache", "get", peer="homecache")
    async def cached_home(device: str) -> Home | None: ...

    with fit.point("db", "SELECT", peer="recordsdb", template="/marks"):
        rows = cursor.execute(...)

An ``error`` raises :class:`fit.errors.InjectedFault`; a ``delay`` waits for its full length, for
a function has no timeout that could be seen from outside, and cancelling it cancels the wait.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any, TypeVar

from opentelemetry import trace

from fit import runtime
from fit.context import Injection
from fit.errors import InjectedFault
from fit.points import Point

Function = TypeVar("Function", bound=Callable[..., Any])


class point:  # noqa: N801 - used as a decorator
    """An injection point: ``kind``, ``operation``, ``peer`` and ``template`` make its name."""

    def __init__(self, kind: str, operation: str, *, peer: str = "", template: str = "") -> None:
        self._parts = (kind, operation, peer, template)
        self._stack = ExitStack()

    def __call__(self, function: Function) -> Function:
        """Make every call of ``function`` pass this point."""
        parts = self._parts
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                async with _again(parts):
                    return await function(*args, **kwargs)

            return call_async  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _again(parts):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    def __enter__(self) -> None:
        injection = self._open()
        if injection is not None:
            if injection.kind == "delay":
                time.sleep(injection.delay_ms / 1000)
            else:
                self._fail()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    async def __aenter__(self) -> None:
        injection = self._open()
        if injection is not None:
            if injection.kind == "delay":
                try:
                    await asyncio.sleep(injection.delay_ms / 1000)
                except BaseException as error:
                    runtime.gave_up(error)
                    self._stack.__exit__(type(error), error, error.__traceback__)
                    raise
            else:
                self._fail()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def _open(self) -> Injection | None:
        active = runtime.active()
        if active is None:
            return None
        try:
            kind, operation, peer, template = self._parts
            span = self._stack.enter_context(_span(f"{kind} {operation} {peer}".rstrip()))
            name = str(Point(active.service, kind, operation, peer, template))
            return runtime.enter(active, name, span)
        except Exception:
            runtime.swallow()
            return None

    def _fail(self) -> None:
        error = InjectedFault(f"fault injected at {' '.join(filter(None, self._parts))}")
        self._stack.__exit__(InjectedFault, error, None)
        raise error


def _again(parts: tuple[str, str, str, str]) -> point:
    kind, operation, peer, template = parts
    return point(kind, operation, peer=peer, template=template)


def _span(name: str) -> AbstractContextManager[trace.Span]:
    return trace.get_tracer("fit").start_as_current_span(name)
