"""The edge as WSGI middleware (PEP 3333). It must stand *outside* the tracing middleware::

app = fit.WSGIEdgeMiddleware(OpenTelemetryMiddleware(app))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any
from wsgiref.util import request_uri

from ldfi.fit import baggage, runtime
from ldfi.fit.arriving_request import leave_word
from ldfi.fit.body import allowed, peeked_wsgi, readable
from ldfi.fit.edge import Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.chosen_features import chosen, told
from ldfi.fit.protocol.features import READ, Features, chosen_features, request_features
from ldfi.fit.protocol.urls import split_url

Environ = dict[str, Any]
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

_BAGGAGE = "HTTP_BAGGAGE"
_CONNECTION = "HTTP_CONNECTION"


class WSGIEdgeMiddleware:
    """WSGI middleware, as :class:`ldfi.fit.asgi.EdgeMiddleware` is for ASGI."""

    def __init__(self, app: App, poll: RulesPoll | None = None) -> None:
        self._app = app
        self._edge = Edge(poll or RulesPoll.from_environment())

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Stamp or strip the request, and pass it on."""
        try:
            self._admit(environ)
        except Exception:
            with suppress(Exception):
                runtime.swallow()
            environ.pop(_BAGGAGE, None)
        return self._app(environ, start_response)

    def _admit(self, environ: Environ) -> None:
        with suppress(Exception):
            leave_word(_told(environ))
        inbound = environ.get(_BAGGAGE, "")
        device = ""
        with suppress(Exception):  # else nobody knows
            device = self._edge.device_of(partial(_values, environ), partial(_peer, environ))
        body = None
        with suppress(Exception):  # then it is of no class that a body tells
            body = peeked_wsgi(environ) if self._may_read(environ, device) else None
        features = partial(_features, environ, self._edge.wanted, body)
        onward = self._edge.baggage_onward(inbound, device, features)
        if onward:
            environ[_BAGGAGE] = onward
            with suppress(Exception):
                if _CONNECTION in environ:
                    environ[_CONNECTION] = baggage.spared(environ[_CONNECTION])
        else:
            environ.pop(_BAGGAGE, None)

    def _may_read(self, environ: Environ, device: str) -> bool:
        """Return whether the body may say of which class a request is, and may be read."""
        if environ["REQUEST_METHOD"] in ("GET", "HEAD") or not allowed():
            return False
        headers = {
            "content-type": environ.get("CONTENT_TYPE", ""),
            "content-length": environ.get("CONTENT_LENGTH", ""),
        }
        return readable(headers) and self._edge.asks_for_bodies(device)


def _values(environ: Environ, name: str) -> list[str]:
    value = environ.get(_variable(name))
    return [value] if value else []


def _peer(environ: Environ) -> str:
    return str(environ.get("REMOTE_ADDR", ""))


def _told(environ: Environ) -> Features:
    """Read what the span of a request shall tell of its headers."""
    names = {name[7:] for name in told() if name.startswith("header.")}
    names |= {"cookie", "baggage"} if told() else set()
    given = ((name, environ.get(_variable(name), "")) for name in sorted(names))
    return chosen_features(((name, value) for name, value in given if value), told())


def _variable(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


def _features(
    environ: Environ, rules: Callable[[], Collection[str]] = chosen, body: bytes | None = None
) -> Features:
    """Read the features of a request, and of its headers those that ``rules`` ask for."""
    wanted = rules()
    names = {name[7:] for name in wanted if name.startswith("header.")} | READ
    given = ((name, environ.get(_variable(name))) for name in sorted(names))
    headers = [(name, value) for name, value in given if value]
    if content_type := environ.get("CONTENT_TYPE"):
        headers.append(("content-type", content_type))
    query, path = environ.get("QUERY_STRING", ""), _path(environ)
    return request_features(environ["REQUEST_METHOD"], path, query, headers, body, wanted)


def _path(environ: Environ) -> str:
    """Read the path as OpenTelemetry's WSGI middleware writes it on the span, for request
    classes are learned from that: as it was sent where the server tells, else decoded and
    encoded anew."""
    sent = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    return split_url(sent or request_uri(environ, include_query=False)).path or "/"
