"""gRPC's client, threads: all four kinds of call, beneath every interceptor.

``error`` is status UNAVAILABLE, as of a server that cannot be reached: raised where a call blocks,
else carried by the call object that is returned, gRPC's own, which raises it when it is read.
``delay`` ends with DEADLINE_EXCEEDED at the call's timeout. It holds up the calling thread, even
where the call would have returned a future or a stream at once.
"""

from __future__ import annotations

from typing import Any

import grpc
from grpc import _channel

from ldfi.fit import error, passage, patching
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import rpc_point
from ldfi.fit.strike import Strike

_BLOCKING = ("__call__", "with_call")


def patch() -> None:
    """Make every call on a channel an injection point."""
    for unary in (_channel._UnaryUnaryMultiCallable, _channel._StreamUnaryMultiCallable):
        for method in _BLOCKING:
            patching.put(unary, method, _wrap(_RAISED))
        patching.put(unary, "future", _wrap(_CARRIED))
    for stream in (
        _channel._UnaryStreamMultiCallable,
        _channel._SingleThreadedUnaryStreamMultiCallable,
        _channel._StreamStreamMultiCallable,
    ):
        patching.put(stream, "__call__", _wrap(_CARRIED))


def _wrap(site: Site) -> Any:
    def wrap(original: Any) -> Any:
        def call(callee: Any, request: Any, timeout: Any = None, *rest: Any, **named: Any) -> Any:
            if armed():
                answer = passage.through(site, None, callee._method, timeout)
                if answer is not None:
                    return answer
            return original(callee, request, timeout, *rest, **named)

        return call

    return wrap


def name(service: str, method: str | bytes, *_: Any) -> str:
    """Name the point of a call. gRPC gives the method as text or as bytes."""
    return rpc_point(service, method.decode() if isinstance(method, bytes) else method)


def _raised(injection: Injection, _method: Any, timeout: float | None) -> Strike:
    return _strike(injection, timeout, _channel._InactiveRpcError)


def _carried(injection: Injection, _method: Any, timeout: float | None) -> Strike:
    def ended(state: Any) -> Any:
        return _channel._MultiThreadedRendezvous(state, None, None, None)

    return _strike(injection, timeout, ended)._replace(returned=True)


def _strike(injection: Injection, timeout: float | None, failed: Any) -> Strike:
    if injection.kind == "error":
        return Strike(failure=failed(_state(grpc.StatusCode.UNAVAILABLE, error.TEXT)))
    late = grpc.StatusCode.DEADLINE_EXCEEDED
    return delay(injection.delay_ms, timeout, lambda: failed(_state(late, "Deadline Exceeded")))


def _state(code: Any, details: str) -> Any:
    """Make the state of a call that has ended."""
    state = _channel._RPCState((), (), (), code, details)
    state.debug_error_string = f"UNKNOWN:{details}"
    return state


_RAISED = Site(name, _raised)
_CARRIED = Site(name, _carried)
