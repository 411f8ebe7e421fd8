"""The edge: decides once per request which experiment it is in, and stamps it.

It must stand *outside* the tracing middleware, or the sampling decision comes before the stamp::

    app = fit.EdgeMiddleware(OpenTelemetryMiddleware(app))

A failure context that comes from outside and does not verify is stripped. One that does verify
(an engineer who replays a scenario signs it) is left alone and takes precedence.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fit import baggage, runtime
from fit.context import encode
from fit.features import HEADERS, request_features
from fit.poll import RulesPoll
from fit.rules import Lease, Rule
from fit.runtime import Runtime

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

DEVICE_HEADER = "x-device-id"


class EdgeMiddleware:
    """ASGI middleware. Where the rules come from: ``LDFI_URL`` and ``LDFI_TOKEN``."""

    def __init__(self, app: App, poll: RulesPoll | None = None) -> None:
        self._app = app
        self._poll = poll or _poll_from_environment()
        self._stamps: dict[tuple[str, str], tuple[float, str]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stamp or strip the request, and pass it on."""
        active = runtime.active()
        if scope["type"] == "http":
            try:
                scope = self._admit(scope, active)
            except Exception:
                runtime.swallow()
                scope = _stripped(scope)
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope, active: Runtime | None) -> Scope:
        header = _header(scope, b"baggage")
        foreign = baggage.find(header) if header else None
        if foreign is not None:
            if active is not None and active.verify(foreign) is not None:
                return scope
            header = baggage.without(header)
            scope = _with_baggage(scope, header)
        if active is None or self._poll is None:
            return scope
        self._poll.start()
        stamp = self._stamp(scope, active, self._poll.lease())
        return scope if stamp is None else _with_baggage(scope, baggage.with_entry(header, stamp))

    def _stamp(self, scope: Scope, active: Runtime, lease: Lease) -> str | None:
        if not lease.rules:
            return None
        device = _header(scope, DEVICE_HEADER.encode())
        if not device:
            return None
        allocated = lease.allocate(_features(scope), device)
        if allocated is None:
            return None
        rule, arm = allocated
        return self._signed(active, rule, arm, lease.ends)

    def _signed(self, active: Runtime, rule: Rule, arm: Any, ends: float) -> str:
        """One signature per experiment, arm and lease, not one per request."""
        key = (rule.experiment, arm)
        known = self._stamps.get(key)
        if known is not None and known[0] == ends:
            return known[1]
        value = encode(
            active.keys, rule.experiment, arm, math.ceil(ends), rule.faults, delay_ms=rule.delay_ms
        )
        if len(self._stamps) > 1000:
            self._stamps.clear()
        self._stamps[key] = (ends, value)
        return value


def _poll_from_environment() -> RulesPoll | None:
    url, token = os.environ.get("LDFI_URL"), os.environ.get("LDFI_TOKEN")
    return RulesPoll(url, token) if url and token else None


def _features(scope: Scope) -> Any:
    chosen = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name.decode("latin-1") in HEADERS
    ]
    query = scope.get("query_string", b"").decode("latin-1")
    return request_features(scope["method"], scope["path"], query, chosen)


def _header(scope: Scope, wanted: bytes) -> str:
    """All values of one header, joined by commas as RFC 9110, section 5.3 allows."""
    values = [value for name, value in scope["headers"] if name == wanted]
    return b",".join(values).decode("latin-1")


def _with_baggage(scope: Scope, header: str) -> Scope:
    headers = [(name, value) for name, value in scope["headers"] if name != b"baggage"]
    if header:
        headers.append((b"baggage", header.encode("latin-1")))
    return {**scope, "headers": headers}


def _stripped(scope: Scope) -> Scope:
    return _with_baggage(scope, "")
