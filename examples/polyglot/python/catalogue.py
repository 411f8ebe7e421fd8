"""What is known of a book. It has OpenTelemetry and knows nothing of fit: the proxies that its
calls pass fail them.

Planted: nothing stands in for the prices; the placeholder does for the covers, and nothing for it.
"""

from __future__ import annotations

import os
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from telemetry import set_up, traced

set_up()
services = httpx.AsyncClient(timeout=2, trust_env=False)


async def asked(service: str, path: str) -> Any:
    return (await services.get(f"{os.environ[service]}{path}")).raise_for_status().json()


async def cover(number: int) -> Any:
    try:
        return await asked("COVERS", f"/covers/{number}")
    except httpx.HTTPError:
        return await asked("PLACEHOLDER", f"/covers/{number}")


async def price(number: int) -> Any:
    """Ask through Envoy. Where there is none, have a price."""
    return await asked("PRICES", f"/prices/{number}") if "PRICES" in os.environ else 12


async def book(request: Request) -> JSONResponse:
    number = request.path_params["number"]
    try:
        return JSONResponse({"price": await price(number), "cover": await cover(number)})
    except httpx.HTTPError as error:
        return JSONResponse({"error": str(error)}, status_code=502)


def health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


if __name__ == "__main__":
    routes = [Route("/books/{number:int}", book), Route("/health", health)]
    app = traced(Starlette(routes=routes))
    uvicorn.run(app, port=int(os.environ["PORT"]), log_level="critical", lifespan="off")
