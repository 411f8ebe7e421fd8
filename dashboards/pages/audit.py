"""The audit log: who did what, to what, why and when."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.dashboards.phrases import said_together
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.api.auth import Viewer
from ldfi.experiments.api.documents import LINE
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.api.views import AuditView
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow

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


@dataclass(frozen=True, slots=True)
class About:
    """What an experiment or a finding is about: ``said`` in words."""

    request_class: str
    said: str


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
        rows = [AuditView.of(row) for row in found.items]
        about = _about(session, {row.subject for row in rows})
    chosen = {"kind": kind, "subject": subject, "who": who}
    return rendered(
        request,
        "audit.html",
        rows=rows,
        about=about,
        next=found.next,
        first=cursor is None,
        kinds=KINDS,
        kind=kind,
        subject=subject,
        who=who,
        query=urlencode({name: value for name, value in chosen.items() if value}),
    )


def _about(session: Session, subjects: Collection[str]) -> dict[str, About]:
    """Tell which class and which failures these experiments and findings are about."""
    experiments = select(ExperimentRow.id, ExperimentRow.request_class, ExperimentRow.hypothesis)
    findings = select(FindingRow.id, FindingRow.request_class, FindingRow.faults)
    return {
        subject: About(name, said_together(faults))
        for query in (
            experiments.where(ExperimentRow.id.in_(subjects)),
            findings.where(FindingRow.id.in_(subjects)),
        )
        for subject, name, faults in session.execute(query)
    }
