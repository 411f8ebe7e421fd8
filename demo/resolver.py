"""Names of services as hosts: the demo's DNS.

Application code calls ``http://ratings/titles/17``. Which address that is, ``DEMO_HOSTS`` says: a
JSON object of names to ``address:port``. Resolving below HTTP keeps the name in URLs, in spans and
in the names of injection points, so nothing depends on which ports happened to be free.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import httpcore
import httpx

from demo.stream import connect

VARIABLE = "DEMO_HOSTS"

if importlib.util.find_spec("sniffio") is None:
    # httpcore tries to import it several times per request, and each time the disk is searched.
    sys.modules["sniffio"] = None  # type: ignore[assignment]


def hosts_from_environment() -> dict[str, str]:
    """Names to ``address:port``; empty when nobody has said."""
    hosts = json.loads(os.environ.get(VARIABLE) or "{}")
    return {str(name): str(address) for name, address in hosts.items()}


class NamedBackend(httpcore.AsyncNetworkBackend):
    """Connects to where a service of that name listens."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._hosts = hosts

    async def connect_tcp(
        self,
        host: str,
        port: int,  # noqa: ARG002 - the address says which
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        address = self._hosts.get(host)
        if address is None:
            raise httpcore.ConnectError(f"no service is called {host!r}; known: {[*self._hosts]}")
        address, _, named_port = address.rpartition(":")
        return await connect(address, int(named_port), timeout)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class PoolPerService(httpcore.AsyncConnectionPool):
    """A pool for each service: a pool looks at all of its connections for every request."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._backend = NamedBackend(hosts)
        self._pools: dict[bytes, httpcore.AsyncConnectionPool] = {}

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        host = request.url.host
        if host not in self._pools:
            self._pools[host] = httpcore.AsyncConnectionPool(
                max_connections=None, keepalive_expiry=30.0, network_backend=self._backend
            )
        return await self._pools[host].handle_async_request(request)

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    async def __aenter__(self) -> PoolPerService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class NamedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport over pools that resolve through :class:`NamedBackend`."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        # httpx has no parameter for the network backend; the pool is all its __init__ sets.
        self._pool = PoolPerService(hosts)
