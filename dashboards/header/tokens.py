"""Tokens: made, listed and revoked by admins. A token is shown once, on the page that made it."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import select

from ldfi.dashboards.forms import Form, Submitted, read_as
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.errors import Invalid
from ldfi.experiments.api import tokens
from ldfi.experiments.api.auth import Admin
from ldfi.experiments.api.input_documents import Id
from ldfi.experiments.api.pagination import Cursor, page
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.cluster.tokens import ROLES
from ldfi.experiments.store import tokens as stored
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import TokenRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/tokens", route_class=PageRoute)

LISTED: Final = 50
DAY: Final = 86_400.0
MEANINGS: Final = {
    "viewer": "looks at everything",
    "operator": "starts, stops, halts, resumes",
    "admin": "everything, tokens too",
    "ingest": "a machine that sends spans and device metrics",
    "devices": "an app that sends device metrics only",
    "edge": "an edge that fetches rules",
    "metrics": "a Prometheus that scrapes the service",
}


@router.get("")
async def listing(
    request: Request, _engine: Running, db: Db, _caller: Admin, cursor: Cursor = None
) -> Response:
    """List the tokens made here, newest first, with a form for another."""
    return _page(request, db, cursor=cursor)


@router.post("")
async def create(
    request: Request, form: Submitted, _engine: Running, db: Db, caller: Admin
) -> Response:
    """Make a token, and show it this once: the answer is kept nowhere."""
    new, problems = read_as(tokens.NewToken, _document(form))
    if new is None:
        return _page(request, db, form, problems)
    try:
        made = tokens.create(new, request, Response(), caller)
    except Invalid as error:
        return _page(request, db, form, {"name": str(error)})
    return _page(request, db, made=made)


@router.post("/{token_id}/revoke")
async def revoke(token_id: Id, request: Request, _engine: Running, caller: Admin) -> Response:
    """Take a token back. Within seconds it opens nothing any more."""
    tokens.revoke(token_id, request, caller)
    return RedirectResponse("/tokens", status_code=303)


def _document(form: Form) -> dict[str, object]:
    """Turn the form into what the API would be asked. Days become seconds where they are a
    number."""
    days = form.text("days")
    try:
        expires_in: object = float(days) * DAY if days else None
    except ValueError:
        expires_in = days
    return {"name": form.text("name"), "role": form.text("role"), "expires_in": expires_in}


def _page(
    request: Request,
    db: Database,
    form: Form | None = None,
    problems: dict[str, str] | None = None,
    made: tokens.MadeToken | None = None,
    cursor: str | None = None,
) -> Response:
    with db.read() as session:
        found = page(session, select(TokenRow), TokenRow.created_at, TokenRow.id, cursor, LISTED)
        entries = [stored.entry_of(row) for row in found.items]
    typed = form or Form({})
    return rendered(
        request,
        "header/tokens.html",
        422 if problems else 200,
        entries=entries,
        now=clock.now(),
        next=found.next,
        first=cursor is None,
        roles=[(role, MEANINGS[role]) for role in ROLES],
        values={name: typed.text(name) for name in ("name", "role", "days")},
        problems=problems or {},
        made=made,
    )
