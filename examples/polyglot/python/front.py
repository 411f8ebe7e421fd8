"""The edge: what is asked from outside comes here first, and goes on to the shop.

Planted: nothing stands in for the shop.
"""

from __future__ import annotations

import os

import httpx
import uvicorn
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from telemetry import set_up, traced

from ldfi import fit

set_up(fit.Sampler(ALWAYS_ON))
fit.install()
shop = httpx.AsyncClient(base_url=os.environ["SHOP"], timeout=5, trust_env=False)


async def book(request: Request) -> Response:
    try:
        answer = await shop.get(request.url.path)
    except httpx.TransportError as error:
        return PlainTextResponse(f"shop: {error}", status_code=502)
    return Response(answer.content, answer.status_code, media_type=answer.headers["content-type"])


def health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


if __name__ == "__main__":
    routes = [Route("/books/{number:int}", book), Route("/health", health)]
    app = fit.EdgeMiddleware(traced(Starlette(routes=routes)))
    uvicorn.run(app, port=int(os.environ["PORT"]), log_level="critical", lifespan="off")
