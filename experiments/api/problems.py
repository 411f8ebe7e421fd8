"""Errors as RFC 9457 problem documents: one table of their types, one function that writes them."""

from __future__ import annotations

import json
import logging
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldfi.error_words import fault, items, place
from ldfi.errors import (
    CannotDecide,
    Conflict,
    Deposed,
    ExperimentsError,
    Halted,
    Invalid,
    NotDelivered,
    NotFound,
    PrometheusError,
)
from ldfi.experiments.store.database import is_away

TYPE: Final = "https://ldfi.dev/problems/"
MEDIA_TYPE: Final = "application/problem+json"
_UNFIT: Final = "the request does not fit the API"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of problem: the status it goes with, and what it means, in one sentence."""

    status: int
    meaning: str


KINDS: Final[Mapping[str, Kind]] = {
    "bad-request": Kind(400, "The request cannot be read: it breaks the rules of HTTP."),
    "unreadable-traces": Kind(400, "The body cannot be decoded as traces in OTLP."),
    "unreadable-gzip": Kind(400, "The body is said to be gzip but cannot be unzipped."),
    "unreadable-zstd": Kind(400, "The body is said to be zstd but cannot be unzipped."),
    "invalid-idempotency-key": Kind(
        400, "The Idempotency-Key header is empty, too long, or has characters it may not have."
    ),
    "unauthorized": Kind(401, "No bearer token was sent, or it is unknown, expired or revoked."),
    "forbidden": Kind(403, "The token's role does not include what this route needs."),
    "not-found": Kind(404, "There is nothing with this identifier, which `detail` shows."),
    "no-such-route": Kind(
        404, "There is nothing at this path; `/api/v1/openapi.json` has all of them."
    ),
    "method-not-allowed": Kind(405, "The path exists, but not with this method."),
    "conflict": Kind(409, "What is asked for contradicts what is there; `detail` says in what."),
    "cannot-decide": Kind(
        409, "With the traffic there is, no experiment could decide anything; `detail` says why."
    ),
    "halted": Kind(409, "Everything is halted until somebody runs `ldfi resume`."),
    "idempotency-in-progress": Kind(
        409, "The first request with this idempotency key is still being worked on; try later."
    ),
    "too-slow": Kind(408, "The body did not come within the time there is for one."),
    "too-large": Kind(413, "The body is larger than the service takes at once."),
    "unsupported-media-type": Kind(415, "The body's media type is not one this route reads."),
    "unsupported-encoding": Kind(415, "The body's content encoding is not one this route reads."),
    "invalid": Kind(422, "The request does not fit the API; `errors`, where given, says where."),
    "invalid-cursor": Kind(422, "The cursor is not one this list gave out; begin without one."),
    "no-prometheus": Kind(
        422, "Prometheus shall count the outcomes, but LDFI_PROMETHEUS_URL is not set."
    ),
    "unknown-point": Kind(422, "The request class never reaches this injection point."),
    "idempotency-key-reused": Kind(
        422, "This idempotency key was used before, for another request."
    ),
    "rate-limited": Kind(429, "Too many requests; `Retry-After` says how many seconds to wait."),
    "internal": Kind(
        500, "The service failed; its log has the details under the `incident` given here."
    ),
    "prometheus": Kind(502, "Prometheus gave no usable answer."),
    "not-delivered": Kind(502, "A notification did not get through."),
    "no-leader": Kind(
        503, "No process has the engine just now; `Retry-After` says how many seconds to wait."
    ),
    "not-ready": Kind(
        503, "The process is up, but its engine, its database or Kafka does not answer."
    ),
    "busy": Kind(503, "Too many bodies wait to be decoded; send the same again later."),
    "stream-unavailable": Kind(503, "Kafka does not acknowledge; send the same again later."),
    "too-many-streams": Kind(503, "No more event streams can be open at once; try again later."),
    "unavailable": Kind(503, "The database does not answer; try again later."),
}
"""Every type of problem there is. The names are stable: programs rely on them."""

STATUSES: Final = tuple(sorted({kind.status for kind in KINDS.values()}))

SCHEMA: Final[Mapping[str, Any]] = {
    "title": "Problem",
    "description": "An error, as RFC 9457 has it.",
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri",
            "description": f"What went wrong, for programs: `{TYPE}` and a name that stays.",
        },
        "title": {"type": "string", "description": "The same name, for people."},
        "status": {
            "type": "integer",
            "minimum": 400,
            "maximum": 599,
            "description": "The HTTP status that it came with.",
        },
        "detail": {"type": "string", "description": "What was wrong this time, and the way out."},
        "errors": {
            "type": "array",
            "description": "Where the request does not fit the API, and why not.",
            "items": {
                "type": "object",
                "required": ["at", "what"],
                "properties": {
                    "at": {
                        "type": "string",
                        "description": "The field: `body/settings/members`, `query/limit`.",
                        "examples": ["query/limit"],
                    },
                    "what": {
                        "type": "string",
                        "description": "What is wrong with it, the value, and what it may be.",
                        "examples": ["must be at most 200, got 201"],
                    },
                },
            },
        },
        "incident": {
            "type": "string",
            "description": "Under this number the service's log has the details.",
        },
    },
}
"""The JSON Schema of every problem document."""

_OF_ERROR: Final[tuple[tuple[type[ExperimentsError], str], ...]] = (
    (NotFound, "not-found"),
    (Deposed, "no-leader"),
    (Halted, "halted"),
    (CannotDecide, "cannot-decide"),
    (Conflict, "conflict"),
    (Invalid, "invalid"),
    (PrometheusError, "prometheus"),
    (NotDelivered, "not-delivered"),
)
_OF_STATUS: Final[Mapping[int, str]] = {
    400: "bad-request",
    404: "no-such-route",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-media-type",
}


class Problem(Exception):  # noqa: N818
    """Raised by a route to answer with a problem document. ``kind`` is one of :data:`KINDS`; ``at``
    the field that is wrong, such as ``query/limit``, where it is one."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        *,
        at: str | None = None,
    ) -> None:
        super().__init__(detail)
        if kind not in KINDS or KINDS[kind].status != status:
            raise AssertionError(f"{status} {kind!r} is not in the table of problems")
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = headers
        self.at = at


