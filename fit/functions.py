"""Injection points by hand: a decorator and a context manager for anything that can fail.

    @fit.point("cache", "get", peer="homecache")
    async def cached_home(device: str) -> Home | None: ...

    with fit.point("db", "SELECT", peer="recordsdb", template="/marks"):
        rows = cursor.execute(...)

Functions, coroutines, generators and asynchronous generators can be decorated. Each call has a
span of its own, with or without an experiment: nothing else would tell the lineage of the point.
A generator's span lasts until it ends, and is current only while the generator runs.

An ``error`` raises :class:`ldfi.fit.protocol.errors.InjectedFault`; a ``delay`` waits for its full
length, for a function has no timeout that could be seen from outside, and cancelling it cancels the
wait. A generator is hit before its first item. What else can go wrong in there only its author
knows, and says so: ``raises=(KeyError, HomeGone)`` makes ``exception:KeyError`` and
``exception:HomeGone`` possible. A class is called with the words ``fault injected``; where it wants
other arguments, a function that makes the exception stands in its place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode

from ldfi.fit import error, inject, reporting, runtime
from ldfi.fit.delay import delay
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.errors import InjectedFault
from ldfi.fit.protocol.points import Point

Function = TypeVar("Function", bound=Callable[..., Any])
Raisable = type[Exception] | Callable[[], Exception]


class _Parts(NamedTuple):
    """What makes a point's name, and what can be raised there."""

    kind: str
    operation: str
    peer: str = ""
    template: str = ""
    raises: tuple[Raisable, ...] = ()


class point:  # noqa: N801 - used as a decorator
    """An injection point: ``kind``, ``operation``, ``peer`` and ``template`` make its name.

    ``raises``: the exceptions that a call there can end with, besides an injected ``error``.
    """

    def __init__(
        self,
        kind: str,
        operation: str,
        *,
        peer: str = "",
        template: str = "",
        raises: Iterable[Raisable] = (),
    ) -> None:
        reporting.reaches(kind)
        self._parts = _Parts(kind, operation, peer, template, tuple(raises))
        self._visits: list[_Visit] = []

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
        self._enter(visit)

    async def __aenter__(self) -> None:
        visit = _open(self._parts)
        await _pass_async(visit, self._parts)
        self._enter(visit)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        around = _open_visits.get()
        mine = [at for at, visit in enumerate(around) if visit in self._visits]
        if mine:
            visit = around[mine[-1]]
            _open_visits.set(around[: mine[-1]])
            self._visits.remove(visit)
            _close(visit, error)
        elif self._visits:  # left in another context than it was entered in
            _end(self._visits.pop(), error)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def _enter(self, visit: _Visit | None) -> None:
        visit = visit or _Visit()
        self._visits.append(visit)
        _open_visits.set((*_open_visits.get(), visit))


@dataclass(frozen=True, slots=True, eq=False)
class _Visit:
    """One call: its span, and the token that makes the one before it current again. Neither is
    there where ``fit`` is off."""

    span: trace.Span | None = None
    token: Token[context.Context] | None = None


_open_visits: ContextVar[tuple[_Visit, ...]] = ContextVar("fit_open_visits", default=())
"""Of the ``with`` blocks around us, innermost last: one ``point`` may be in use many times over.

A host may leave a block in another context than it entered it in (a synchronous dependency of
FastAPI that yields is entered and left in threads of their own). Then this tells nothing, and the
point itself knows what is open."""


def _start(parts: _Parts) -> trace.Span | None:
    """Start the span of a call; None where ``fit`` is not installed, or fails."""
    active = runtime.active()
    if active is None:
        return None
    try:
        return trace.get_tracer("fit").start_span(
            f"{parts.kind} {parts.operation} {parts.peer}".rstrip(),
            attributes={attributes.POINT: _name(active.service, parts)},
        )
    except Exception:
        runtime.swallow()
        return None


def _open(parts: _Parts) -> _Visit | None:
    span = _start(parts)
    return _Visit(span, context.attach(trace.set_span_in_context(span))) if span else None


def _close(visit: _Visit | None, failure: BaseException | None) -> None:
    if visit is not None:
        if visit.token is not None:
            context.detach(visit.token)
        _end(visit, failure)


def _end(visit: _Visit, failure: BaseException | None) -> None:
    """End a call's span as ``trace.use_span`` does. It may be current in a context not ours."""
    span = visit.span
    if span is None:
        return
    try:
        if isinstance(failure, Exception):
            span.record_exception(failure)
            span.set_status(Status(StatusCode.ERROR, f"{type(failure).__name__}: {failure}"))
        span.end()
    except Exception:
        runtime.swallow()


def _pass(visit: _Visit | None, parts: _Parts) -> None:
    if visit is not None and armed():
        try:
            inject.through(_SITE, visit.span, parts)
        except BaseException as failure:
            _close(visit, failure)
            raise


async def _pass_async(visit: _Visit | None, parts: _Parts) -> None:
    if visit is not None and armed():
        try:
            fault = inject.through_async(_SITE, visit.span, parts)
            if fault is not None:
                await fault
        except BaseException as failure:
            _close(visit, failure)
            raise


def _of(parts: _Parts) -> point:
    """Make one more point of the same parts: every call of a decorated function has its own."""
    made = point.__new__(point)
    made._parts = parts
    made._visits = []
    return made


def _function(parts: _Parts, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _of(parts):
            return function(*args, **kwargs)

    return call


def _coroutine(parts: _Parts, function: Any) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        async with _of(parts):
            return await function(*args, **kwargs)

    return call


def _generator(parts: _Parts, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        span = _start(parts)
        step, given = generator.send, None
        try:
            with _within(span):
                if armed():
                    inject.through(_SITE, span, parts)
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
            _end(_Visit(span), None)

    return call


def _async_generator(parts: _Parts, function: Any) -> Any:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        span = _start(parts)
        step, given = generator.asend, None
        try:
            with _within(span):
                fault = inject.through_async(_SITE, span, parts) if armed() else None
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
            _end(_Visit(span), None)

    return call


def _within(span: trace.Span | None) -> AbstractContextManager[Any]:
    return nullcontext() if span is None else trace.use_span(span)


@lru_cache(maxsize=1024)
def _name(service: str, parts: _Parts) -> str:
    return str(Point(service, *parts[:4]))


def _effect(injection: Injection, parts: _Parts) -> Effect | None:
    if injection.kind == "error":
        where = " ".join(filter(None, parts[:4]))
        return Effect(failure=InjectedFault(f"{error.TEXT} at {where}"))
    if injection.kind == "delay":
        return delay(injection.delay_ms)
    for each in parts.raises:
        made = each(error.TEXT) if isinstance(each, type) else each()
        if injection.kind == f"exception:{type(made).__name__}":
            return Effect(failure=error.marked(made))
    return None


_SITE = Site(_name, _effect)
