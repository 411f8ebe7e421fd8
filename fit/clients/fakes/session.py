"""aiohttp's session, where a fake takes the place of all that is beneath ``ClientSession``.

The real session is given a connection that goes nowhere, so that middlewares, tracing and the
injection point are passed as in production; what the fake answers is what came over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import BaseConnector

from ldfi.fit import patching
from ldfi.fit.clients.fakes import ANSWER, calling
from ldfi.fit.inject import armed

_answering: ContextVar[Any] = ContextVar("fit-fake-session", default=None)


class _Silence(asyncio.Transport):
    """What nothing is sent over and nothing comes from, but what a fault puts in its place."""

    def __init__(self, peer: Any, protocol: ResponseHandler) -> None:
        super().__init__({"peername": peer})
        self._protocol = protocol

    def is_closing(self) -> bool:
        """Return a message that it is open; there is nothing to close."""
        return False

    def close(self) -> None:
        """Close nothing."""

    def abort(self) -> None:
        """Tell that the connection is lost, soon, as every transport does."""
        asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)


class _Nowhere:
    """A connection that nothing is sent over."""

    def __init__(self, connector: Any, request: Any, answer: Any) -> None:
        setattr(self, ANSWER, answer)
        peer = (request.url.host, request.url.port)
        self.protocol = ResponseHandler(asyncio.get_running_loop())
        self.transport = _Silence(peer, self.protocol)
        self.protocol.transport = self.transport
        self.closed = False
        self._connector = connector

    def close(self) -> None:
        """Close nothing."""

    def release(self) -> None:
        """Give nothing back."""


def patch() -> None:
    """Give out connections that go nowhere, where a fake answers."""
    patching.put(BaseConnector, "connect", _connected)


def _connected(original: Any) -> Any:
    async def connect(connector: Any, request: Any, *rest: Any, **options: Any) -> Any:
        answer = _answering.get()
        if answer is None:
            return await original(connector, request, *rest, **options)
        return _Nowhere(connector, request, answer)

    return connect


def through_session(real: Any, fake: Any) -> Callable[..., Any]:
    """Make what stands for ``ClientSession._request``: ``real`` is asked, ``fake`` answers."""

    async def request(session: Any, *asked: Any, **options: Any) -> Any:
        if not armed():
            return await fake(session, *asked, **options)
        given: list[Any] = []

        async def answer(_request: Any, _connection: Any) -> Any:
            token = _answering.set(None)
            try:
                with calling("passed"):
                    response = await fake(session, *asked, **options)
            finally:
                _answering.reset(token)
            given.append(response._history)
            response.start = _started(response)
            return response

        token = _answering.set(answer)
        try:
            with calling("asked"):
                response = await real(session, *asked, **options)
        finally:
            _answering.reset(token)
        if given:
            response._history = given[-1]  # the fake follows redirects by itself
        return response

    return request


def _started(response: Any) -> Any:
    async def start(_connection: Any) -> Any:
        return response

    return start
