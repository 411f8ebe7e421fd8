"""The counter of a kiosk, with httpx: what it handles of the failures of what it asks, and how.

Planted: whoever wrote each of these thought of some kinds of failure and not of others.
"""

from __future__ import annotations

import os
from typing import Any

import httpx
import uvicorn
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from telemetry import set_up

HTTPXClientInstrumentor().instrument(tracer_provider=set_up())
services = httpx.AsyncClient(timeout=float(os.environ["PATIENCE"]), trust_env=False)


async def asked(service: str) -> httpx.Response:
    return await services.get(f"{os.environ[service.upper()]}/papers")


async def papers() -> Any:
    """Answer with the catalogue, which has no fallback."""
    return (await asked("catalogue")).raise_for_status().json()


async def price() -> Any:
    """Fall back on exceptions only: an answer is an answer, whatever it says."""
    try:
        answer = await asked("prices")
    except httpx.TransportError:
        answer = await asked("pricelist")
    return answer.raise_for_status().json()


async def offers() -> Any:
    """Know of the 500 that this service is known for, and of nothing else."""
    answer = await asked("offers")
    return None if answer.status_code == 500 else answer.raise_for_status().json()


async def recommended() -> Any:
    """Know of everything but a 500."""
    try:
        answer = await asked("recommended")
        if answer.status_code != 500:
            return answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return None
    raise RuntimeError(answer.text)


async def review() -> Any:
    """Take for granted that a good answer says something."""
    try:
        text = (await asked("reviews")).raise_for_status().text
    except httpx.HTTPError:
        return None
    return text.splitlines()[0]


async def page(_request: Request) -> JSONResponse:
    return JSONResponse(
        {
            "papers": await papers(),
            "price": await price(),
            "offers": await offers(),
            "recommended": await recommended(),
            "review": await review(),
        }
    )


def health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


if __name__ == "__main__":
    app = Starlette(routes=[Route("/", page), Route("/health", health)])
    uvicorn.run(
        OpenTelemetryMiddleware(app),
        port=int(os.environ["PORT"]),
        log_level="critical",
        lifespan="off",
    )
