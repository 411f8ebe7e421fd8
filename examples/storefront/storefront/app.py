"""The routes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from storefront import checkout, product, search
from storefront.services import Services


def create_app(services: Services) -> FastAPI:
    """Make the application, on top of its services."""
    app = FastAPI()

    @app.get("/products/{sku}")
    async def product_page(sku: str) -> dict[str, Any]:
        return await product.page(services, sku)

    @app.post("/checkout/{cart_id}")
    async def place_order(cart_id: str) -> dict[str, Any]:
        return await checkout.place_order(services, cart_id)

    @app.get("/search")
    async def search_results(q: str) -> dict[str, Any]:
        return await search.results(services, q)

    return app
