"""Names of services as hosts: the demo's DNS.

Application code calls ``http://ratings/titles/17``. Which address that is, ``DEMO_HOSTS`` says: a
JSON object of names to ``address:port``. Resolving below HTTP keeps the name in URLs, in spans and
in the names of injection points, so nothing depends on which ports happened to be free.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping

import httpcore
import httpx

from ldfi.demo.wire import Wire

VARIABLE = "DEMO_HOSTS"

if importlib.util.find_spec("sniffio") is None:
    # httpcore tries to import it several times per request, and each time the disk is searched.
    sys.modules["sniffio"] = None  # type: ignore[assignment]


def hosts_from_environment() -> dict[str, str]:
    """Read from names to ``address:port``; empty when nobody has said."""
    hosts = json.loads(os.environ.get(VARIABLE) or "{}")
    return {str(name): str(address) for name, address in hosts.items()}


class NamedPool(httpcore.AsyncConnectionPool):
    """A pool that connects to where a service of that name listens."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        super().__init__(max_connections=None)
        self._hosts = hosts

    def create_connection(self, origin: httpcore.Origin) -> httpcore.AsyncConnectionInterface:
        name = origin.host.decode("ascii")
        if name not in self._hosts:
            raise httpcore.ConnectError(f"no service is called {name!r}; known: {[*self._hosts]}")
        address, _, port = self._hosts[name].rpartition(":")
        return Wire(origin.host, address, int(port))


class NamedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport over a :class:`NamedPool`."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        # httpx has no parameter for the pool, which is all that its __init__ sets.
        self._pool = NamedPool(hosts)
