"""Errors as RFC 9457 problem documents, all written by one function."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from experiments.errors import Conflict, ExperimentsError, Halted, NotFound

TYPE = "https://ldfi.dev/problems/"
_STATUS: dict[type[ExperimentsError], tuple[int, str]] = {
    NotFound: (404, "not-found"),
    Halted: (409, "halted"),
    Conflict: (409, "conflict"),
}


class Problem(Exception):  # noqa: N818
    """Raised by a route to answer with a problem document. ``kind`` is stable, for programs."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail


def install(app: FastAPI) -> None:
    """Answer every error of this app with a problem document."""

    @app.exception_handler(Problem)
    async def on_problem(_request: Request, problem: Problem) -> JSONResponse:
        return _answer(problem.status, problem.kind, problem.detail)

    @app.exception_handler(ExperimentsError)
    async def on_error(_request: Request, error: ExperimentsError) -> JSONResponse:
        status, kind = _STATUS.get(type(error), (500, "internal"))
        return _answer(status, kind, str(error))

    @app.exception_handler(RequestValidationError)
    async def on_invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = [
            {"at": "/".join(map(str, item["loc"])), "what": item["msg"]} for item in error.errors()
        ]
        return _answer(422, "invalid", "the request does not fit the API", errors=places)

    @app.exception_handler(HTTPException)
    async def on_http(_request: Request, error: HTTPException) -> JSONResponse:
        return _answer(error.status_code, "http", str(error.detail))


def _answer(status: int, kind: str, detail: str, **more: Any) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(
        {"type": TYPE + kind, "title": kind, "status": status, "detail": detail, **more},
        status_code=status,
        headers=headers,
        media_type="application/problem+json",
    )