def problem_of(error: ExperimentsError) -> Problem | None:
    """Find the problem that one of our errors is to callers; None for a failure of the service."""
    for known, kind in _OF_ERROR:
        if isinstance(error, known):
            return Problem(KINDS[kind].status, kind, str(error))
    return None


def answer_of(problem: Problem) -> Response:
    """Write a problem as an answer."""
    if problem.at is None:
        return _answer(problem.kind, problem.detail, problem.headers)
    places = [{"at": problem.at, "what": problem.detail}]
    return _answer(problem.kind, _UNFIT, problem.headers, errors=places)


def install(app: FastAPI) -> None:
    """Answer every error of this app with a problem document."""

    @app.exception_handler(Problem)
    async def on_problem(_request: Request, problem: Problem) -> Response:
        return answer_of(problem)

    @app.exception_handler(ExperimentsError)
    async def on_error(request: Request, error: ExperimentsError) -> Response:
        problem = problem_of(error)
        if problem is None:
            return _incident("internal", request, error)
        return _answer(problem.kind, problem.detail)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(_request: Request, error: RequestValidationError) -> Response:
        places = [{"at": place(item["loc"]), "what": fault(item)} for item in items(error)]
        return _answer("invalid", _UNFIT, errors=places)

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        kind = _OF_STATUS.get(error.status_code)
        if kind == "method-not-allowed":
            return _answer(kind, f"{request.method} is not for this path", _allow(request, error))
        if kind is not None:
            return _answer(kind, str(error.detail), error.headers)
        document = {"type": "about:blank", "status": error.status_code, "title": str(error.detail)}
        return _written(document, error.status_code, error.headers)

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeout)
    async def on_database(request: Request, error: Exception) -> Response:
        return _incident("unavailable" if is_away(error) else "internal", request, error)

    app.add_middleware(_Incidents)


