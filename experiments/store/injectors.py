"""Who can make which calls fail, on record: what was reported is known again after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change, unless_unwritable
from ldfi.experiments.store.schema import InjectorRow


def save(change: Change, callers: Mapping[str, dict[str, Any] | None]) -> None:
    """Keep what is known of callers; None: nothing any more."""
    for caller, document in callers.items():
        change.session.execute(delete(InjectorRow).where(InjectorRow.caller == caller))
        if document is not None:
            with unless_unwritable(change, "injectors of", caller):
                change.session.add(InjectorRow(caller=caller, document=document))


def load(session: Session) -> dict[str, dict[str, Any]]:
    """Load everything known, by caller."""
    rows = session.scalars(select(InjectorRow).order_by(InjectorRow.caller))
    return {row.caller: row.document for row in rows}
