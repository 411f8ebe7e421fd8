"""The page of a book, in FastAPI: what it promises, and how it does without most of what it asks.

Planted: it cannot do without the book itself, nor without delivery, which it asks twice *of the
same service* (a wrong retry); a price has a fallback of a fallback; of recommendations it knows
that they may be away, and not that they may answer 500 (a mask of one status).
"""

from __future__ import annotations

import os
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, HTTPException
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from telemetry import set_up

HTTPXClientInstrumentor().instrument(tracer_provider=set_up())
app = FastAPI()
services = httpx.AsyncClient(timeout=5, trust_env=False)


def at(service: str, path: str) -> str:
    return f"{os.environ[service.upper()]}{path}"


async def first(*urls: str) -> Any:
    """Return the first answer that is one. Raises HTTPException where there is none."""
    for url in urls:
        try:
            return (await services.get(url)).raise_for_status().json()
        except httpx.HTTPError:
            continue
    raise HTTPException(500, f"none of {len(urls)} answered")


async def optional(url: str) -> Any:
    try:
        return await first(url)
    except HTTPException:
        return None


async def recommended(book: int) -> Any:
    try:
        answer = await services.get(at("recommendations", f"/like/{book}"))
    except httpx.HTTPError:
        return []
    if answer.status_code == 503:
        return []
    return answer.raise_for_status().json()


@app.get("/health")
def health() -> str:
    return "ok"


@app.get("/books/{book}")
async def page(book: int) -> dict[str, Any]:
    delivery = at("shipping", "/estimate")
    return {
        "book": await first(at("catalogue", f"/books/{book}")),
        "cover": await optional(at("catalogue", f"/covers/{book}")),
        "author": await optional(at("catalogue", f"/authors/{book}")),
        "price": await first(
            at("prices", f"/prices/{book}"),
            at("pricecache", f"/cached/{book}"),
            at("listprices", f"/listed/{book}"),
        ),
        "reviews": await optional(at("reviews", f"/reviews/{book}")),
        "stars": await optional(at("reviews", f"/stars/{book}")),
        "recommended": await recommended(book),
        "delivery": await first(delivery, delivery),
        "options": await optional(at("shipping", "/options")),
        "wrapping": await optional(at("shipping", "/wrapping")),
    }


if __name__ == "__main__":
    uvicorn.run(
        OpenTelemetryMiddleware(app),
        port=int(os.environ["PORT"]),
        log_level="warning",
        lifespan="off",
    )
