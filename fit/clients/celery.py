"""Celery's results, and the spans of its messages; the messages themselves are kombu's.

The point is the wait for a result, beneath ``AsyncResult.get``. ``delay`` and ``timeout`` end with
celery.exceptions.TimeoutError when the call's ``timeout`` is over, as for a worker that is late or
gone. ``error`` is a backend at which nothing listens. No OpenTelemetry span is the waiting itself:
the point is seen where a fault hits it, in a span of ``fit``'s own.

OpenTelemetry's instrumentation ends the span of a message only once that is published, and of a
task that this process knows. Where publishing fails the span is never exported, and stays the
current one of whatever comes next in the request. So it is ended here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from celery.app.base import Celery
from celery.backends.asynchronous import AsyncBackendMixin
from celery.backends.base import SyncBackendMixin
from celery.exceptions import TimeoutError as Late
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from ldfi.fit import error, inject, patching
from ldfi.fit.clients.kombu import refused_by_redis
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.points import message_point


def patch() -> None:
    """Make every wait for a result an injection point, and have spans of messages end."""
    patching.put(Celery, "send_task", _ending)
    for backend in (AsyncBackendMixin, SyncBackendMixin):
        patching.put(backend, "wait_for_pending", _waiting)


def _ending(original: Any) -> Any:
    def send_task(app: Any, *call: Any, **options: Any) -> Any:
        before, failure = inject.current(), None
        try:
            return original(app, *call, **options)
        except Exception as raised:
            failure = raised
            raise
        finally:
            if inject.current() is not before:
                with suppress(Exception):
                    _end(before, failure)

    return send_task


def _end(before: Any, failure: Exception | None) -> None:
    """End the span of a message that is still the current one, and leave it."""
    span: Any = trace.get_current_span()
    if getattr(span, "kind", None) is SpanKind.PRODUCER and span.is_recording():
        if failure is not None:
            span.record_exception(failure)
            span.set_status(StatusCode.ERROR, str(failure))
        span.end()
    otel_context.attach(before)


def _waiting(original: Any) -> Any:
    def wait_for_pending(backend: Any, result: Any, *call: Any, **options: Any) -> Any:
        if armed():
            inject.through(_RESULT, None, backend, options.get("timeout"))
        return original(backend, result, *call, **options)

    return wait_for_pending


def _name(service: str, _backend: Any, _patience: float | None) -> str:
    return message_point(service, "receive", "celery", "results")


def _effect(injection: Injection, backend: Any, patience: float | None) -> Effect | None:
    if injection.kind == "error":
        return Effect(failure=_nobody(backend))
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, _late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, _late)
    return None


def _late() -> Any:
    return error.marked(Late("The operation timed out."), TimeoutError())


def _nobody(backend: Any) -> Any:
    refused = error.connecting("refused")
    given = getattr(backend, "connparams", {})
    if "port" not in given:
        return refused
    return refused_by_redis(f"{given['host']}:{given['port']}", refused)


_RESULT: Final = Site(_name, _effect)
