"""What the edges fetch: the rules in force, as a lease; and what they report in asking."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ldfi.experiments.api.auth import Edge
from ldfi.experiments.api.documents import Line
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Running

router = APIRouter(prefix="/api/v1/edge", tags=["edge"], route_class=GuardedRoute)

_USED = re.compile(r"([A-Za-z0-9_-]{1,64}):(\d{1,9})", re.ASCII)


@router.get("/rules")
async def rules(
    engine: Running,
    _caller: Edge,
    edge: Annotated[
        str, Query(pattern=r"^[a-z0-9]{1,32}$", description="The edge's own name, made at random.")
    ],
    version: Annotated[
        Line, Query(max_length=64, description="The version that the edge holds.")
    ] = "",
    wait: Annotated[
        float, Query(ge=0, le=30, description="Seconds to wait for another version.")
    ] = 0.0,
    used: Annotated[
        str,
        Query(max_length=8000, description="Devices treated in all: EXPERIMENT:COUNT,…"),
    ] = "",
) -> dict[str, Any]:
    """Hand out the armed rules; waits up to ``wait`` seconds for a version other than
    ``version``."""
    engine.board.heard(edge, version, _counts(used), time.time())
    await engine.board.changed_since(version, wait)
    return engine.board.lease(edge, time.time())


def _counts(used: str) -> dict[str, int]:
    counts = {}
    for item in filter(None, used.split(",")):
        found = _USED.fullmatch(item)
        if found is None:
            raise Problem(422, "invalid", f"used={item!r} is not EXPERIMENT:COUNT")
        counts[found[1]] = int(found[2])
    return counts
