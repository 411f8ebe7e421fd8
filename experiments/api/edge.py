"""What the edges fetch: the rules, on offer or as a lease; what they ask; what they report.

Every process serves them: the one that leads from its own board, any other one as a relay.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sse_starlette import EventSourceResponse

from ldfi.experiments.api.auth import Edge
from ldfi.experiments.api.documents import Line
from ldfi.experiments.api.forward import FORWARDED, no_leader
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.cluster.relay import DEVICES, EdgeRelay
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.fleet import MOST, Behind
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.telemetry import clock
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.fit.protocol.context import Arm

router = APIRouter(prefix="/api/v1/edge", tags=["edge"], route_class=GuardedRoute)

EVENTS: Final = "text/event-stream"
SAY_SECONDS: Final = 10.0
"""How often a stream says something when there is nothing to say."""

STREAM_SECONDS: Final = 600.0
"""After which an edge connects anew: its token is looked at again, and another process may have
room."""

GRACE_SECONDS: Final = 0.5
"""For a stream to end when the process does."""

_LEAST_WAIT: Final = 0.75
"""Share of what a poll asks to wait for that it waits at least, where nothing happens."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_COUNT = re.compile(r"([A-Za-z0-9_-]{1,64}):(\d{1,9})", re.ASCII)


async def _serving(request: Request) -> Engine | EdgeRelay:
    """Find what serves edges in this process. Raises Problem 503 where another process takes this
    one for the leader."""
    engine: Engine | None = request.app.state.engine
    if engine is not None:
        return engine
    if FORWARDED in request.headers:
        raise no_leader("this process does not lead")
    relay: EdgeRelay = request.app.state.relay
    relay.called(request.headers["authorization"].partition(" ")[2].strip())
    return relay


Serving = Annotated[Engine | EdgeRelay, Depends(_serving)]


_MANY: Final = 8000
"""Characters of a parameter with an entry for each experiment."""


@dataclass(frozen=True)
class Reported:
    """What an edge says of itself when it asks for news."""

    edge: Annotated[
        str, Query(pattern=r"^[a-z0-9]{1,32}$", description="Its own name, made at random.")
    ]
    version: Annotated[
        Line, Query(max_length=64, description="The version that the edge holds.")
    ] = ""
    wait: Annotated[
        float, Query(ge=0, le=30, description="Seconds to wait for another version.")
    ] = 0.0
    used: Annotated[
        str, Query(max_length=_MANY, description="Devices treated in all: EXPERIMENT:COUNT,…")
    ] = ""
    control: Annotated[
        str | None,
        Query(max_length=_MANY, description="Devices in control in all: EXPERIMENT:COUNT,…"),
    ] = None
    wants: Annotated[
        str, Query(max_length=_MANY, description="Where a device was turned away: EXPERIMENT,…")
    ] = ""
    asked: Annotated[
        int | None,
        Query(
            ge=0, le=MOST, description="It can ask, and all its asks up to this number are settled."
        ),
    ] = None
    late: Annotated[
        int,
        Query(ge=0, le=MOST, description="Devices whose ask was not answered in time, in all."),
    ] = 0
    behind: Annotated[
        int | None, Query(ge=0, le=MOST, description="A relay: so many edges are behind it.")
    ] = None
    holds: Annotated[
        Line, Query(max_length=64, description="A relay: the version that all of them hold.")
    ] = ""
    kept: Annotated[
        str, Query(max_length=_MANY, description="A relay: what it may hand on: EXPERIMENT:COUNT,…")
    ] = ""
    silent: Annotated[
        str, Query(max_length=_MANY, description="A relay: where not all said all: EXPERIMENT,…")
    ] = ""


async def _reported(**given: Any) -> Reported:
    return Reported(**given)


# FastAPI would make an instance of the class in a thread, which who is busy with other edges is
# slow to come back from
_reported.__signature__ = inspect.signature(Reported)  # type: ignore[attr-defined]


_RULES: Final = {"version": "4e1be437-0", "lease_seconds": 10.0, "asks": True, "rules": []}


@router.get(
    "/rules",
    response_model=dict[str, Any],
    responses={
        200: {
            "content": {
                "application/json": {"example": _RULES},
                EVENTS: {"schema": {"type": "string"}, "example": f"data: {json.dumps(_RULES)}"},
            }
        }
    },
)
async def rules(
    request: Request,
    serving: Serving,
    caller: Edge,
    said: Annotated[Reported, Depends(_reported)],
) -> Response | dict[str, Any]:
    """Hand out the armed rules; waits up to ``wait`` seconds for a version other than ``version``.

    Who accepts `text/event-stream` gets each version in an event, as an offer without a lease.
    """
    board = serving.board
    by_address = "address" in request.headers.get(DEVICES, "").split(",")
    hear(board, said, clock.now(), caller.name, by_address=by_address)
    if EVENTS in request.headers.get("accept", ""):
        return EventSourceResponse(
            _offers(board, said.edge),
            ping=SAY_SECONDS,
            shutdown_event=cast(Any, _Leaving(board)),
            shutdown_grace_period=GRACE_SECONDS,
        )
    await board.changed_since(said.version, _apart(said.wait))
    return board.lease(said.edge, clock.now())


