"""gRPC's client, asyncio: all four kinds of call, as the innermost interceptor of a channel.

Only channels that have interceptors, as OpenTelemetry's instrumentation gives them, become points;
others are left exactly as they are. ``error`` is AioRpcError with status UNAVAILABLE, ``delay`` and
``timeout`` end with DEADLINE_EXCEEDED at the call's timeout: the call that is handed out fails when
it is awaited or read, as gRPC's own does.
"""

from __future__ import annotations

from typing import Any

import grpc
from grpc import aio
from grpc.aio import _channel

from ldfi.fit import hosts, inject, patching
from ldfi.fit.clients.grpc import addressed, ending, name
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection


def patch() -> None:
    """Make the calls of every channel that is opened from now on injection points."""
    patching.put(_channel.Channel, "__init__", _with_ours)


def _with_ours(original: Any) -> Any:
    def opened(
        channel: Any, target: Any, options: Any, credentials: Any, compression: Any, given: Any
    ) -> None:
        interceptors = [*given, *(each(target) for each in _INTERCEPTORS)] if given else given
        original(channel, target, options, credentials, compression, interceptors)

    return opened


def _pass(failed: Any, target: str, continuation: Any, details: Any, request: Any) -> Any:
    fault = None
    if armed():
        onward = hosts.guarded(addressed, target, details.metadata)
        if onward is not None:
            details = details._replace(metadata=aio.Metadata(*onward))
        fault = inject.through_async(_SITE, None, details.method, details.timeout, target)
    if fault is None:
        return continuation(details, request)
    return _hit(fault, failed, continuation, details, request)


async def _hit(fault: Any, failed: Any, continuation: Any, details: Any, request: Any) -> Any:
    """Give back a call that has failed, rather than raise: OpenTelemetry then ends its span."""
    try:
        await fault
    except aio.AioRpcError as failure:
        return failed(failure)
    return await continuation(details, request)


class _OfChannel:
    """Knows where the calls of its channel go."""

    def __init__(self, target: str) -> None:
        self._target = target


class _UnaryUnary(_OfChannel, aio.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(self, *call: Any) -> Any:
        return _pass(_FailedUnaryUnary, self._target, *call)


class _UnaryStream(_OfChannel, aio.UnaryStreamClientInterceptor):
    def intercept_unary_stream(self, *call: Any) -> Any:
        return _pass(_FailedUnaryStream, self._target, *call)


class _StreamUnary(_OfChannel, aio.StreamUnaryClientInterceptor):
    def intercept_stream_unary(self, *call: Any) -> Any:
        return _pass(_FailedStreamUnary, self._target, *call)


class _StreamStream(_OfChannel, aio.StreamStreamClientInterceptor):
    def intercept_stream_stream(self, *call: Any) -> Any:
        return _pass(_FailedStreamStream, self._target, *call)


class _Failed:
    """A call that has ended with an error before it began. All that is awaited of it raises."""

    def __init__(self, failure: Any) -> None:
        self._failure = failure

    def __await__(self) -> Any:
        return self.read().__await__()

    def __aiter__(self) -> Any:
        return self._responses()

    async def _responses(self) -> Any:
        if self._failure:
            raise self._failure
        yield  # makes it a generator

    async def read(self) -> Any:
        raise self._failure

    async def write(self, _request: Any) -> None:
        raise self._failure

    async def done_writing(self) -> None:
        return None

    async def wait_for_connection(self) -> None:
        raise self._failure

    async def code(self) -> grpc.StatusCode:
        return self._failure.code()

    async def details(self) -> Any:
        return self._failure.details()

    async def debug_error_string(self) -> Any:
        return self._failure.debug_error_string()

    async def initial_metadata(self) -> Any:
        return self._failure.initial_metadata()

    async def trailing_metadata(self) -> Any:
        return self._failure.trailing_metadata()

    def cancel(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return True

    def time_remaining(self) -> float | None:
        return None

    def add_done_callback(self, callback: Any) -> None:
        callback(self)


class _FailedUnaryUnary(_Failed, aio.UnaryUnaryCall):
    pass


class _FailedStreamUnary(_Failed, aio.StreamUnaryCall):
    pass


class _FailedUnaryStream(_Failed, aio.UnaryStreamCall):
    pass


class _FailedStreamStream(_Failed, aio.StreamStreamCall):
    pass


def _effect(
    injection: Injection, _method: Any, patience: float | None, target: str
) -> Effect | None:
    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, _late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, _late)
    ended = ending(injection.kind, target)
    return None if ended is None else Effect(failure=_failure(*ended))


def _late() -> aio.AioRpcError:
    return _failure(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


def _failure(code: grpc.StatusCode, details: str) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details, f"{code.name}:{details}")


_SITE = Site(name, _effect)
_INTERCEPTORS = (_UnaryUnary, _UnaryStream, _StreamUnary, _StreamStream)
