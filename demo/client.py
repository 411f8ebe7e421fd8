"""How services call each other: one shared client per process, and one way to fetch JSON."""

from __future__ import annotations

from typing import Any

import httpx

from ldfi.demo import limits
from ldfi.demo.resolver import NamedTransport, hosts_from_environment


def new_client() -> httpx.AsyncClient:
    """Make a client that finds services by name. Share it: connections are kept alive."""
    return httpx.AsyncClient(
        transport=NamedTransport(hosts_from_environment()),
        timeout=limits.LEAF,
        trust_env=False,
    )


async def fetch(
    client: httpx.AsyncClient, url: str, seconds: float | None = limits.LEAF, **query: str
) -> Any:
    """Fetch a JSON document. Raises httpx.HTTPError: no answer within ``seconds``, or an error."""
    response = await client.get(url, params=query or None, timeout=seconds)
    response.raise_for_status()
    return response.json()
