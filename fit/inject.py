"""How a call passes an injection point: the one path through every client in ``fit.clients``.

A client's wrapper looks like this, and nothing of ours runs in a request without a context::

    def send(self, request):
        if armed():
            answer = inject.through(SITE, None, self, request)
            if answer is not None:
                return answer
        return original(self, request)

Whatever goes wrong in here is swallowed and the call goes through: a fault of ours must never
become a fault of the host's. The failure is therefore built *before* the proof that it fired is
written, so that no span tells of a failure that could not be made.

The proof goes on the current span where that is the call's own (CLIENT or PRODUCER). Where the
library is not instrumented with OpenTelemetry, the call that is hit gets a CLIENT span of ours,
named by its point: a fault that cannot be seen afterwards proves nothing. Where spans are not
recorded at all, nothing is injected, unless the runtime has a witness.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final, NamedTuple

from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode

from ldfi.fit import contextless_calls, request, runtime, send_mark
from ldfi.fit.delay import hang, hang_async
from ldfi.fit.effect import Effect
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.context import ENTRY, FailureContext, Injection
from ldfi.fit.protocol.kinds import KINDS
from ldfi.fit.protocol.native_kinds import native
from ldfi.fit.slow import Slow

# Occurrence: a fault that hits the first calls of a request and lets later ones through.
#
# That is how a caller's retries are tried: ``error:2`` fails twice, and a caller that tries three
# times gets its answer. Calls are counted for each request (trace) and point, in one process: the
# replicas of a service do not know of each other. Only faults that name a number are counted.

REMEMBERED: Final = 4096
"""Requests and points counted at once. The longest untouched are forgotten first."""


class Occurrences:
    """How often each request has reached each point. Safe in threads."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._counts: OrderedDict[tuple[int, str], int] = OrderedDict()
        self._lock = Lock()

    def admits(self, trace_id: int, point: str, first: int) -> bool:
        """Count this call; whether it is among the ``first``."""
        key = (trace_id, point)
        with self._lock:
            count = self._counts.pop(key, 0) + 1
            self._counts[key] = count
            if len(self._counts) > self._remembered:
                self._counts.popitem(last=False)
        return count <= first


BAGGAGE: Final = next(iter(baggage.set_baggage("fit", "", Context())))
"""Under which key OpenTelemetry's context holds the baggage."""

SPAN: Final = next(iter(trace.set_span_in_context(trace.INVALID_SPAN, Context())))
"""Under which key it holds the current span."""

_NOTHING: Final[dict[str, object]] = {}
_CALLING: Final = frozenset({SpanKind.CLIENT, SpanKind.PRODUCER})
_occurrences = Occurrences()


def _reader() -> Callable[[], Context]:
    """Find the quickest way to read the current context: every call of the host pays for it.

    OpenTelemetry's own function goes through two more; where its insides have changed, it is used.
    """
    held = getattr(getattr(otel_context, "_RUNTIME_CONTEXT", None), "_current_context", None)
    return held.get if isinstance(held, ContextVar) else otel_context.get_current


current: Final = _reader()


def _current_span(*_: object) -> None:
    """Return None: the current span is the call's own."""


class Site(NamedTuple):
    """What a client knows of its injection point. Its functions are given the call's arguments."""

    name: Callable[..., str]
    """(service, *arguments) → the point's name."""
    effect: Callable[..., Effect | None]
    """(injection, *arguments) → what to do to this call; None for a kind that it cannot have. It
    touches nothing of the host's: in the control arm it only tells whether the fault would fire.
    Only who says ``slow`` is given a :class:`~ldfi.fit.slow.Slow`, in either arm."""
    span: Callable[..., Span | None] = _current_span
    """(*arguments) → the call's span where its instrumentation never makes it the current one."""


def armed(site: Site | None = None, *arguments: Any) -> bool:
    """Return whether the current request carries a context: all that is asked in one that does
    not. ``site``: of a library whose spans are never the current ones, and the call's arguments."""
    held = current()
    if SPAN not in held and (site is None or not _has_span(site, arguments)):
        contextless_calls.note()
    return ENTRY in held.get(BAGGAGE, _NOTHING)  # type: ignore[operator] # it is a dict


def _has_span(site: Site, arguments: tuple[Any, ...]) -> bool:
    try:
        return site.span(*arguments) is not None
    except Exception:
        runtime.swallow()
        return False


class _Firing(NamedTuple):
    effect: Effect
    span: Span
    ours: bool

    def end(self) -> None:
        if self.ours:
            if self.effect.failure is not None:
                self.span.set_status(StatusCode.ERROR)
            self.span.end()

    def raised(self) -> BaseException | None:
        failure = self.effect.failure
        return failure if isinstance(failure, BaseException) and not self.effect.returned else None


def through(site: Site, span: Span | None, *arguments: Any) -> Any:
    """Pass a point. Returns what to answer in place of the call, or None to make the call.

    Raises the failure that was injected where that is an exception. ``span`` is the call's span
    where it is not the current one.
    """
    try:
        firing = _decide(site, span, arguments)
        if firing is None:
            return None
        try:
            hang(firing.effect.seconds)
        finally:
            firing.end()
        raised = firing.raised()
    except Exception:
        runtime.swallow()
        return None
    if raised is not None:
        raise raised
    return firing.effect.failure


