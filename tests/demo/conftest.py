"""The whole application in one process: every service, calling the others without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpx
import pytest

from ldfi.demo import serve
from ldfi.demo.worlds import SHOP, STREAMING, World

Edge = tuple[str, str]
"""A caller and the service it calls."""


class Hangs(BaseException):
    """A call that hangs and whose caller waits for ever. No ``except Exception`` catches it."""


@dataclass
class Town:
    """``failing`` calls are answered with 503; ``slow`` ones outlast their caller's timeout."""

    world: World = STREAMING
    failing: set[Edge] = field(default_factory=set)
    slow: set[Edge] = field(default_factory=set)
    calls: list[Edge] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._apps = {
            name: httpx.ASGITransport(serve.application(name, self._client(name), self.world))
            for name in self.world.names
        }

    def _client(self, caller: str) -> httpx.AsyncClient:
        async def answer(request: httpx.Request) -> httpx.Response:
            edge = caller, request.url.host
            self.calls.append(edge)
            if edge in self.failing:
                return httpx.Response(503, text="broken")
            if edge in self.slow:
                if request.extensions["timeout"]["read"] is None:
                    raise Hangs
                raise httpx.ReadTimeout("slow", request=request)
            inside = await self._apps[request.url.host].handle_async_request(request)
            return httpx.Response(
                inside.status_code, headers=inside.headers, content=await inside.aread()
            )

        return httpx.AsyncClient(transport=httpx.MockTransport(answer))

    def get(
        self,
        url: str,
        failing: Iterable[Edge] = (),
        slow: Iterable[Edge] = (),
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Ask one service, as ``http://NAME/PATH``, while some calls fail or are slow."""
        self.failing, self.slow = set(failing), set(slow)
        self.calls = []
        return asyncio.run(self._get(url, headers or {"x-device-id": "device-0042"}))

    async def _get(self, url: str, headers: dict[str, str]) -> httpx.Response:
        service = self._apps[httpx.URL(url).host]
        async with httpx.AsyncClient(transport=service) as client:
            return await client.get(url, headers=headers)


@pytest.fixture
def town() -> Town:
    """All services of the streaming world, none of them broken."""
    return Town()


@pytest.fixture
def shop() -> Town:
    """All services of the shop, none of them broken."""
    return Town(SHOP)
