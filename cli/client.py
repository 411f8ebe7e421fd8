"""The service, as the command line sees it.

Every POST carries an ``Idempotency-Key`` made for this one call, so when no answer comes it can be
sent again: the service does it once. Where a route takes no key, only what cannot have been
received is sent again.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import httpx
from httpx_sse import ServerSentEvent, connect_sse
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_result,
    stop_after_attempt,
    wait_random_exponential,
)

from ldfi.error_words import unanswered, value
from ldfi.errors import Conflict, ExperimentsError, Invalid, NotFound, Unreachable

PAGE: Final = 200
"""Items that the API gives at once, at most."""

ATTEMPTS: Final = 4
PATIENCE: Final = 5.0
"""Seconds that are waited between two attempts, at most."""

SILENCE: Final = 40.0
"""Seconds without a sign of life, which comes every 15, after which a stream counts as lost."""

_UNKEYED: Final = frozenset({"/tokens"})
"""Routes that keep no answers, and so take no key."""

_BARE_IPV6: Final = re.compile(r"(\w+://)?[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*(/|$)", re.IGNORECASE)
"""A host with two colons or more, which only an IPv6 address has."""

_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_LATER: Final = frozenset({"rate-limited", "idempotency-in-progress", "unavailable"})
_BACKOFF: Final = wait_random_exponential(multiplier=0.2, max=2)


class Client:
    """Calls the API at ``url`` with a bearer token. Raises Invalid where either cannot be one.

    ``seconds``: how long an answer is waited for. ``attempts``: how often it is tried.
    ``namespace``: in which one to act, for an admin of the default one; None: the token's own.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        seconds: float = 15.0,
        attempts: int = ATTEMPTS,
        namespace: str | None = None,
    ) -> None:
        self.url = service_url(url)
        self._attempts = attempts
        token = token.strip()
        if not (token and token.isascii() and token.isprintable()):
            raise Invalid(
                "the token must be printable ASCII in one piece, and not empty: set LDFI_TOKEN, or "
                "give --token"
            )
        headers = {"Authorization": f"Bearer {token}"}
        if namespace is not None:
            headers["Ldfi-Namespace"] = namespace
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=seconds)

    def get(self, path: str, **query: Any) -> Answer:
        """GET an object from ``path`` below ``/api/v1``; a query of None is left out.

        Raises Unreachable where nobody answers, somebody else does or the service failed, NotFound,
        Conflict, or else ExperimentsError.
        """
        return self._object("GET", path, params=_given(query))

    def get_all(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """GET a list of objects. Raises like :meth:`get`."""
        answer = self._answer("GET", path, params=_given(query))
        if not (isinstance(answer, list) and all(isinstance(each, Answer) for each in answer)):
            raise self._stranger("its answer is no list of objects")
        return answer

    def page_file(self, path: str) -> str:
        """Make a page that needs nothing from anywhere: the service knows how it is laid out.

        Raises like :meth:`get`, and Unreachable where it is no page.
        """
        response = self._response("GET", path)
        if not response.headers.get("content-type", "").startswith("text/html"):
            raise Unreachable(f"{self.url} is no ldfi service with pages: it gives no page")
        return response.text

    def metrics(self) -> str:
        """Fetch what Prometheus is told. Raises like :meth:`get`."""
        return self._response("GET", "/metrics", root="").text

    def post(self, path: str, document: dict[str, Any] | None = None) -> Answer:
        """POST a document to ``path`` below ``/api/v1``, once. Raises like :meth:`get`."""
        headers = {} if path in _UNKEYED else {"Idempotency-Key": str(uuid.uuid4())}
        return self._object("POST", path, json=document, headers=headers)

    def delete(self, path: str) -> Answer:
        """DELETE ``path`` below ``/api/v1``. Raises like :meth:`get`."""
        return self._object("DELETE", path)

    def page(self, path: str, limit: int | None, **query: Any) -> dict[str, Any]:
        """Fetch the first ``limit`` items of a list, all with None, fetched page by page.

        Like one page of the API: ``items``, and the ``cursor`` of what is left.
        """
        items: list[Any] = []
        cursor = None
        while True:
            room = PAGE if limit is None else min(PAGE, limit - len(items))
            part = self.get(path, limit=room, cursor=cursor, **query)
            items += part["items"]
            cursor = part["cursor"]
            if cursor is None or len(items) == limit:
                return {"items": items, "cursor": cursor}

    @contextmanager
    def events(self, after: int | None) -> Iterator[Iterator[ServerSentEvent]]:
        """Follow what happens, as it happens; ``after``: the id of the last event that is known.

        Raises like :meth:`get`, and httpx.HTTPError when the stream breaks.
        """
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        timeout = httpx.Timeout(15.0, read=SILENCE)
        with connect_sse(
            self._http, "GET", "/api/v1/events", headers=headers, timeout=timeout
        ) as source:
            if source.response.is_error:
                source.response.read()
                raise _problem(source.response, self.url)
            yield source.iter_sse()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _answer(self, method: str, path: str, **arguments: Any) -> Any:
        response = self._response(method, path, **arguments)
        try:
            return response.json(object_hook=partial(Answer, self.url))
        except ValueError as error:
            raise self._stranger("it does not answer in JSON") from error

    def _object(self, method: str, path: str, **arguments: Any) -> Answer:
        answer = self._answer(method, path, **arguments)
        if not isinstance(answer, Answer):
            raise self._stranger("its answer is no object")
        return answer

    def _stranger(self, why: str) -> Unreachable:
        return Unreachable(f"{self.url} is no ldfi service: {why}; check LDFI_URL or --url")

    def _response(
        self, method: str, path: str, *, root: str = "/api/v1", **arguments: Any
    ) -> httpx.Response:
        headers = arguments.get("headers", {})
        repeatable = method == "GET" or "Idempotency-Key" in headers
        attempts = Retrying(
            retry=retry_if_exception(partial(_again, repeatable=repeatable))
            | retry_if_result(_later),
            stop=stop_after_attempt(self._attempts),
            wait=_wait,
            retry_error_callback=_last,
        )
        try:
            response = attempts(self._http.request, method, f"{root}{path}", **arguments)
        except httpx.HTTPError as error:
            raise Unreachable(f"no answer from {self.url}: {_why(error)}") from error
        if response.is_error:
            raise _problem(response, self.url)
        if response.is_redirect:
            to = response.headers.get("location", "elsewhere")
            raise self._stranger(f"it redirects to {to}")
        return response


def service_url(text: str) -> str:
    """Read the address of a service. Raises Invalid where it cannot be one."""
    said = f"LDFI_URL or --url must be a URL such as http://127.0.0.1:8600, got {value(text)}"
    if _BARE_IPV6.match(text.strip()):
        raise Invalid(f"{said}: an IPv6 address is written in brackets, http://[::1]:8600")
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, UnicodeError) as error:
        raise Invalid(said) from error
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise Invalid(said)
    if url.port is not None and not 0 < url.port < 65_536:
        raise Invalid(f"{said}: a port is from 1 to 65535")
    return text.strip().rstrip("/")


