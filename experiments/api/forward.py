"""What needs the engine goes to the process that has it: the leader.

The route has already found out who calls, what they may and whether the body is small enough. Here
the request is sent on as it came, with the caller's own token, and the answer is passed back piece
by piece, for rules and events are waited for. Which process leads is on record in the database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Final

import httpx
from fastapi import Request, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from ldfi.experiments.api.caller_address import CALLER, vouched
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import leaders
from ldfi.experiments.store.database import Database

_log = logging.getLogger("ldfi")

FORWARDED: Final = "ldfi-forwarded"
"""A request that carries this header is not forwarded again: two that each take the other for the
leader would never end."""

BELIEVED: Final = 1.0
"""Seconds for which is believed who leads."""

_TIMEOUT: Final = httpx.Timeout(40.0, connect=2.0)
"""Edges wait for 30 seconds at most, and streams of events send something every 15."""

_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade expect".split()
)
"""Headers of one connection (RFC 9110, 7.6.1)."""

_OURS: Final = _HOP | {b"date", b"server"}
"""What our own server says on each answer."""


class Forwarder:
    """Sends requests to whichever process leads. ``answers``: whether the database did, lately."""

    def __init__(self, database: Database) -> None:
        self.answers = True
        self._database = database
        self._url = ""
        self._until = 0.0
        self._looking = asyncio.Lock()
        unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        self._client = httpx.AsyncClient(limits=unlimited, trust_env=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def leader(self) -> str:
        """Find out where the leader is; empty when nobody leads. When the database does not say:
        where it was last."""
        async with self._looking:
            if time.monotonic() >= self._until:
                await run_in_threadpool(self._look)
                self._until = time.monotonic() + BELIEVED
        return self._url

    async def forward(self, request: Request) -> Response:
        """Fetch the leader's answer. Raises Problem 503 when there is no leader, or none that
        answers."""
        url = await self.leader()
        if not url or FORWARDED in request.headers:
            raise no_leader("nobody leads just now")
        try:
            answer = await self._client.send(await _onward(request, url), stream=True)
        except httpx.HTTPError as error:
            self._until = 0.0
            raise no_leader(f"the leader does not answer ({type(error).__name__})") from error
        response = StreamingResponse(_pieces(answer), answer.status_code)
        response.raw_headers = [
            (name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _OURS
        ]
        return response

    def _look(self) -> None:
        try:
            with self._database.read() as session:
                office = leaders.current(session)
        except SQLAlchemyError as error:
            self.answers = False
            _log.warning("the database does not say who leads: %s", error)
        else:
            self.answers = True
            self._url = office.url if office is not None else ""


def engine_of(request: Request) -> Engine:
    """Return the engine of this process. Raises Problem 503 when it has none."""
    engine: Engine | None = request.app.state.engine
    if engine is None:
        raise no_leader("this process does not lead")
    return engine


def no_leader(why: str) -> Problem:
    """Make the answer where an engine is needed and none is to be had."""
    return Problem(503, "no-leader", f"{why}; try again in a second", {"Retry-After": "1"})


async def _onward(request: Request, url: str) -> httpx.Request:
    """Address the same request to another process. The Host stays: answers may have links."""
    came = [
        (name, value)
        for name, value in request.headers.raw
        if name not in _HOP | {b"content-length", b"x-forwarded-for", CALLER.encode()}
    ]
    whose = (CALLER.encode(), vouched(request).encode())
    target = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    return httpx.Request(
        request.method,
        httpx.URL(url).copy_with(raw_path=target.removesuffix(b"?")),
        headers=[*came, whose, (FORWARDED.encode(), b"1")],
        content=b"" if request.method in {"GET", "HEAD"} else await request.body(),
        extensions={"timeout": _TIMEOUT.as_dict()},
    )


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Pass the body on as it comes. A stream of events just ends when the leader is gone: its
    clients come back. Any other body must not look whole when it is not."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx.HTTPError:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            raise
    finally:
        await answer.aclose()
