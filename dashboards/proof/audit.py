"""The audit log: who did what, to what, why and when."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select

from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.audit_rows import audited
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.input_documents import LINE
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.store.schema import AuditRow

router = APIRouter(route_class=PageRoute)

LISTED: Final = 60
KINDS: Final = (
    "campaign",
    "experiment",
    "finding",
    "class",
    "maintenance",
    "halt",
    "resume",
    "token",
)
"""How what was done begins, for the filter."""


Wanted = Annotated[str, Query(pattern=LINE, max_length=64)]


@router.get("/audit")
async def audit(
    request: Request,
    _engine: Running,
    db: Db,
    _caller: Viewer,
    cursor: Cursor = None,
    kind: Wanted = "",
    subject: Wanted = "",
    who: Wanted = "",
) -> Response:
    """List the log, newest first, cut down to a kind, to what it was done to, or to who did it."""
    query = select(AuditRow)
    if kind:
        query = query.where(AuditRow.what.startswith(kind, autoescape=True))
    if subject:
        query = query.where(AuditRow.subject == subject)
    if who:
        query = query.where(AuditRow.who == who)
    with db.read() as session:
        found = page(session, query, AuditRow.at, AuditRow.id, cursor, LISTED)
        rows = audited(session, found.items)
    chosen = {"kind": kind, "subject": subject, "who": who}
    return rendered(
        request,
        "proof/audit.html",
        rows=rows,
        next=found.next,
        first=cursor is None,
        kinds=KINDS,
        kind=kind,
        subject=subject,
        who=who,
        query=urlencode({name: value for name, value in chosen.items() if value}),
    )
