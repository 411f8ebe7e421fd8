"""The audit, read in the order in which it can be told to others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.experiments.store.schema import AuditRow

GAP_SECONDS: Final = 10.0
"""How long an id that is missing may still turn up: longer than any of our transactions takes."""


class _Entry(Protocol):
    id: int
    at: float


Entry = TypeVar("Entry", bound=_Entry)


def after(session: Session, last: int, most: int) -> list[AuditRow]:
    """Read the entries that follow one, in the order of their ids; so many at most."""
    query = select(AuditRow).where(AuditRow.id > last).order_by(AuditRow.id).limit(most)
    return list(session.scalars(query))


def whole(entries: Iterable[Entry], last: int, now: float) -> Iterator[Entry]:
    """Pass on the entries after ``last``, in order, as far as none can still come in between.

    Transactions that run side by side need not end in the order of their ids. Whoever has been
    told of one id would never be told of a smaller one, so what follows a gap has to wait until it
    is filled, or old enough to be that of a transaction that was rolled back.
    """
    for entry in entries:
        if entry.id > last + 1 and entry.at > now - GAP_SECONDS:
            return
        last = entry.id
        yield entry
