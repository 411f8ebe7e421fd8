from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.ldfi(max_size=2, protected=["*:catalogue/products/*"])
async def test_a_product_can_be_bought_from_its_page(client: httpx.AsyncClient) -> None:
    response = await client.get("/products/17")

    assert response.status_code == 200
    assert response.json()["name"] == "Chair"
    assert response.json()["price"] > 0
