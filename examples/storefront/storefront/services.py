"""Everything the shop asks others for."""

from __future__ import annotations

from typing import Any

import httpx


class Unavailable(Exception):  # noqa: N818
    """A service did not answer as it should."""


class Services:
    """The other services, each reached by its name."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, service: str, path: str) -> Any:
        """Ask a service. Raises Unavailable."""
        return await self._ask("GET", service, path)

    async def post(self, service: str, path: str) -> Any:
        """Tell a service to do something. Raises Unavailable."""
        return await self._ask("POST", service, path)

    async def get_or(self, default: Any, service: str, path: str) -> Any:
        """Ask a service for something that the page can do without."""
        try:
            return await self.get(service, path)
        except Unavailable:
            return default

    async def _ask(self, method: str, service: str, path: str) -> Any:
        try:
            response = await self._http.request(method, f"http://{service}{path}")
            return response.raise_for_status().json()
        except httpx.HTTPError as error:
            raise Unavailable(f"{service}: {error}") from error
