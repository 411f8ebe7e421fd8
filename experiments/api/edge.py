"""What the edges fetch: the rules in force, as a lease."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from experiments.api.auth import Edge
from experiments.engine import Engine

router = APIRouter(prefix="/api/v1/edge", tags=["edge"])


@router.get("/rules")
async def rules(
    request: Request,
    _caller: Edge,
    version: Annotated[str, Query(max_length=64)] = "",
    wait: Annotated[float, Query(ge=0, le=30)] = 0.0,
) -> dict[str, Any]:
    """The armed rules; waits up to ``wait`` seconds for a version other than ``version``."""
    engine: Engine = request.app.state.engine
    await engine.board.changed_since(version, wait)
    return engine.board.lease()
