"""requests, urllib3, and all that sends through urllib3 2.

The point is each attempt that a connection pool makes: beneath urllib3's own retries, redirects
and OpenTelemetry's instrumentations of both libraries. ``error`` is answered with 503, so that a
``Retry`` with a ``status_forcelist`` retries it; ``delay`` ends with a ReadTimeoutError, which
requests turns into its own ReadTimeout.
"""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlsplit

from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError
from urllib3.response import HTTPResponse
from urllib3.util.timeout import Timeout

from ldfi.fit import error, passage, patching
from ldfi.fit.clients import fakes, http
from ldfi.fit.context import Injection
from ldfi.fit.delay import delay
from ldfi.fit.passage import Site, armed
from ldfi.fit.points import http_point
from ldfi.fit.strike import Strike


def patch() -> None:
    """Make urllib3's connection pools injection points."""
    patching.put(HTTPConnectionPool, "_make_request", _sync)


def _sync(original: Any) -> Any:
    def make_request(pool: Any, conn: Any, method: str, url: str, **options: Any) -> Any:
        if armed() and not fakes.passed():
            answer = passage.through(_SITE, None, pool, method, url, options)
            if answer is not None:
                return answer
            fakes.let_through()
        return original(pool, conn, method, url, **options)

    return make_request


def _name(service: str, pool: Any, method: str, url: str, _options: Any) -> str:
    if url.startswith("/"):
        path = url.partition("?")[0]
        return http_point(service, method, pool.host, pool.port, path, http.template())
    parts = urlsplit(url)  # whole, when it goes through a proxy
    host = parts.hostname or pool.host
    return http_point(service, method, host, parts.port, parts.path or "/", http.template())


def _strike(injection: Injection, pool: Any, method: str, url: str, options: Any) -> Strike:
    if injection.kind == "error":
        return Strike(failure=_unavailable(pool, method, url, options))
    patience = _patience(options.get("timeout"))
    message = f"Read timed out. (read timeout={patience})"
    return delay(injection.delay_ms, patience, lambda: ReadTimeoutError(pool, url, message))


def _patience(timeout: Any) -> float | None:
    if not isinstance(timeout, Timeout):
        return None
    running = timeout.clone()
    running.start_connect()
    left = Timeout.resolve_default_timeout(running.read_timeout)
    return None if left is None else float(left)


def _unavailable(pool: Any, method: str, url: str, options: Any) -> Any:
    response = HTTPResponse(
        body=io.BytesIO(error.BODY),
        headers=error.HEADERS,
        status=error.STATUS,
        reason=error.REASON,
        version=11,
        preload_content=options.get("preload_content", True),
        request_method=method,
        request_url=url,
        retries=options.get("retries"),
        pool=pool,
        connection=options.get("response_conn"),
    )
    response.release_conn()  # it was never used: back into the pool at once
    return response


_SITE = Site(_name, _strike)
