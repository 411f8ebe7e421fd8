"""Namespaces: which there are, and where the store of each is.

A namespace has a store of its own, with all the tables: a schema of the same database on
PostgreSQL, a file beside the other on SQLite. So no query can see what belongs to another one. The
store that the service is configured with is the default namespace's, and has the list of the
others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.orm import Session

from ldfi.errors import Conflict, Invalid
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store.database import Change, Database
from ldfi.experiments.store.schema import NamespaceRow

DEFAULT: Final = "default"
"""What the namespace is called that there is without anybody's doing."""

TAKEN: Final = frozenset({DEFAULT, "lock"})
"""What no other can be called. ``lock``: its file could be the one that leaders lock."""

PATTERN: Final = r"[a-z](-?[a-z0-9]){0,29}"
"""Such a name is part of a token, of a file's name and of a schema's, and can be told from what
stands beside it there."""

MOST: Final = 50
"""Each has an engine of its own, which looks twenty times a second whether there is work."""

_MAX_NAME: Final = 30


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace beside the default one. Its limits are None where it has none of its own."""

    name: str
    created_by: str
    created_at: float
    max_concurrent: int | None = None
    members_per_hour: int | None = None
    members_per_day: int | None = None

    def limits(self, of_all: Limits) -> Limits:
        """Return what holds for its campaigns together, by what holds for all namespaces."""
        own = {
            name: value
            for name in ("max_concurrent", "members_per_hour", "members_per_day")
            if (value := getattr(self, name)) is not None
        }
        return replace(of_all, **own)


def check_name(name: str) -> str:
    """Check that a namespace can be called so, and return it. Raises Invalid."""
    if name in TAKEN or len(name) > _MAX_NAME or not re.fullmatch(PATTERN, name):
        raise Invalid(
            f"{name!r} cannot be the name of a namespace: up to {_MAX_NAME} small letters and "
            "digits, with single hyphens between them, from a letter on, and not "
            + " or ".join(map(repr, sorted(TAKEN)))
        )
    return name


def put(
    change: Change,
    name: str,
    max_concurrent: int | None = None,
    members_per_hour: int | None = None,
    members_per_day: int | None = None,
) -> Namespace:
    """Put a namespace on record, or other limits of one that is. Raises Invalid or Conflict."""
    session = change.session
    row = session.get(NamespaceRow, check_name(name), with_for_update=True)
    if row is None:
        there = len(session.scalars(select(NamespaceRow.name)).all())
        if there >= MOST:
            raise Conflict(f"there are {there} namespaces already, at most {MOST} may be")
        row = NamespaceRow(name=name, created_by=change.who, created_at=change.now)
        session.add(row)
        if session.get_bind().dialect.name == "postgresql":
            session.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema_of(name)}"'))
        change.audit("namespace made", name)
    limits = (max_concurrent, members_per_hour, members_per_day)
    if limits != (row.max_concurrent, row.members_per_hour, row.members_per_day):
        row.max_concurrent, row.members_per_hour, row.members_per_day = limits
        said = (f"{each}" if each is not None else "no limit" for each in limits)
        change.audit("namespace limited", name, "at once, an hour, a day: " + ", ".join(said))
    return _read(row)


def listed(session: Session) -> list[Namespace]:
    """List the namespaces beside the default one, by name."""
    return [_read(row) for row in session.scalars(select(NamespaceRow).order_by(NamespaceRow.name))]


def opened(url: str, database: Database, name: str) -> Database:
    """Open the store of a namespace; ``database`` is the default one's, at this URL."""
    at, schema = place(url, name)
    return Database(at, database.keys, namespace=name, schema=schema)


def place(url: str, name: str) -> tuple[str, str | None]:
    """Return where the store of a namespace is: its URL, and the schema, where there are
    schemas."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _beside(parsed, name), None
    return url, schema_of(name)


def schema_of(name: str) -> str:
    """Name the schema of a namespace on PostgreSQL."""
    return f"ldfi_{name.replace('-', '_')}"


def kept_apart(url: str) -> bool:
    """Return whether there can be others beside the default one: not where all is in memory."""
    return make_url(url).database not in {None, "", ":memory:"}


def _beside(url: URL, name: str) -> str:
    file = Path(url.database or "")
    ours = url.set(database=str(file.with_name(f"{file.stem}.{name}{file.suffix}")))
    return ours.render_as_string(hide_password=False)


def _read(row: NamespaceRow) -> Namespace:
    return Namespace(
        row.name,
        row.created_by,
        row.created_at,
        row.max_concurrent,
        row.members_per_hour,
        row.members_per_day,
    )
