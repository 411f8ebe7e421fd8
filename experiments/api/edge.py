"""What the edges fetch: the rules in force, as a lease; and what they report in asking."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ldfi.experiments.api.auth import Edge
from ldfi.experiments.api.documents import Line
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Running
from ldfi.experiments.telemetry import clock
from ldfi.fit.allowance import Enrolled

router = APIRouter(prefix="/api/v1/edge", tags=["edge"], route_class=GuardedRoute)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_COUNT = re.compile(r"([A-Za-z0-9_-]{1,64}):(\d{1,9})", re.ASCII)


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
    control: Annotated[
        str | None,
        Query(max_length=8000, description="Devices in control in all: EXPERIMENT:COUNT,…"),
    ] = None,
    wants: Annotated[
        str,
        Query(max_length=8000, description="Where a device was turned away: EXPERIMENT,…"),
    ] = "",
) -> dict[str, Any]:
    """Hand out the armed rules; waits up to ``wait`` seconds for a version other than
    ``version``."""
    report = _report(_counts("used", used), _counts("control", control or ""), wants)
    engine.board.heard(edge, version, report, clock.now(), mute=control is None)
    await engine.board.changed_since(version, wait)
    return engine.board.lease(edge, clock.now())


def _report(treated: dict[str, int], control: dict[str, int], wants: str) -> dict[str, Enrolled]:
    wanting = set(filter(None, wants.split(",")))
    for name in wanting:
        if not _NAME.fullmatch(name):
            raise Problem(422, "invalid", f"wants={name!r} is not the name of an experiment")
    return {
        name: Enrolled(treated.get(name, 0), control.get(name, 0), name in wanting)
        for name in treated.keys() | control.keys() | wanting
    }


def _counts(parameter: str, text: str) -> dict[str, int]:
    counts = {}
    for item in filter(None, text.split(",")):
        found = _COUNT.fullmatch(item)
        if found is None:
            raise Problem(422, "invalid", f"{parameter}={item!r} is not EXPERIMENT:COUNT")
        counts[found[1]] = int(found[2])
    return counts
