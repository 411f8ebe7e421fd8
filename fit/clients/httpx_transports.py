"""httpx above its transports: over sockets, mocked, or to an application in the same process.

In production the point lies beneath httpx, where sockets are (:mod:`ldfi.fit.clients.httpx`), and
an in-process fake is never reached there. In a test it therefore lies in the client itself, above
any transport: real ones, ``MockTransport``, ``ASGITransport``, and libraries that replace
transports. Names and failures are the same as in production.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import httpx
from httpx._transports.default import AsyncResponseStream, ResponseStream, map_httpcore_exceptions

from ldfi.fit import error, passage
from ldfi.fit.answers import Reply, answer_of
from ldfi.fit.clients import httpx_failures
from ldfi.fit.clients.http import PASSED
from ldfi.fit.clients.httpx_failures import HttpxFailures
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay, timeout
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import http_point
from ldfi.fit.strike import Strike

_METHOD: Final = "_send_single_request"
"""Of both clients: sends one request, redirects and authentication aside."""


@contextmanager
def replaced(sync: Any, asynchronous: Any) -> Iterator[None]:
    """Put wrappers around what sends a request, in both clients, as long as this lasts."""
    before = {owner: vars(owner)[_METHOD] for owner in (httpx.Client, httpx.AsyncClient)}
    setattr(httpx.Client, _METHOD, sync(before[httpx.Client]))
    setattr(httpx.AsyncClient, _METHOD, asynchronous(before[httpx.AsyncClient]))
    try:
        yield
    finally:
        for owner, original in before.items():
            setattr(owner, _METHOD, original)


@contextmanager
def patched() -> Iterator[None]:
    """Make every call through httpx an injection point as long as this lasts."""
    with replaced(_sync, _async):
        yield


def _sync(original: Any) -> Any:
    def send(client: httpx.Client, request: httpx.Request) -> httpx.Response:
        if not armed() or PASSED in request.extensions:
            return original(client, request)  # type: ignore[no-any-return]
        answer = passage.through(SITE, None, request)
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        with _marked(request):
            return original(client, request)  # type: ignore[no-any-return]

    return send


def _async(original: Any) -> Any:
    async def send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        if not armed() or PASSED in request.extensions:
            return await original(client, request)  # type: ignore[no-any-return]
        fault = passage.through_async(ASYNC_SITE, None, request)
        answer = None if fault is None else await fault
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        with _marked(request):
            return await original(client, request)  # type: ignore[no-any-return]

    return send


@contextmanager
def _marked(request: httpx.Request) -> Iterator[None]:
    """Have the point beneath let this request through: it is the same call."""
    request.extensions[PASSED] = True
    try:
        yield
    finally:
        request.extensions.pop(PASSED, None)


def name(service: str, request: httpx.Request) -> str:
    """Name the point of a request."""
    url = request.url
    path = url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    return http_point(service, request.method, url.host, url.port, path)


def _strike(injection: Injection, request: httpx.Request, failures: HttpxFailures) -> Strike | None:
    if injection.kind == "error":
        response = httpx.Response(
            error.STATUS,
            headers=error.HEADERS,
            content=error.BODY,
            request=request,
        )
        response.elapsed = timedelta(0)
        return Strike(failure=response)
    patience = request.extensions.get("timeout", {}).get("read")
    if injection.kind == "delay":
        return delay(
            injection.delay_ms, patience, lambda: httpx.ReadTimeout("timed out", request=request)
        )
    if injection.kind == "timeout":
        return timeout(injection.delay_ms, patience, lambda: _raised(failures.late(), request))
    if injection.kind == "refused":
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        return Strike(failure=_raised(failures.refused(url.host, port), request))
    if injection.kind == "reset":
        return Strike(failure=_raised(failures.reset(), request))
    answer = answer_of(injection.kind)
    return None if answer is None else Strike(failure=_response(answer, request, failures))


def _raised(failure: Exception, request: httpx.Request) -> Exception:
    """Make what httpx raises of httpcore's exception, with httpx's own means."""
    try:
        with map_httpcore_exceptions():
            raise failure
    except httpx.TransportError as mapped:
        mapped.request = request
        return mapped


def _response(answer: Reply, request: httpx.Request, failures: HttpxFailures) -> httpx.Response:
    stream = ResponseStream if failures is httpx_failures.SYNC else AsyncResponseStream
    body: Any = {"content": answer.body}
    if answer.cut:
        body = {"stream": stream(httpx_failures.Cut(answer))}
    response = httpx.Response(answer.status, headers=answer.headers, request=request, **body)
    if not answer.cut:
        response.elapsed = timedelta(0)
    return response


def _strike_sync(injection: Injection, request: httpx.Request) -> Strike | None:
    return _strike(injection, request, httpx_failures.SYNC)


def _strike_async(injection: Injection, request: httpx.Request) -> Strike | None:
    return _strike(injection, request, httpx_failures.ASYNC)


SITE: Final = Site(name, _strike_sync)
ASYNC_SITE: Final = Site(name, _strike_async)
