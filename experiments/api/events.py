"""Live progress as server-sent events: what the audit says, as it is written, and what is armed.

An ``audit`` event is a row of the audit, and its id is the row's: who lost the line reconnects
with ``Last-Event-ID`` and misses nothing. A ``progress`` event, once a second while anything is
armed, has control against treatment so far; it has no id, for the next one says it all again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from sqlalchemy import func, select
from sse_starlette import EventSourceResponse

from experiments.api.auth import Viewer
from experiments.api.problems import Problem
from experiments.api.service import Db, Running, live_experiments
from experiments.api.views import AuditView
from experiments.engine import Engine
from experiments.store.database import Database
from experiments.store.experiments import counts_of
from experiments.store.schema import AuditRow

router = APIRouter(prefix="/api/v1/events", tags=["events"])

LOOK_SECONDS = 0.5
PROGRESS_SECONDS = 1.0
PING_SECONDS = 15
BATCH = 200
MAX_STREAMS = 100


@router.get("", response_class=EventSourceResponse)
async def events(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    last_event_id: Annotated[str | None, Header(max_length=32)] = None,
) -> EventSourceResponse:
    """What happens, as it happens: `audit` and `progress` events."""
    streams: set[object] = request.app.state.streams
    if len(streams) >= MAX_STREAMS:
        raise Problem(503, "too-many-streams", f"{MAX_STREAMS} streams are open; try again later")
    try:
        since = None if last_event_id is None else int(last_event_id)
    except ValueError as error:
        raise Problem(
            422, "invalid", f"Last-Event-ID {last_event_id!r} is no id of an event"
        ) from error
    return EventSourceResponse(_stream(streams, engine, db, since), ping=PING_SECONDS)


async def _stream(
    streams: set[object], engine: Engine, db: Database, since: int | None
) -> AsyncIterator[dict[str, Any]]:
    mark = object()
    streams.add(mark)
    try:
        last = _newest(db) if since is None else since
        looks = 0
        while True:
            for row in _rows(db, last):
                last = row.id
                yield {"event": "audit", "id": str(row.id), "data": row.model_dump_json()}
            if looks % round(PROGRESS_SECONDS / LOOK_SECONDS) == 0:
                progress = _progress(engine)
                if progress:
                    yield {"event": "progress", "data": json.dumps(progress)}
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        streams.discard(mark)


def _newest(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.max(AuditRow.id))) or 0


def _rows(db: Database, after: int) -> list[AuditView]:
    query = select(AuditRow).where(AuditRow.id > after).order_by(AuditRow.id).limit(BATCH)
    with db.read() as session:
        return [AuditView.of(row) for row in session.scalars(query)]


def _progress(engine: Engine) -> list[dict[str, Any]]:
    return [
        {
            "id": experiment.id,
            "request_class": experiment.request_class,
            "purpose": experiment.purpose,
            "hypothesis": sorted(experiment.hypothesis),
            "state": experiment.state,
            "counts": counts_of(experiment),
        }
        for experiment in live_experiments(engine).values()
        if experiment.active
    ]