def _apart(wait: float) -> float:
    """Draw how many seconds of ``wait`` to wait. Where all of them were waited for, polls that once
    came together, behind something that took a while, would come together from then on, and
    whatever is asked meanwhile would wait for all of them."""
    return wait * random.uniform(_LEAST_WAIT, 1.0)


class Ask(BaseModel):
    """May one more device be enrolled?"""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "edge": "k3v9x2m1",
                    "experiment": "3f1c9a52b7de",
                    "arm": "treatment",
                    "ask": 17,
                    "version": "9b2f41d07c6a",
                }
            ]
        },
    )

    edge: str = Field(pattern=r"^[a-z0-9]{1,32}$", description="The edge's own name.")
    experiment: str = Field(
        description="The id of the experiment.", pattern=r"^[A-Za-z0-9_-]{1,64}$"
    )
    arm: Arm = Field(description="The arm that the device was drawn for.")
    ask: int = Field(ge=1, le=MOST, description="Asks of this edge are numbered from 1.")
    version: Line = Field(max_length=64, description="The version that the edge decided by.")


class AskAnswer(BaseModel):
    """Whether the device is enrolled; for how many seconds since it was asked the edge may act upon
    the rules, if they are those of this version."""

    granted: bool = Field(
        description="Whether the device is enrolled; false: the arm is full, or the experiment "
        "is over."
    )
    lease_seconds: float = Field(
        description="Seconds from when it was asked for which the edge may act upon the rules; "
        "0 where not granted."
    )
    version: str = Field(
        description="The version of the rules that this holds for.", examples=["9b2f41d07c6a"]
    )


@router.post("/asks")
async def asks(serving: Serving, caller: Edge, ask: Ask) -> AskAnswer:
    """Let an edge enrol one more device, in either arm, where an experiment has room for it."""
    board, now = serving.board, clock.now()
    if isinstance(serving, EdgeRelay):
        granted = await serving.ask(ask.edge, ask.experiment, ask.arm, ask.ask, now)
    else:
        asked = ask.edge, ask.experiment, ask.arm, ask.ask, now
        granted = board.ask(*asked, token=caller.name)
    seconds = board.seconds(now) if granted else 0.0
    return AskAnswer(granted=granted, lease_seconds=seconds, version=board.version)


class _Leaving:
    """Is told that the process ends, as an event: streams end by themselves then."""

    def __init__(self, board: RulesBoard) -> None:
        self._board = board

    def set(self) -> None:
        self._board.close()


async def _offers(board: RulesBoard, edge: str) -> AsyncIterator[dict[str, str]]:
    """Send each version of the rules, until the board is closed or the time is over."""
    ends = time.monotonic() + STREAM_SECONDS
    with board.stream(edge, clock.now()):
        while not board.closed and (left := ends - time.monotonic()) > 0:
            version = board.version
            yield {"data": board.offer(edge)}
            await board.changed_since(version, left)


def hear(
    board: RulesBoard, said: Reported, now: float, token: str = "", *, by_address: bool = False
) -> None:
    """Tell the board what an edge says. ``token``: the name of its token. ``by_address``: it tells
    devices apart by address. Raises Problem 422."""
    behind = None
    if said.behind is not None:
        silent = _names("silent", said.silent)
        behind = Behind(said.behind, said.holds, _counts("kept", said.kept), silent)
    board.heard(
        said.edge,
        said.version,
        _report(_counts("used", said.used), _counts("control", said.control or ""), said.wants),
        now,
        mute=said.control is None,
        asked=said.asked,
        late=said.late,
        behind=behind,
        token=token,
        by_address=by_address,
    )


def _report(treated: dict[str, int], control: dict[str, int], wants: str) -> dict[str, Enrolled]:
    wanting = _names("wants", wants)
    return {
        name: Enrolled(treated.get(name, 0), control.get(name, 0), name in wanting)
        for name in treated.keys() | control.keys() | wanting
    }


def _names(parameter: str, text: str) -> set[str]:
    names = set(filter(None, text.split(",")))
    for name in names:
        if not _NAME.fullmatch(name):
            said = f"{name!r} is not the name of an experiment"
            raise Problem(422, "invalid", said, at=f"query/{parameter}")
    return names


def _counts(parameter: str, text: str) -> dict[str, int]:
    counts = {}
    for item in filter(None, text.split(",")):
        found = _COUNT.fullmatch(item)
        if found is None:
            said = f"must be EXPERIMENT:COUNT,…, got {item!r}"
            raise Problem(422, "invalid", said, at=f"query/{parameter}")
        counts[found[1]] = int(found[2])
    return counts
