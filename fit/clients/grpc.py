"""gRPC's client, threads: all four kinds of call, beneath every interceptor.

``error`` is status UNAVAILABLE, as of a server that cannot be reached: raised where a call blocks,
else carried by the call object that is returned, gRPC's own, which raises it when it is read.
``refused`` says so as gRPC does, ``grpc:CODE`` is an answer with that status. ``delay`` and
``timeout`` end with DEADLINE_EXCEEDED at the call's timeout. That holds up the calling thread, even
where the call would have returned a future or a stream at once.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

import grpc
from grpc import _channel

from ldfi.fit import error, hosts, inject, patching
from ldfi.fit.delay import delay, timeout
from ldfi.fit.effect import Effect
from ldfi.fit.inject import Site, armed
from ldfi.fit.protocol.context import Injection
from ldfi.fit.protocol.kinds import NAMED, FaultKind
from ldfi.fit.protocol.points import IPV4, is_name, rpc_point

_SCHEME: Final = re.compile(r"(?:dns|ipv4|ipv6|xds|google-c2p|passthrough):(?://[^/]*)?/?")
_UNIX: Final = ("unix:", "unix-abstract:")
_PORT: Final = re.compile(r":\w*\Z")
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
        def call(
            callee: Any,
            request: Any,
            timeout: Any = None,
            metadata: Any = None,
            *rest: Any,
            **named: Any,
        ) -> Any:
            if armed():
                answer = inject.through(site, None, callee._method, timeout, callee)
                if answer is not None:
                    return answer
                onward = hosts.guarded(_addressed, callee, metadata)
                metadata = metadata if onward is None else onward
            return original(callee, request, timeout, metadata, *rest, **named)

        return call

    return wrap


def _addressed(callee: Any, metadata: Any) -> Any:
    return addressed(callee._channel.target().decode(), metadata)


def addressed(target: str, metadata: Any) -> list[hosts.Pair] | None:
    """Write metadata as they go to a target; None where they go as they are."""
    return hosts.addressed(metadata, *_hosts(target))


def _hosts(target: str) -> list[str]:
    """List the hosts of a target: ``dns:[//server/]host[:port]``, or several addresses after
    ``ipv4:``. Without a scheme of gRPC's it is a name, or an address, by itself. A Unix socket is
    on this host."""
    if target.startswith(_UNIX):
        return ["localhost"]
    scheme = _SCHEME.match(target)
    bare = unquote(target[scheme.end() :]) if scheme else target
    return [_host(each.strip()) for each in bare.split(",")]


def _host(address: str) -> str:
    """Cut off the port, a number or the name of a service."""
    bare_ipv6 = address.count(":") > 1 and "]" not in address
    return address if bare_ipv6 else _PORT.sub("", address)


def name(service: str, method: str | bytes, *_: Any) -> str:
    """Name the point of a call. gRPC gives the method as text or as bytes."""
    return rpc_point(service, method.decode() if isinstance(method, bytes) else method)


def _raised(injection: Injection, _method: Any, patience: float | None, callee: Any) -> Any:
    return _effect(injection, patience, callee, _channel._InactiveRpcError)


def _carried(injection: Injection, _method: Any, patience: float | None, callee: Any) -> Any:
    def ended(state: Any) -> Any:
        return _channel._MultiThreadedRendezvous(state, None, None, None)

    effect = _effect(injection, patience, callee, ended)
    return None if effect is None else effect._replace(returned=True)


def _effect(
    injection: Injection, patience: float | None, callee: Any, failed: Any
) -> Effect | None:
    def late() -> Any:
        return failed(_state(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    if injection.kind == "delay":
        return delay(injection.delay_ms, patience, late)
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, late)
    target = callee._channel.target() if injection.kind in error.CONNECTING else b""
    ended = ending(injection.kind, target.decode())
    return None if ended is None else Effect(failure=failed(_state(*ended)))


def ending(kind: FaultKind, target: str) -> tuple[Any, str] | None:
    """Tell the code and the details with which a call fails at once; None where it does not."""
    if kind == "error":
        return grpc.StatusCode.UNAVAILABLE, error.TEXT
    if kind in error.CONNECTING:
        if kind in NAMED and (target.startswith(_UNIX) or not any(map(is_name, _hosts(target)))):
            return None
        details = error.CONNECTING[kind]["grpc"]
        bare = target.rpartition("/")[2]
        return grpc.StatusCode.UNAVAILABLE, details.format(target=bare, address=_resolved(bare))
    word, _, code = kind.partition(":")
    return (grpc.StatusCode[code], error.TEXT) if word == "grpc" else None


def _resolved(bare: str) -> str:
    """Write an address as gRPC does once it has found it; a name stays one."""
    host = bare.rpartition(":")[0]
    return f"ipv4:{bare}" if IPV4.fullmatch(host) else bare


def _state(code: Any, details: str) -> Any:
    """Make the state of a call that has ended."""
    state = _channel._RPCState((), (), (), code, details)
    state.debug_error_string = f"{code.name}:{details}"
    return state


_RAISED = Site(name, _raised)
_CARRIED = Site(name, _carried)