def through_async(
    site: Site, span: Span | None, *arguments: Any
) -> Coroutine[Any, Any, Any] | None:
    """Do what :func:`through` does, for a coroutine: None to make the call, else what to await.

    Other tasks run while it hangs, and it can be cancelled. Only asyncio is known; under another
    event loop nothing is injected.
    """
    try:
        firing = _decide(site, span, arguments, asynchronous=True)
        return None if firing is None else _carry_out_async(firing)
    except Exception:
        runtime.swallow()
        return None


async def _carry_out_async(firing: _Firing) -> Any:
    try:
        try:
            await hang_async(firing.effect.seconds, firing.span)
        finally:
            firing.end()
        raised = firing.raised()
    except Exception:
        runtime.swallow()
        return None
    if raised is not None:
        raise raised
    return firing.effect.failure


def _decide(
    site: Site, span: Span | None, arguments: tuple[Any, ...], *, asynchronous: bool = False
) -> _Firing | None:
    active = runtime.active()
    carried: Any = current()[BAGGAGE]
    value = carried.get(ENTRY)
    if active is None or value is None:
        return None
    context = active.recognize(value)
    if context is None:
        return None
    name = site.name(active.service, *arguments)
    witness = active.witness
    if witness is not None and context.expires > time.time():
        witness.on_passed(name)
    injection = context.at(name)
    if injection is None:
        return None
    if asynchronous:
        asyncio.get_running_loop()  # raises under another event loop
    span = span or site.span(*arguments)
    found = span or trace.get_current_span()
    ours = span is None and getattr(found, "kind", None) not in _CALLING
    if ours:
        found = trace.get_tracer("fit").start_span(name, kind=SpanKind.CLIENT)
    try:
        seen = witness is not None or found.is_recording()
        hit = _Hit(found, context, injection, name)
        effect = _fire(site, hit, arguments) if seen else None
        if effect is not None and effect.slow:
            slow = Slow(effect.seconds, lambda: _slow(hit), lambda: _end(found, ours))
            return _Firing(Effect(failure=slow), found, ours=False)
        if effect is not None:
            _tell(hit)
    except BaseException:
        _end(found, ours)
        raise
    if effect is None:
        _end(found, ours)
        return None
    return _Firing(effect, found, ours)


def _end(span: Span, ours: bool) -> None:
    if ours:
        span.end()


class _Hit(NamedTuple):
    """A call that a fault is meant for, and its span."""

    span: Span
    context: FailureContext
    injection: Injection
    name: str


def _fire(site: Site, hit: _Hit, arguments: tuple[Any, ...]) -> Effect | None:
    """Write what happens, or would happen, on the span; None where nothing does."""
    effect: Effect | None = None
    injection = hit.injection
    if injection.kind not in KINDS:
        effect = site.effect(injection, *arguments) if native(injection.kind, hit.name) else None
        if effect is None:
            return None  # nothing is claimed, in neither arm
        if effect.slow:
            return effect  # nor is it yet
    if not _fires(hit):
        return None
    effect = effect or site.effect(injection, *arguments)
    _prove(hit)
    return effect


def _slow(hit: _Hit) -> bool:
    """Do that for a call whose body comes slowly, when its headers have come."""
    if not _fires(hit):
        return False
    _prove(hit)
    _tell(hit)
    return True


def _fires(hit: _Hit) -> bool:
    """Count the call, and tell whether anything happens; where nothing does, write what would."""
    span, injection = hit.span, hit.injection
    span.set_attribute(attributes.POINT, hit.name)
    if request.over(span):
        span.set_attribute(attributes.OUTLIVED, True)
        return False
    if hit.context.expires <= time.time():
        span.set_attribute(attributes.EXPIRED, True)
        return False
    trace_id = span.get_span_context().trace_id
    if injection.first and not _occurrences.admits(trace_id, hit.name, injection.first):
        span.set_attribute(attributes.LET_THROUGH, True)
        return False
    _leave_mark(hit)
    if hit.context.arm == "control":
        span.set_attribute(attributes.WOULD_FIRE, injection.kind)
        return False
    return True


def _leave_mark(hit: _Hit) -> None:
    """Have it leave the process that something is about to fire here; a witness sees it anyway."""
    active = runtime.active()
    if active is not None and active.witness is None:
        send_mark.leave(hit.context.arm, hit.context.experiment, hit.injection.kind, hit.name)


def _prove(hit: _Hit) -> None:
    hit.span.set_attribute(attributes.FIRED, hit.injection.kind)
    proof = {
        attributes.FIRED: hit.injection.kind,
        attributes.EXPERIMENT: hit.context.experiment,
        attributes.POINT: hit.name,
    }
    hit.span.add_event(attributes.EVENT, proof)


def _tell(hit: _Hit) -> None:
    active = runtime.active()
    if active is not None and active.witness is not None:
        active.witness.on_fired(hit.name, hit.injection.kind)
