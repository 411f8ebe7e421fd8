"""What came of replays: kept beside findings, so that whoever upgrades can look it up."""

from __future__ import annotations

import json
import secrets
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator
from sqlalchemy import select

from ldfi.errors import NotFound
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.documents import AsRead, Document, Id, Line
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, page
from ldfi.experiments.api.service import Db
from ldfi.experiments.store.schema import ReplayRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/replays/runs", tags=["replays"], route_class=IdempotentRoute)

MOST_CHARACTERS = 1_000_000


class ReplayResult(Document):
    """What `ldfi replay run` or `compare` printed as JSON. More than what is named here is kept."""

    model_config = ConfigDict(extra="allow")

    ldfi: Literal["measurement", "comparison"] = Field(
        description="What it is: the measurement of one version, or the comparison of two."
    )
    version: Literal[1] = Field(description="Of this format.")
    verdict: Literal["same", "worse", "cannot tell"] | None = Field(
        default=None,
        description="Of a comparison: whether the new version is worse; null: it is a measurement.",
    )
    classes: Annotated[
        list[dict[str, JsonValue]],
        Field(
            description="The figures of each request class, as the command printed them.",
            max_length=1_000,
        ),
    ]
    doubts: Annotated[
        list[Line],
        Field(
            description="Why the result may not hold, a sentence each; empty: nothing speaks "
            "against it.",
            max_length=100,
        ),
    ]


class NewReplay(AsRead):
    """A result to keep. One that is kept, as it is read, is kept once more."""

    filled_in: ClassVar = frozenset({"id", "kept_at", "kept_by", "verdict"})

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "document": {
                        "ldfi": "comparison",
                        "version": 1,
                        "verdict": "same",
                        "classes": [],
                        "doubts": [],
                    }
                }
            ]
        }
    )

    document: ReplayResult = Field(
        description="The result, as the command printed it with `--json`; 1,000,000 characters "
        "at most."
    )

    @field_validator("document")
    @classmethod
    def _not_too_long(cls, document: ReplayResult) -> ReplayResult:
        if len(json.dumps(document.model_dump())) > MOST_CHARACTERS:
            raise ValueError(f"more than {MOST_CHARACTERS:,} characters: too long to be kept")
        return document


class KeptReplay(BaseModel):
    """A result that is kept."""

    id: str = Field(description="By which routes and commands name it.", examples=["a81e5d03c9f4"])
    kept_at: float = Field(description="Unix seconds.", examples=[1767225600.0])
    kept_by: str = Field(description="The name of the token that kept it.", examples=["kim"])
    verdict: str | None = Field(
        description="Of a comparison: same, worse, cannot tell.", examples=["same"]
    )
    document: dict[str, Any] = Field(
        description="The result, as it was sent.",
        examples=[
            {"ldfi": "comparison", "version": 1, "verdict": "same", "classes": [], "doubts": []}
        ],
    )

    @classmethod
    def of(cls, row: ReplayRow) -> KeptReplay:
        """Read a row."""
        return cls(
            id=row.id,
            kept_at=row.kept_at,
            kept_by=row.kept_by,
            verdict=row.verdict,
            document=row.document,
        )


@router.post("", status_code=201)
async def keep_run(new: NewReplay, db: Db, caller: Operator) -> KeptReplay:
    """Keep what came of a replay."""
    row = ReplayRow(
        id=secrets.token_hex(6),
        kept_at=clock.now(),
        kept_by=caller.name,
        verdict=new.document.verdict,
        document=new.document.model_dump(),
    )
    kept = KeptReplay.of(row)
    with db.change(row.kept_at, caller.name) as change:
        change.session.add(row)
        change.audit("replay kept", kept.id, kept.verdict or "")
    return kept


@router.get("")
async def list_runs(
    db: Db, _caller: Viewer, links: Links, cursor: Cursor = None, limit: Limit = 50
) -> Page[KeptReplay]:
    """List what came of replays, newest first."""
    with db.read() as session:
        found = page(session, select(ReplayRow), ReplayRow.kept_at, ReplayRow.id, cursor, limit)
        return found.answer(links, KeptReplay.of)


@router.get("/{replay_id}")
async def show_run(replay_id: Id, db: Db, _caller: Viewer) -> KeptReplay:
    """Show what came of one replay."""
    with db.read() as session:
        row = session.get(ReplayRow, replay_id)
        if row is None:
            raise NotFound(f"there is no replay {replay_id!r}")
        return KeptReplay.of(row)
