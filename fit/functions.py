"""Injection points by hand: a decorator and a context manager for anything that can fail.

    @fit.point("cache", "get", peer="homecache")
    async def cached_home(device: str) -> Home | None: ...

    with fit.point("db", "SELECT", peer="recordsdb", template="/marks"):
        rows = cursor.execute(...)

Functions, coroutines, generators and asynchronous generators can be decorated. Each call has a
span of its own, with or without an experiment: nothing else would tell the lineage of the point.
A generator's span lasts until it ends, and is current only while the generator runs.

An ``error`` raises :class:`ldfi.fit.errors.InjectedFault`; a ``delay`` waits for its full length,
for a function has no timeout that could be seen from outside, and cancelling it cancels the wait. A
generator is hit before its first item.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from opentelemetry import trace

from ldfi.fit import attributes, error, passage, runtime
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.errors import InjectedFault
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import Point
from ldfi.fit.strike import Strike

Function = TypeVar("Function", bound=Callable[..., Any])
Parts = tuple[str, str, str, str]


class point:  # noqa: N801 - used as a decorator
    """An injection point: ``kind``, ``operation``, ``peer`` and ``template`` make its name."""

    def __init__(self, kind: str, operation: str, *, peer: str = "", template: str = "") -> None:
        self._parts = (kind, operation, peer, template)

    def __call__(self, function: Function) -> Function:
        """Make every call of ``function`` pass this point."""
        if inspect.isasyncgenfunction(function):
            wrap = _async_generator
        elif inspect.iscoroutinefunction(function):
            wrap = _coroutine
        elif inspect.isgeneratorfunction(function):
            wrap = _generator
        else:
            wrap = _function
        return functools.wraps(function)(wrap(self._parts, function))  # type: ignore[return-value]

    def __enter__(self) -> None:
        visit = _open(self._parts)
        _pass(visit, self._parts)
        _open_visits.set((*_open_visits.get(), visit))

    async def __aenter__(self) -> None:
        visit = _open(self._parts)
        await _pass_async(visit, self._parts)
        _open_visits.set((*_open_visits.get(), visit))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        *outer, visit = _open_visits.get()
        _open_visits.set(tuple(outer))
        _close(visit, error)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


class _Visit(NamedTuple):
    """One call: its span, and what made that the current one."""

    span: trace.Span
    scope: AbstractContextManager[trace.Span]


_open_visits: ContextVar[tuple[_Visit | None, ...]] = ContextVar("fit_open_visits", default=())
"""Of the ``with`` blocks around us, innermost last: one ``point`` may be in use many times over."""


def _start(parts: Parts) -> trace.Span | None:
    """Start the span of a call; None where ``fit`` is not installed, or fails."""
    active = runtime.active()
    if active is None:
        return None
    try:
        kind, operation, peer, _ = parts
        return trace.get_tracer("fit").start_span(
            f"{kind} {operation} {peer}".rstrip(),
            attributes={attributes.POINT: _name(active.service, parts)},
        )
    except Exception:
        runtime.swallow()
        return None


def _open(parts: Parts) -> _Visit | None:
    span = _start(parts)
    if span is None:
        return None
    scope = trace.use_span(span, end_on_exit=True)
    scope.__enter__()
    return _Visit(span, scope)


def _close(visit: _Visit | None, failure: BaseException | None) -> None:
    if visit is not None:
        traceback = None if failure is None else failure.__traceback__
        try:
            visit.scope.__exit__(type(failure) if failure else None, failure, traceback)
        except BaseException as raised:
            if raised is not failure:
                runtime.swallow()


def _pass(visit: _Visit | None, parts: Parts) -> None:
    if visit is not None and armed():
        try:
            passage.through(_SITE, visit.span, parts)
        except BaseException as failure:
            _close(visit, failure)
            raise


async def _pass_async(visit: _Visit | None, parts: Parts) -> None:
    if visit is not None and armed():
        try:
            fault = passage.through_async(_SITE, visit.span, parts)
            if fault is not None:
                await fault
        except BaseException as failure:
            _close(visit, failure)
            raise


def _function(parts: Parts, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with point(parts[0], parts[1], peer=parts[2], template=parts[3]):
            return function(*args, **kwargs)

    return call


def _coroutine(parts: Parts, function: Any) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        async with point(parts[0], parts[1], peer=parts[2], template=parts[3]):
            return await function(*args, **kwargs)

    return call


def _generator(parts: Parts, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        span = _start(parts)
        step, given = generator.send, None
        try:
            with _within(span):
                if armed():
                    passage.through(_SITE, span, parts)
            while True:
                with _within(span):
                    try:
                        item = step(given)
                    except StopIteration as end:
                        return end.value
                try:
                    step, given = generator.send, (yield item)
                except GeneratorExit:
                    with _within(span):
                        generator.close()
                    raise
                except BaseException as thrown:
                    step, given = generator.throw, thrown
        finally:
            _end(span)

    return call


def _async_generator(parts: Parts, function: Any) -> Any:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        span = _start(parts)
        step, given = generator.asend, None
        try:
            with _within(span):
                fault = passage.through_async(_SITE, span, parts) if armed() else None
                if fault is not None:
                    await fault
            while True:
                with _within(span):
                    try:
                        item = await step(given)
                    except StopAsyncIteration:
                        return
                try:
                    step, given = generator.asend, (yield item)
                except GeneratorExit:
                    with _within(span):
                        await generator.aclose()
                    raise
                except BaseException as thrown:
                    step, given = generator.athrow, thrown
        finally:
            _end(span)

    return call


def _within(span: trace.Span | None) -> AbstractContextManager[Any]:
    return nullcontext() if span is None else trace.use_span(span)


def _end(span: trace.Span | None) -> None:
    if span is not None:
        span.end()


@lru_cache(maxsize=1024)
def _name(service: str, parts: Parts) -> str:
    return str(Point(service, *parts))


def _strike(injection: Injection, parts: Parts) -> Strike:
    if injection.kind == "error":
        return Strike(failure=InjectedFault(f"{error.TEXT} at {' '.join(filter(None, parts))}"))
    return delay(injection.delay_ms)


_SITE = Site(_name, _strike)
