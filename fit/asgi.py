"""The edge as ASGI middleware. It must stand *outside* the tracing middleware::

    app = fit.EdgeMiddleware(OpenTelemetryMiddleware(app))

or the sampling decision comes before the stamp, and the stamp is never read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from contextlib import closing, suppress
from functools import lru_cache, partial
from typing import Any

from ldfi.fit import baggage, runtime
from ldfi.fit.allowance_requests import Question
from ldfi.fit.arriving_request import leave_word
from ldfi.fit.body import allowed, peeked, readable
from ldfi.fit.edge import Decision, Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.chosen_features import chosen, told
from ldfi.fit.protocol.features import READ, Features, chosen_features, request_features

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_BAGGAGE = b"baggage"
_CODING = b"transfer-encoding"
_READ = frozenset(name.encode() for name in READ)


class EdgeMiddleware:
    """ASGI middleware. Where the rules come from: ``LDFI_URL`` and ``LDFI_TOKEN``.

    HTTP requests are stamped, or stripped of foreign contexts; WebSocket handshakes are stripped;
    every other scope passes untouched.
    """

    def __init__(self, app: App, poll: RulesPoll | None = None) -> None:
        self._app = app
        self._edge = Edge(poll or RulesPoll.from_environment())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stamp or strip the request, and pass it on."""
        if scope.get("type") in ("http", "websocket"):
            body = None
            try:
                if self._may_read(scope):
                    body, receive = await peeked(receive)
            except Exception:  # then it is of no class that a body tells
                with suppress(Exception):
                    runtime.swallow()
            try:
                scope = await self._admitted(scope, body)
            except Exception:
                with suppress(Exception):
                    runtime.swallow()
                kept = [pair for pair in scope.get("headers", ()) if pair[0].lower() != _BAGGAGE]
                scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)

    def _may_read(self, scope: Scope) -> bool:
        """Return whether the body may say of which class a request is, and may be read."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or not allowed():
            return False
        headers = {
            name: _header(scope, name.encode()) for name in ("content-type", "content-length")
        }
        return readable(headers) and self._edge.asks_for_bodies(self._device(scope))

    def _device(self, scope: Scope) -> str:
        return self._edge.device_of(partial(_values, scope), partial(_peer, scope))

    async def _admitted(self, scope: Scope, body: bytes | None = None) -> Scope:
        with suppress(Exception):
            leave_word(_told(scope["headers"]))
        inbound = _header(scope, _BAGGAGE)
        if scope["type"] == "http":
            device = ""
            with suppress(Exception):  # else nobody knows
                device = self._device(scope)
            features = partial(_features, scope, self._edge.wanted, body)
            onward = await decided(self._edge, self._edge.decide(inbound, device, features))
        else:
            onward = self._edge.baggage_onward(inbound)
        if onward != inbound:
            return _with_baggage(scope, onward)
        # uvicorn with httptools puts trailers into the same list, long after we have looked at it
        return {**scope, "headers": [*scope["headers"]]} if _header(scope, _CODING) else scope


async def decided(edge: Edge, decision: Decision) -> str:
    """Drive a decision. What it asks is asked in a thread, for the event loop must not wait;
    without a loop of asyncio's (trio) it waits all the same, for 20 ms at most."""
    with closing(decision):
        try:
            question = next(decision)
            while True:
                question = decision.send(await _answered(edge, question))
        except StopIteration as decided:
            header: str = decided.value
            return header


async def _answered(edge: Edge, question: Question) -> bool:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return edge.ask(question)
    asked = loop.run_in_executor(edge.threads, edge.ask, question)
    try:
        return await asyncio.wait_for(asked, question.left)
    except TimeoutError:
        return False


def _told(headers: Iterable[tuple[bytes, bytes]]) -> Features:
    """Read what the span of a request shall tell of its headers."""
    if not told():
        return {}
    pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    return chosen_features(pairs, told())


def _features(
    scope: Scope, rules: Callable[[], Collection[str]] = chosen, body: bytes | None = None
) -> Features:
    """Read the features of a request, and of its headers those that ``rules`` ask for."""
    wanted = rules()
    names = _looked_at(frozenset(wanted))
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name in names
    ]
    query = scope.get("query_string", b"").decode("latin-1")
    return request_features(scope["method"], scope["path"], query, headers, body, wanted)


@lru_cache(maxsize=64)
def _looked_at(wanted: frozenset[str]) -> frozenset[bytes]:
    """Name the headers that are looked at where these features are wanted."""
    return _READ | {name[7:].encode() for name in wanted if name.startswith("header.")}


def _header(scope: Scope, wanted: bytes) -> str:
    """Join all values of one header by commas, as RFC 9110, section 5.3 allows."""
    values = [value for name, value in scope["headers"] if name.lower() == wanted]
    return b",".join(values).decode("latin-1") if values else ""


def _values(scope: Scope, name: str) -> list[str]:
    wanted = name.encode()
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == wanted]


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _with_baggage(scope: Scope, header: str) -> Scope:
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != _BAGGAGE]
    if header:
        with suppress(Exception):
            headers = list(_spared(headers))
        headers.append((_BAGGAGE, header.encode("latin-1")))
    return {**scope, "headers": headers}


def _spared(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
    for name, value in headers:
        if name.lower() != b"connection":
            yield name, value
        elif kept := baggage.spared(value.decode("latin-1")):
            yield name, kept.encode("latin-1")
