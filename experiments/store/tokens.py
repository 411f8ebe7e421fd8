"""Bearer tokens: who may call, in which role. Only digests are kept.

A token is random and long (256 bits), so a plain SHA-256 is enough: there is nothing to guess, and
a slow hash would only make every request slow.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.errors import NotFound
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.namespaces import PATTERN
from ldfi.experiments.store.schema import TokenRow

PREFIX = "ldfi_"
"""What every token begins with, so that scanners for leaked secrets can recognise one."""


_OF_NAMESPACE = re.compile(rf"{PREFIX}({PATTERN})\.[A-Za-z0-9_-]{{43}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """What is known of a token. Times in Unix seconds; ``expires_at`` None: never;
    ``expires_in``: how many seconds it was made for."""

    id: str
    name: str
    role: str
    created_by: str
    created_at: float
    expires_at: float | None
    expires_in: float | None
    revoked: bool

    def valid(self, now: float) -> bool:
        """Return whether it still opens anything."""
        return not self.revoked and (self.expires_at is None or now < self.expires_at)


def create(
    change: Change, name: str, role: str, expires_at: float | None = None
) -> tuple[TokenEntry, str]:
    """Make a token. The token itself is returned here and can never be had again.

    It names the namespace that it is of, if that is not the default one, so that whoever is asked
    knows where to look it up. Only there is it known.
    """
    of_namespace = f"{change.namespace}." if change.namespace else ""
    token = PREFIX + of_namespace + secrets.token_urlsafe(32)
    row = TokenRow(
        id=secrets.token_hex(8),
        name=name,
        role=role,
        digest=digest(token),
        created_by=change.who,
        created_at=change.now,
        expires_at=expires_at,
        revoked=False,
    )
    change.session.add(row)
    change.audit("token created", row.id, f"{name}, {role}")
    return entry_of(row), token


def revoke(change: Change, token_id: str) -> TokenEntry:
    """Take a token back; it stays listed. Raises NotFound."""
    row = change.session.get(TokenRow, token_id, with_for_update=True)
    if row is None:
        raise NotFound(f"there is no token {token_id!r}; `ldfi token list` shows their ids")
    if not row.revoked:
        row.revoked = True
        change.audit("token revoked", row.id, f"{row.name}, {row.role}")
    return entry_of(row)


def holder(session: Session, digest_: str, now: float) -> TokenEntry | None:
    """Find the token with this digest; None without one, or when it has expired or was revoked."""
    row = session.scalars(select(TokenRow).where(TokenRow.digest == digest_)).one_or_none()
    entry = entry_of(row) if row is not None else None
    return entry if entry is not None and entry.valid(now) else None


def by_id(session: Session, token_id: str, now: float) -> TokenEntry | None:
    """Find the token of this id; None without one, or when it has expired or was revoked."""
    row = session.get(TokenRow, token_id)
    entry = entry_of(row) if row is not None else None
    return entry if entry is not None and entry.valid(now) else None


def namespace_in(token: str) -> str | None:
    """Read which namespace a token says it is of; None for the default one. It proves nothing."""
    found = _OF_NAMESPACE.fullmatch(token)
    return None if found is None else found[1]


def digest(token: str) -> str:
    """Compute the SHA-256 of a token, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def entry_of(row: TokenRow) -> TokenEntry:
    """Read what a row says."""
    return TokenEntry(
        id=row.id,
        name=row.name,
        role=row.role,
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        expires_in=None if row.expires_at is None else row.expires_at - row.created_at,
        revoked=row.revoked,
    )
