from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.ldfi(max_size=2, protected=["*:carts/*", "*:payments/*"])
async def test_who_has_paid_is_told_so(client: httpx.AsyncClient) -> None:
    response = await client.post("/checkout/17")

    assert response.status_code == 200
    assert response.json()["payment"] == "charge"
