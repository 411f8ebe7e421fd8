"""The edge for aiohttp's server: a middleware that must stand *outside* the tracing one.

    AioHttpServerInstrumentor().instrument()
    app = web.Application()
    app.middlewares.insert(0, edge_middleware())

OpenTelemetry puts its middleware first when the application is made, so this one is put before it
afterwards. That one reads the baggage for its span and forgets it (0.66), so this one makes what it
lets in the context of the request. It reads no bodies; handshakes of WebSockets are stripped and
never stamped.

A service that is no edge needs nothing of this. For the same reason its handlers would never know
of a context, so :func:`patch` has the entry in the baggage be known to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import web, web_app
from multidict import CIMultiDict
from opentelemetry import context
from opentelemetry.baggage import set_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator

from ldfi.fit import baggage, patching, runtime
from ldfi.fit.arriving_request import leave_word
from ldfi.fit.asgi import decided
from ldfi.fit.edge import Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.chosen_features import told
from ldfi.fit.protocol.context import ENTRY
from ldfi.fit.protocol.features import Features, chosen_features, request_features

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_BAGGAGE = "baggage"
_BAGGAGES = W3CBaggagePropagator()


class _Process:
    """This process: whether any of its applications is an edge."""

    edge = False


def edge_middleware(poll: RulesPoll | None = None) -> Any:
    """Return middleware for aiohttp, as :class:`ldfi.fit.asgi.EdgeMiddleware` is for ASGI.

    Where the rules come from: ``LDFI_URL`` and ``LDFI_TOKEN``.
    """
    edge = Edge(poll or RulesPoll.from_environment())
    _Process.edge = True

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        onward = ""
        try:
            request, onward = await _admitted(edge, request)
        except Exception:
            with suppress(Exception):
                runtime.swallow()
            with suppress(Exception):  # whoever has read the body already cannot be given another
                request = _with_baggage(request, "")
        token = context.attach(_BAGGAGES.extract({_BAGGAGE: onward}))
        try:
            return await handler(request)
        finally:
            context.detach(token)

    return middleware


def patch() -> None:
    """Make the failure context of each request known to all that serves it.

    Not in a process that is an edge: there nothing from outside may be known to anybody before
    the edge has decided on it.
    """
    patching.put(web_app.Application, "_handle", _carrying)


def _carrying(handle: Any) -> Any:
    async def carrying(app: web.Application, request: web.Request) -> web.StreamResponse:
        token = _attached(request)
        try:
            answer: web.StreamResponse = await handle(app, request)
            return answer
        finally:
            if token is not None:
                context.detach(token)

    return carrying


def _attached(request: web.Request) -> Any:
    """Attach the context of a request; None where there is none."""
    try:
        if _Process.edge or runtime.active() is None or _BAGGAGE not in request.headers:
            return None
        found = baggage.values(",".join(request.headers.getall(_BAGGAGE)))
        return context.attach(set_baggage(ENTRY, found[0])) if len(found) == 1 else None
    except Exception:
        runtime.swallow()
        return None


async def _admitted(edge: Edge, request: web.Request) -> tuple[web.Request, str]:
    """Return the request as it goes on, and its ``baggage``."""
    with suppress(Exception):
        leave_word(chosen_features(_headers(request), told()) if told() else {})
    given = _headers(request)
    inbound = ",".join(value for name, value in given if name == _BAGGAGE)
    device = ""
    with suppress(Exception):  # else nobody knows
        device = edge.device_of(
            lambda wanted: [value for name, value in given if name == wanted],
            lambda: request.remote or "",
        )
    if "upgrade" in request.headers:
        onward = edge.baggage_onward(inbound)
    else:
        features = partial(_features, edge, request)
        onward = await decided(edge, edge.decide(inbound, device, features))
    return request if onward == inbound else _with_baggage(request, onward), onward


def _features(edge: Edge, request: web.Request) -> Features:
    query = request.rel_url.raw_query_string
    headers, wanted = _headers(request), edge.wanted()
    return request_features(request.method, request.path, query, headers, None, wanted)


def _headers(request: web.Request) -> list[tuple[str, str]]:
    """Read the headers as they were sent, their names in small letters."""
    raw = request.raw_headers
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]


def _with_baggage(request: web.Request, header: str) -> web.Request:
    headers = CIMultiDict(_spared(request.headers.items()) if header else request.headers)
    headers.popall(_BAGGAGE, None)
    if header:
        headers[_BAGGAGE] = header.encode("latin-1").decode("utf-8", "surrogateescape")
    # aiohttp encodes them anew, and cannot where they were no UTF-8
    clean = ((name, _encodable(value)) for name, value in headers.items())
    return request.clone(headers=CIMultiDict(clean))


def _spared(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for name, value in headers:
        if name.lower() != "connection":
            yield name, value
        elif kept := baggage.spared(value):
            yield name, kept


def _encodable(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("latin-1")
    return value