def _allow(request: Request, error: HTTPException) -> Mapping[str, str] | None:
    """List every method of the path: Starlette names those of the first route there only."""
    allowed = getattr(request.app.state, "allowed", None)
    return error.headers if allowed is None else {"Allow": ", ".join(allowed(request))}


class _Incidents:
    """Answers what nothing else did.

    Starlette's own last resort raises again once it has answered, and the server then closes the
    connection under a client that is already sending its next request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            if started or scope["type"] != "http":
                raise  # too late to say anything: cutting the answer short says that it failed
            response = _incident("internal", Request(scope), error)
            await response(scope, receive, send)


def _incident(kind: str, request: Request, error: Exception) -> Response:
    """Return the caller a number, and the log the details under the same number."""
    incident = secrets.token_hex(8)
    _log.error(
        "incident %s: %s %s failed",
        incident,
        request.method,
        request.url.path,
        exc_info=error,
        extra={"incident": incident},
    )
    return _answer(kind, KINDS[kind].meaning, incident=incident)


def _answer(
    kind: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    return _written({**_document(kind, detail), **more}, KINDS[kind].status, headers)


def _document(kind: str, detail: str) -> dict[str, Any]:
    return {
        "type": TYPE + kind,
        "title": kind.replace("-", " "),
        "status": KINDS[kind].status,
        "detail": detail,
    }


def _written(
    document: Mapping[str, Any], status: int, headers: Mapping[str, str] | None
) -> Response:
    """Write a problem, in ASCII only: what a caller sent, lone surrogates say, may come back in
    it."""
    challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Response(
        json.dumps(document), status, {**challenge, **(headers or {})}, media_type=MEDIA_TYPE
    )


def described(status: int) -> dict[str, Any]:
    """Describe the problems of one status as a response object of OpenAPI."""
    kinds = {name: kind for name, kind in KINDS.items() if kind.status == status}
    examples = {
        name: {"value": _document(name, kind.meaning), "summary": kind.meaning}
        for name, kind in kinds.items()
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    response: dict[str, Any] = {
        "description": "\n".join(f"`{name}`: {kind.meaning}" for name, kind in kinds.items()),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": examples}},
    }
    if status in _HEADERS:
        name, meaning = _HEADERS[status]
        response["headers"] = {name: {"description": meaning, "schema": {"type": "string"}}}
    return response


_HEADERS = {
    401: ("WWW-Authenticate", "How to say who is calling."),
    429: ("Retry-After", "Seconds to wait."),
}


def page() -> str:
    """Write ``docs/problems.md`` from the table above (``make docs`` runs this module)."""
    rows = [
        f'| <a id="{name}"></a>`{name}` | {kind.status} | {kind.meaning} |'
        for name, kind in KINDS.items()
    ]
    return _PAGE.format(type=TYPE, rows="\n".join(rows))


_PAGE = """\
# Problems

Every error of the API is a problem document ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) of
media type `application/problem+json`:

```json
{{"type": "{type}not-found", "title": "not found", "status": 404, "detail": "no campaign 'x'"}}
```

`type` is `{type}` and a name below. It is an identifier: compare it, do not
fetch it. Names do not change; `detail` is for people and may. `invalid` may carry `errors`, a list
of `at` (where) and `what` (why not). Failures of the service itself carry an `incident`, under
which its log has the details. Statuses that have no name here have the type `about:blank`.

This page is generated: `python -m ldfi.experiments.api.problems > docs/problems.md`.

| name | status | meaning |
|---|---|---|
{rows}
"""

if __name__ == "__main__":
    sys.stdout.write(page())
