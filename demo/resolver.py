"""Names of services as hosts: the demo's DNS.

Application code calls ``http://ratings/titles/17``. Which address that is, ``DEMO_HOSTS`` says: a
JSON object of names to ``address:port``. Resolving below HTTP keeps the name in URLs, in spans and
in the names of injection points, so nothing depends on which ports happened to be free.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import httpcore
import httpx

VARIABLE = "DEMO_HOSTS"


def hosts_from_environment() -> dict[str, str]:
    """Names to ``address:port``; empty when nobody has said."""
    hosts = json.loads(os.environ.get(VARIABLE) or "{}")
    return {str(name): str(address) for name, address in hosts.items()}


class NamedBackend(httpcore.AsyncNetworkBackend):
    """Connects to where a service of that name listens."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._hosts = hosts
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,  # noqa: ARG002 - the address says which
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        address = self._hosts.get(host)
        if address is None:
            raise httpcore.ConnectError(f"no service is called {host!r}; known: {[*self._hosts]}")
        address, _, named_port = address.rpartition(":")
        return await self._network.connect_tcp(
            address, int(named_port), timeout, local_address, socket_options
        )

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


class NamedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport over a pool that resolves through :class:`NamedBackend`."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        # httpx has no parameter for the network backend; the pool is all its __init__ sets.
        self._pool = httpcore.AsyncConnectionPool(
            max_connections=None,
            max_keepalive_connections=50,
            keepalive_expiry=30.0,
            network_backend=NamedBackend(hosts),
        )
