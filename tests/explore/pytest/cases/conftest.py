"""A small application, in the ways in which applications are tested."""

from __future__ import annotations

import httpx
import pytest


def fake(request: httpx.Request) -> httpx.Response:
    """Every dependency."""
    return httpx.Response(200, json={"asked": request.url.path})


@pytest.fixture
def http() -> httpx.Client:
    """Reaches the dependencies; made anew for each run."""
    return httpx.Client(transport=httpx.MockTransport(fake), timeout=0.05)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
