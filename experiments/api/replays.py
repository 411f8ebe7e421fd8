"""Replayed requests: what became of one that an engineer sent with a scenario."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from ldfi.errors import NotFound
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Running
from ldfi.lineage.outline import outline

router = APIRouter(prefix="/api/v1/replays", tags=["replays"], route_class=GuardedRoute)

TraceId = Annotated[
    str,
    Path(
        pattern="^[0-9a-f]{32}$",
        description="The trace id that the request was sent with, in hexadecimal.",
        examples=["5b8efff798038103d269b633813fc60c"],
    ),
]


class ReplayView(BaseModel):
    """The lineage of one replayed request, as far as its spans have come in."""

    trace_id: str = Field(
        description="The trace of the request.", examples=["5b8efff798038103d269b633813fc60c"]
    )
    service: str = Field(description="The service that it entered.", examples=["api"])
    arm: str = Field(
        description="`treatment`: sent with the faults; `control`: without.",
        examples=["treatment", "control"],
    )
    root_failed: bool = Field(description="The service itself says that it failed.")
    fired: list[str] = Field(
        description="Faults that fired.", examples=[["error@api>http:GET:playlist/*"]]
    )
    would_fire: list[str] = Field(
        description="In the control arm: those that would have.", examples=[[]]
    )
    calls: list[dict[str, Any]] = Field(
        description="Calls within calls, in a fixed order.",
        examples=[[{"call": "GET playlist/*", "callee": "playlist", "failed": True}]],
    )


@router.get("/{trace_id}")
async def show(trace_id: TraceId, engine: Running, _caller: Viewer) -> ReplayView:
    """Show what a replayed request called, and which faults fired. Kept for ten minutes."""
    lineage = engine.replays.get(trace_id)
    if lineage is None:
        raise NotFound(f"no replayed request of trace {trace_id!r} has come in within ten minutes")
    return ReplayView(
        trace_id=trace_id,
        service=lineage.service,
        arm=lineage.arm,
        root_failed=lineage.root_error,
        fired=sorted(lineage.fired),
        would_fire=sorted(lineage.would_fire),
        calls=[call.to_json() for call in outline(lineage.tree)],
    )
