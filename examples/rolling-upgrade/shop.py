"""The service that users talk to: it reads each item from three replicas, by quorum.

A read asks all three and takes the newest of the answers. Two answers are a quorum. With one answer
the item is shown as it is, marked ``stale``; with none the request fails. (With READS=strict, one
answer is not enough.)

    python shop.py PORT

Where the replicas are, DEMO_HOSTS says: ``{"store-1": "127.0.0.1:5001", ...}``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo import telemetry
from ldfi.demo.client import new_client
from ldfi.experiments.cli.processes import end_with_parent

REPLICAS = ("store-1", "store-2", "store-3")
QUORUM = 2
PATIENCE = 2.0
ENOUGH = QUORUM if os.environ.get("READS") == "strict" else 1


async def item(request: Request) -> Response:
    """Show one item, from as many replicas as answer."""
    client, key = request.app.state.client, request.path_params["key"]
    answers = await asyncio.gather(*(ask(client, name, key) for name in REPLICAS))
    found = [answer for answer in answers if answer is not None]
    if len(found) < ENOUGH:
        return JSONResponse({"error": "the store does not answer"}, status_code=503)
    newest = max(found, key=lambda record: record["version"])
    return JSONResponse({**newest, "stale": len(found) < QUORUM})


async def ask(client: httpx.AsyncClient, replica: str, key: str) -> dict[str, Any] | None:
    """Ask one replica; None where it does not answer."""
    try:
        response = await client.get(f"http://{replica}/records/{key}", timeout=PATIENCE)
        response.raise_for_status()
    except httpx.HTTPError:
        return None
    record: dict[str, Any] = response.json()
    return record


def main() -> None:
    """Serve, traced, with fit's edge in front."""
    end_with_parent()
    telemetry.start("shop")
    app = Starlette(
        routes=[
            Route("/items/{key}", item),
            Route("/healthz", lambda _: JSONResponse({"name": "shop"})),
        ]
    )
    app.state.client = new_client()
    edge = fit.EdgeMiddleware(telemetry.traced(app))
    uvicorn.run(edge, port=int(sys.argv[1]), log_level="warning", access_log=False, lifespan="off")


if __name__ == "__main__":
    main()
