from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fakes import answer
from storefront.app import create_app
from storefront.services import Services


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def client(anyio_backend: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as to_services:
        app = create_app(Services(to_services))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://storefront") as client:
            yield client
