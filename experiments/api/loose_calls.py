"""Calls in traces of their own: what is known of whose they are, and what a person says."""

from __future__ import annotations

from typing import Annotated, ClassVar

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from ldfi.errors import NotFound
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.documents import AsRead, Line
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.service import Running
from ldfi.experiments.api.views import View
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.telemetry import clock
from ldfi.lineage.sightings import Belongs, Proposal
from ldfi.lineage.unseen import Why

router = APIRouter(prefix="/api/v1/loose-calls", tags=["classes"], route_class=IdempotentRoute)


class LooseView(View):
    """Calls of one name that run in traces of their own."""

    point: str = Field(
        description="The name that they have in common.",
        examples=["checkout>rpc:Convert:currency/shop.CurrencyService"],
    )
    why: Why = Field(description="`loose`: a call without its context; `arrival`: no call is seen.")
    service: str = Field(
        description="Who makes them; of arrivals, where they arrive.", examples=["checkout"]
    )
    at: str = Field(description="What they reach: a service or an address.", examples=["currency"])
    calls: int = Field(description="How many were seen within the last half hour to hour.")
    inside: int = Field(description="How many of them ran within requests of these classes.")
    classes: list[str] = Field(
        description="Request classes within whose requests they ran.", examples=[["POST /orders"]]
    )
    belongs: Belongs = Field(
        description="By their times: of these requests (`theirs`), of none (`apart`), or nobody "
        "can tell (`unclear`)."
    )
    said: bool | None = Field(
        description="What a person has said: whether they are of these requests; null: nothing."
    )


class Saying(AsRead):
    """What a person says of calls of one name; as they are listed they may be sent back."""

    filled_in: ClassVar = frozenset(
        {"why", "service", "at", "calls", "inside", "classes", "belongs"}
    )
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"point": "api>http:GET:stock/*", "said": True}]}
    )

    point: Annotated[
        Line,
        Field(
            description="The name of the calls, as the list has it.", min_length=1, max_length=1000
        ),
    ]
    said: bool | None = Field(
        description="Whether they are of the requests that they run within; null takes it back."
    )


@router.get("")
async def loose(engine: Running, _caller: Viewer) -> list[LooseView]:
    """List calls in traces of their own, and requests that no recorded call explains."""
    return _listed(engine)


@router.post("", responses={404: {}})
async def say_whose(new: Saying, engine: Running, caller: Operator) -> LooseView:
    """Say whose such calls are. Those that are of the requests around them become part of the
    lineage of these classes; those that are of none count as missing nowhere."""
    known = {each.point for each in _listed(engine)} | engine.said.keys()
    if new.point not in known:
        raise NotFound(f"no call in a trace of its own was seen at {new.point!r}: see `ldfi loose`")
    engine.say(new.point, new.said, caller.name, clock.now())
    found = (each for each in _listed(engine) if each.point == new.point)
    return next(found, _gone(new))


def _listed(engine: Engine) -> list[LooseView]:
    proposals = list(engine.look().proposals())
    found = [LooseView.model_validate(each) for each in proposals]
    seen = {each.point for each in proposals}
    return found + [
        _gone(Saying(point=point, said=said))
        for point, said in sorted(engine.said.items())
        if point not in seen
    ]


def _gone(saying: Saying) -> LooseView:
    """Show what was said of calls that were not seen of late."""
    service = saying.point.partition(">")[0]
    gone = Proposal("loose", service, "", saying.point, 0, 0, "apart", (), saying.said)
    return LooseView.model_validate(gone)
