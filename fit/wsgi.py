"""The edge as WSGI middleware (PEP 3333). It must stand *outside* the tracing middleware::

app = fit.WSGIEdgeMiddleware(OpenTelemetryMiddleware(app))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from wsgiref.util import request_uri

from ldfi.fit import runtime
from ldfi.fit.arrival import leave_word
from ldfi.fit.edge import DEVICE_HEADER, Edge
from ldfi.fit.features import HEADERS, Features, request_features
from ldfi.fit.poll import RulesPoll

Environ = dict[str, Any]
App = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

_BAGGAGE = "HTTP_BAGGAGE"


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
            leave_word()
        inbound = environ.get(_BAGGAGE, "")
        device = environ.get(_variable(DEVICE_HEADER), "")
        onward = self._edge.baggage_onward(inbound, device, partial(_features, environ))
        if onward:
            environ[_BAGGAGE] = onward
        else:
            environ.pop(_BAGGAGE, None)


def _variable(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


def _features(environ: Environ) -> Features:
    chosen = [(name, environ[_variable(name)]) for name in HEADERS if _variable(name) in environ]
    query = environ.get("QUERY_STRING", "")
    return request_features(environ["REQUEST_METHOD"], _path(environ), query, chosen)


def _path(environ: Environ) -> str:
    """Read the path as OpenTelemetry's WSGI middleware writes it on the span, for request
    classes are learned from that: as it was sent where the server tells, else decoded and
    encoded anew."""
    sent = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    return urlsplit(sent or request_uri(environ, include_query=False)).path or "/"
