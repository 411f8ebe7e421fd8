"""Ids by how they begin: nobody types twelve letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, get_args

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import Text, func, literal, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import LINE
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db
from ldfi.experiments.store.schema import (
    CampaignRow,
    ExperimentRow,
    FindingRow,
    MaintenanceRow,
    ReplayRow,
)

router = APIRouter(prefix="/api/v1/ids", tags=["ids"], route_class=GuardedRoute)

MOST: Final = 20
"""Ids of an answer. Whoever gets more than one has to type more, so that they are enough."""

IdKind = Literal["campaign", "experiment", "finding", "maintenance", "replay"]

_COLUMNS: Final = {
    "campaign": (CampaignRow.id, CampaignRow.name),
    "experiment": (ExperimentRow.id, ExperimentRow.request_class),
    "finding": (FindingRow.id, FindingRow.request_class),
    "maintenance": (MaintenanceRow.id, MaintenanceRow.reason),
    "replay": (ReplayRow.id, ReplayRow.kept_by),
}
"""Of each kind its id, and what tells people which one it is."""


class KnownId(BaseModel):
    """What has an id."""

    id: str = Field(description="The whole id.", examples=["3f1c9a52b7de"])
    kind: IdKind = Field(description="What has it.")
    name: str = Field(
        description="Of a campaign its name, of experiments and findings their class, of a "
        "maintenance window the reason, of a replay who kept it.",
        examples=["GET /boot"],
    )


@router.get("")
async def beginning_with(
    db: Db,
    _caller: Viewer,
    begin: Annotated[
        str,
        Query(pattern=LINE, min_length=1, max_length=64, description="How the ids begin."),
    ],
    kind: Annotated[
        IdKind | SkipJsonSchema[None], Query(description="Only those of this kind.")
    ] = None,
) -> list[KnownId]:
    """List what has an id that begins like this: the first twenty, by kind and id."""
    kinds = get_args(IdKind) if kind is None else (kind,)
    with db.read() as session:
        return [known for each in kinds for known in _found(session, each, begin)][:MOST]


def _found(session: Session, kind: IdKind, begin: str) -> Iterator[KnownId]:
    key: InstrumentedAttribute[str]
    key, name = _COLUMNS[kind]
    same = func.substr(key, 1, len(begin)) == literal(begin, Text)  # LIKE would ignore case
    for identity, called in session.execute(
        select(key, name).where(same).order_by(key).limit(MOST)
    ):
        yield KnownId(id=identity, kind=kind, name=called)
