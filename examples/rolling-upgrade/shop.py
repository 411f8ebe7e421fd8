"""The service that users talk to: it reads each item from three replicas, by quorum.

A read asks all three and takes the newest of the answers. Two answers are a quorum. With one answer
the item is shown as it is, marked ``stale``; with none the request fails. (With READS=strict, one
answer is not enough.)

    python shop.py PORT

Where the replicas are, DEMO_HOSTS says: ``{"store-1": "127.0.0.1:5001", ...}``. With STORE=redis
they are Redis nodes, each of which holds every item.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.cli.processes import end_with_parent
from ldfi.demo import telemetry
from ldfi.demo.client import new_client

REPLICAS = ("store-1", "store-2", "store-3")
QUORUM = 2
PATIENCE = 2.0
ENOUGH = QUORUM if os.environ.get("READS") == "strict" else 1


async def item(request: Request) -> Response:
    """Show one item, from as many replicas as answer."""
    ask, key = request.app.state.ask, request.path_params["key"]
    answers = await asyncio.gather(*(ask(name, key) for name in REPLICAS))
    found = [answer for answer in answers if answer is not None]
    if len(found) < ENOUGH:
        return JSONResponse({"error": "the store does not answer"}, status_code=503)
    newest = max(found, key=lambda record: record["version"])
    return JSONResponse({**newest, "stale": len(found) < QUORUM})


Record = dict[str, Any]
Ask = Callable[[str, str], Awaitable[Record | None]]
"""Asks one replica for one record; None where it does not answer."""


def over_http() -> Ask:
    """Ask replicas that are processes of ``replica.py``."""
    client = new_client()

    async def ask(replica: str, key: str) -> Record | None:
        try:
            response = await client.get(f"http://{replica}/records/{key}", timeout=PATIENCE)
            response.raise_for_status()
        except httpx.HTTPError:
            return None
        record: Record = response.json()
        return record

    return ask


def of_redis() -> Ask:
    """Ask Redis nodes. No attempt is repeated: the other nodes are the second attempt."""
    from opentelemetry.instrumentation.redis import RedisInstrumentor
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError

    RedisInstrumentor().instrument()
    hosts = json.loads(os.environ["DEMO_HOSTS"])
    clients = {}
    for name in REPLICAS:
        host, _, port = hosts[name].partition(":")
        patience = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
        clients[name] = Redis(host=host, port=int(port), retry=Retry(NoBackoff(), 0), **patience)

    async def ask(replica: str, key: str) -> Record | None:
        try:
            found = await clients[replica].get(f"item:{key}")
        except (RedisError, OSError):
            return None
        record: Record | None = None if found is None else json.loads(found)
        return record

    return ask


def main() -> None:
    """Serve, traced, with fit's edge in front."""
    end_with_parent()
    telemetry.start(["shop"])
    app = Starlette(
        routes=[
            Route("/items/{key}", item),
            Route("/healthz", lambda _: JSONResponse({"name": "shop"})),
        ]
    )
    app.state.ask = of_redis() if os.environ.get("STORE") == "redis" else over_http()
    edge = fit.EdgeMiddleware(telemetry.traced(app))
    uvicorn.run(edge, port=int(sys.argv[1]), log_level="warning", access_log=False, lifespan="off")


if __name__ == "__main__":
    main()