class Answer(dict[str, Any]):
    """An object that the service answered. Raises Unreachable for what it should hold and does not:
    somebody else answers at that address, or another version."""

    def __init__(self, url: str, document: dict[str, Any]) -> None:
        super().__init__(document)
        self._url = url

    def __missing__(self, name: str) -> Any:
        raise Unreachable(
            f"{self._url} is no ldfi service, or of another version: its answer has no "
            f"{value(name)}; check LDFI_URL or --url, and `ldfi --version`"
        )


def _why(error: httpx.HTTPError) -> str:
    """Say why nobody answered, and what to do."""
    said = unanswered(error)
    if said.endswith("?"):
        return f"{said} Check whether `ldfi serve` is up, and LDFI_URL or --url"
    return f"{said}; is `ldfi serve` up, and is that its address (LDFI_URL or --url)?"


def _given(query: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _again(error: BaseException, *, repeatable: bool) -> bool:
    if isinstance(error, httpx.UnsupportedProtocol):
        return False
    return isinstance(error, httpx.TransportError if repeatable else _NOT_SENT)


def _later(response: httpx.Response) -> bool:
    """Whether the service asks to try again, and soon."""
    return _kind(response) in _LATER and _retry_after(response) <= PATIENCE


def _wait(state: RetryCallState) -> float:
    outcome = state.outcome
    if outcome is None or outcome.failed:
        return _BACKOFF(state)
    return max(_retry_after(outcome.result()), _BACKOFF(state))


def _last(state: RetryCallState) -> Any:
    """Say what the last attempt came to: its answer, or its exception raised."""
    if state.outcome is None:
        raise AssertionError("nothing was attempted")
    return state.outcome.result()


def _retry_after(response: httpx.Response) -> float:
    try:
        return float(response.headers.get("retry-after", 0.0))
    except ValueError:
        return 0.0


def _document(response: httpx.Response) -> dict[str, Any]:
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _kind(response: httpx.Response) -> str:
    """Name the type of problem; empty where it is none."""
    if not response.is_error:
        return ""
    return str(_document(response).get("type", "")).rpartition("/")[2]


def _problem(response: httpx.Response, url: str) -> ExperimentsError:
    """Put the problem document in words: what is wrong, and at which places."""
    document, status = _document(response), response.status_code
    if status == 401:
        return ExperimentsError(
            f"{url} does not know this token: it is wrong, expired or revoked; set LDFI_TOKEN, or "
            "give --token (`ldfi token create` makes one)"
        )
    if status == 400 and url.startswith("http://") and "HTTPS" in response.text.upper():
        return Unreachable(f"{url} speaks TLS: is it https:// there? Check LDFI_URL or --url")
    if "type" not in document:
        return Unreachable(
            f"{url} is no ldfi service, or a proxy that has none to ask: it answered {status} to "
            f"{response.request.method} {response.url.path}; check LDFI_URL or --url"
        )
    if _kind(response) == "no-such-route":
        return NotFound(
            f"{url} has no {response.url.path}: it is ldfi of another version, or that is not "
            "its whole address (LDFI_URL or --url)"
        )
    lines = [str(document.get("detail", f"{response.url} answered {status}"))]
    for place in document.get("errors", []):
        at = str(place["at"]).removeprefix("body/")
        lines.append(f"  {at.removeprefix('query/').removeprefix('path/')}: {place['what']}")
    if "incident" in document:
        lines.append(f"  incident {document['incident']}: the service's log says more")
    message = "\n".join(lines)
    if status >= 500:
        return Unreachable(message)
    return {404: NotFound, 409: Conflict}.get(status, ExperimentsError)(message)
