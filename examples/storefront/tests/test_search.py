from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from ldfi.explore.pytest.fixture import Ldfi

pytestmark = pytest.mark.anyio


async def test_a_search_finds_something(client: httpx.AsyncClient, ldfi: Ldfi) -> None:
    response = await client.get("/search", params={"q": "chair"})

    assert response.status_code == 200
    assert response.json()["results"] or ldfi.degraded()
