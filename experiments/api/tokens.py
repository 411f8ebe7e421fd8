"""Tokens by API: made, listed and revoked by admins.

These routes take no idempotency key: the answer holds the token, and it must not be kept anywhere.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select

from ldfi.errors import Invalid
from ldfi.experiments.api.auth import Admin
from ldfi.experiments.api.documents import AsRead, Id
from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, page
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.views import View
from ldfi.experiments.cluster.tokens import ROLES, Role
from ldfi.experiments.store import tokens as stored
from ldfi.experiments.store.database import SERVICE, Database
from ldfi.experiments.store.schema import TokenRow
from ldfi.experiments.telemetry import clock

router = APIRouter(prefix="/api/v1/tokens", tags=["tokens"], route_class=GuardedRoute)

YEAR = 365 * 86_400


class NewToken(AsRead):
    """Whom a token is for. ``expires_in``: seconds; null: it never expires.

    A token as it is listed makes another one like it, for as long from now on.
    """

    filled_in: ClassVar = frozenset({"id", "created_by", "created_at", "expires_at", "revoked"})
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "kim", "role": "operator", "expires_in": 86400}]},
    )
    name: Annotated[
        str,
        Field(
            description="Whose it is: a person or a program; the audit shows it.",
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
        ),
    ]
    role: Role = Field(description="What it may do.")
    expires_in: Annotated[float, Field(ge=1, le=10 * YEAR)] | None = Field(
        default=None, description="Seconds until it expires; null: never."
    )


class TokenView(View):
    """A token that was made here, without the token itself."""

    id: str = Field(description="Its id, by which it is revoked.", examples=["9f3e1c07ab52d648"])
    name: str = Field(description="Whose it is.", examples=["kim"])
    role: str = Field(description="What it may do.", examples=list(ROLES))
    created_by: str = Field(description="The name of the token that made it.", examples=["admin"])
    created_at: float = Field(
        description="When it was made (Unix seconds).", examples=[1767225600.0]
    )
    expires_at: float | None = Field(
        description="When it expires (Unix seconds); null: never.", examples=[1767312000.0]
    )
    expires_in: float | None = Field(
        description="Seconds that it was made for; null: for ever.", examples=[86400.0]
    )
    revoked: bool = Field(description="Whether somebody has taken it back.")


class MadeToken(BaseModel):
    """A new token. It is shown this once."""

    token: str = Field(description="The token itself; it cannot be had again.", examples=["ldfi_…"])
    entry: TokenView = Field(description="What is known of it from now on.")


@router.post("", status_code=201)
def create(new: NewToken, request: Request, response: Response, caller: Admin) -> MadeToken:
    """Make a token. The answer is the only place where it ever stands."""
    if new.name in {SERVICE, *ROLES}:
        raise Invalid(f"{new.name!r} would be mistaken in the audit; name a person or a program")
    now = clock.now()
    expires_at = None if new.expires_in is None else now + new.expires_in
    with _database(request).change(now, caller.name) as change:
        entry, token = stored.create(change, new.name, new.role, expires_at)
    response.headers["Cache-Control"] = "no-store"
    return MadeToken(token=token, entry=TokenView.model_validate(entry))


@router.get("")
def listing(
    request: Request, links: Links, _caller: Admin, cursor: Cursor = None, limit: Limit = 50
) -> Page[TokenView]:
    """List the tokens that were made here, newest first, also those expired or revoked."""
    with _database(request).read() as session:
        query = select(TokenRow)
        found = page(session, query, TokenRow.created_at, TokenRow.id, cursor, limit)
        return found.answer(links, lambda row: TokenView.model_validate(stored.entry_of(row)))


@router.delete("/{token_id}")
def revoke(token_id: Id, request: Request, caller: Admin) -> TokenView:
    """Take a token back. Within seconds it opens nothing any more."""
    with _database(request).change(clock.now(), caller.name) as change:
        return TokenView.model_validate(stored.revoke(change, token_id))


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database
