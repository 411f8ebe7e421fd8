"""What every route does before its own work: who calls, what may they do, how much do they send.

In this order: whoever may not call is told so before a byte of the body is read. FastAPI by itself
reads the body first, and answers one that it cannot read before it has looked at the token.

A route that needs the engine does its work where the engine is: see
:mod:`ldfi.experiments.api.forward`.

On a router it is one argument: ``APIRouter(route_class=GuardedRoute)``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Final

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Message

from ldfi.experiments.api.auth import Needs
from ldfi.experiments.api.forward import Forwarder, engine_of
from ldfi.experiments.api.problems import Problem

MAX_BODY: Final = 1024 * 1024
BODY_SECONDS: Final = 30.0
"""How long a body may take to come in."""

CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route for callers of its role, with bodies of ``max_body`` bytes at most."""

    max_body: ClassVar[int] = MAX_BODY

    def guards(self) -> list[Needs]:
        """List the roles that it asks for."""
        return [each.call for each in self.dependant.dependencies if isinstance(each.call, Needs)]

    def is_for_leader(self, app: FastAPI) -> bool:
        """Return whether this needs the engine, and another process has it."""
        needed = any(each.call is engine_of for each in self.dependant.dependencies)
        return needed and app.state.engine is None

    def get_route_handler(self) -> Handler:
        """Make what FastAPI calls for a request."""
        guards, handle = self.guards(), self.handler()
        dependants = [self.dependant, *self.dependant.dependencies]
        known = {each.alias for dependant in dependants for each in dependant.query_params}

        async def guarded(request: Request) -> Response:
            for guard in guards:
                await guard.admit(request)
            _check_names(request, known)
            if request.method in CHANGING:
                request = await _with_body(request, self.max_body)
                if self.body_field is not None:
                    await _check_json(request)
            if self.is_for_leader(request.app):
                forwarder: Forwarder = request.app.state.forwarder
                return await forwarder.forward(request)
            return await handle(request)

        return guarded

    def handler(self) -> Handler:
        """Return the route's own work. The body is read by then."""
        return super().get_route_handler()


def _check_names(request: Request, known: set[str]) -> None:
    """Refuse unknown names: a filter with its name misspelt would let everything through."""
    for name in request.query_params:
        if name not in known:
            there_are = ", ".join(sorted(known)) or "none"
            said = f"unknown query parameter; known: {there_are}"
            raise Problem(422, "invalid", said, at=f"query/{name}")


async def _with_body(request: Request, most: int) -> Request:
    """Read the body of a request. Raises Problem 413 as soon as that is too much."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > most:
            raise Problem(413, "too-large", f"a body may have {most} bytes; send less at once")
        return message

    read = Request(request.scope, receive)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            await read.body()
    except TimeoutError as error:
        raise Problem(
            408,
            "too-slow",
            f"the body was not here within {BODY_SECONDS:g} s",
            {"Connection": "close"},
        ) from error
    except ClientDisconnect as error:
        raise Problem(400, "bad-request", "the connection ended before the body did") from error
    return read


async def _check_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    json = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    if await request.body() and not json:
        raise Problem(415, "unsupported-media-type", f"{kind!r}: send application/json")
