"""Live progress as server-sent events: what the audit says, as it is written, and what is armed.

An ``audit`` event is a row of the audit, and its id is the row's: who lost the line reconnects
with ``Last-Event-ID`` and misses nothing. The first event, ``open``, has an id as well, for a line
may be lost before anything has happened. A ``progress`` event, once a second while anything is
armed, has control against treatment so far; it has no id, for the next one says it all again.

A stream ends after :data:`STREAM_SECONDS`. Browsers and other clients reconnect by themselves, and
then their token is looked at again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import func, select
from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from ldfi.experiments.api.audited import audited
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.service import Db, Running, live_experiments
from ldfi.experiments.api.views import AuditView
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import audit
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import AuditRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/events", tags=["events"], route_class=GuardedRoute)

LOOK_SECONDS = 0.5
PROGRESS_SECONDS = 1.0
PING_SECONDS = 15
STREAM_SECONDS = 600.0
BATCH = 200
MAX_STREAMS = 100
_MAX_ID: Final = 2**63 - 1


class Stream(EventSourceResponse):
    """A stream that is counted among ``open_`` until it has ended, however it does."""

    def __init__(self, open_: set[object], events: AsyncIterator[dict[str, Any]]) -> None:
        super().__init__(events, ping=PING_SECONDS)
        self._open = open_
        open_.add(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open.discard(self)


_EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["open", "audit", "progress"]},
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
_EXAMPLE = """\
event: audit
id: 17
data: {"id": 17, "at": 1767225600.0, "who": "ann", "what": "halt", "subject": "", "why": "release"}

"""


@router.get(
    "",
    name="stream",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "A stream; the schema is that of each event.",
            "content": {"text/event-stream": {"schema": _EVENT, "example": _EXAMPLE}},
        },
        422: {},
    },
)
async def events(
    request: Request,
    engine: Running,
    db: Db,
    _caller: Viewer,
    last_event_id: Annotated[
        Annotated[str, Field(pattern=r"^[0-9]{1,19}$")] | SkipJsonSchema[None],
        Header(description="Go on after this event.", examples=["17"]),
    ] = None,
) -> Stream:
    """Stream what happens, as it happens: `open`, `audit` and `progress` events."""
    streams: set[object] = request.app.state.streams
    if len(streams) >= MAX_STREAMS:
        raise Problem(503, "too-many-streams", f"{MAX_STREAMS} streams are open; try again later")
    since = None if last_event_id is None else int(last_event_id)
    if since is not None and since > _MAX_ID:
        said = f"must be the id of an event, at most {_MAX_ID}, got {since}"
        raise Problem(422, "invalid", said, at="header/last-event-id")
    return Stream(streams, _events(engine, db, since))


async def _events(engine: Engine, db: Database, since: int | None) -> AsyncIterator[dict[str, Any]]:
    last = _newest(db) if since is None else since
    yield {"event": "open", "id": str(last), "data": "{}"}
    looks = 0
    ends = time.monotonic() + STREAM_SECONDS
    while time.monotonic() < ends:
        for row in audit.whole(_rows(db, last), last, clock.now()):
            last = row.id
            yield {"event": "audit", "id": str(row.id), "data": row.model_dump_json()}
        if looks % round(PROGRESS_SECONDS / LOOK_SECONDS) == 0:
            progress = _progress(engine)
            if progress:
                yield {"event": "progress", "data": json.dumps(progress)}
        looks += 1
        await asyncio.sleep(LOOK_SECONDS)


def _newest(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.max(AuditRow.id))) or 0


def _rows(db: Database, after: int) -> list[AuditView]:
    with db.read() as session:
        return audited(session, audit.after(session, after, BATCH))


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
