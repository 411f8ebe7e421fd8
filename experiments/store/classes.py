"""Request classes on record: what was learned of them survives a restart."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change, unless_unwritable
from ldfi.experiments.store.schema import ClassRow


def save(change: Change, name: str, version: int, document: dict[str, Any]) -> None:
    """Keep what is known of a class, unless the database cannot hold it."""
    with unless_unwritable(change, "class", name):
        change.session.merge(
            ClassRow(name=name, version=version, document=document, updated_at=change.now)
        )


def remove(change: Change, name: str) -> None:
    """Forget a class."""
    change.session.execute(delete(ClassRow).where(ClassRow.name == name))


def load(session: Session) -> list[dict[str, Any]]:
    """Load everything known of all classes."""
    return list(session.scalars(select(ClassRow.document).order_by(ClassRow.name)))
