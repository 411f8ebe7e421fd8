"""What is done once, by whichever process and across restarts: requests that carry an idempotency
key, of which a repetition gets the same answer; and numbers that are used up, of log-in links and
of sessions that were ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sqlalchemy import ColumnElement, delete, insert, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import IdempotencyRow

KEPT: Final = 86_400.0
"""Seconds for which an answer is kept."""
ABANDONED: Final = 60.0
"""Seconds after which a request without an answer is taken to have died with its process."""

_SPENT: Final = "spent"
"""Stands for the caller in the rows of numbers; no token has this id."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Who used which key for what. ``request`` is a digest of the request."""

    caller: str
    key: str
    request: str


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer, as it went out the first time."""

    status: int
    headers: dict[str, str]
    body: str


class SlotClaim(Enum):
    """What became of asking for a slot that has no answer to give."""

    OURS = "nobody has it: go on, then complete or release it"
    RUNNING = "the first request is still being worked on"
    REUSED = "the key was used for another request"


def claim(change: Change, slot: Slot) -> KeptAnswer | SlotClaim:
    """Take the slot, or learn what came of it before.

    Raises sqlalchemy's IntegrityError when somebody took it this very moment: ask again.
    """
    row = change.session.get(IdempotencyRow, (slot.caller, slot.key), with_for_update=True)
    if row is None:
        change.session.add(
            IdempotencyRow(caller=slot.caller, key=slot.key, request=slot.request, at=change.now)
        )
        change.session.flush()
        return SlotClaim.OURS
    age = change.now - row.at
    if age < KEPT:
        if row.request != slot.request:
            return SlotClaim.REUSED
        if row.status is not None and row.answer is not None:
            return KeptAnswer(row.status, row.answer["headers"], row.answer["body"])
        if age < ABANDONED:
            return SlotClaim.RUNNING
    row.request, row.at, row.status, row.answer = slot.request, change.now, None, None
    return SlotClaim.OURS


def complete(change: Change, slot: Slot, claimed_at: float, answer: KeptAnswer) -> None:
    """Keep the answer, unless the slot was taken to be abandoned and is somebody else's now."""
    change.session.execute(
        update(IdempotencyRow)
        .where(*_ours(slot, claimed_at))
        .values(status=answer.status, answer={"headers": answer.headers, "body": answer.body})
    )


def release(change: Change, slot: Slot, claimed_at: float) -> None:
    """Give the slot up: nothing was done, so a repetition may try again."""
    change.session.execute(delete(IdempotencyRow).where(*_ours(slot, claimed_at)))


def spend(change: Change, number: str) -> bool:
    """Use up a number that nobody can guess; False where it was used within :data:`KEPT`, by
    anybody. One insert decides it."""
    used = insert(IdempotencyRow).values(caller=_SPENT, key=number, request="", at=change.now)
    try:
        with change.session.begin_nested():
            change.session.execute(used)
    except IntegrityError:
        return False
    return True


def is_spent(session: Session, number: str) -> bool:
    """Return whether a number was used up."""
    return session.get(IdempotencyRow, (_SPENT, number)) is not None


def forget(change: Change) -> None:
    """Remove what is past its time."""
    change.session.execute(delete(IdempotencyRow).where(IdempotencyRow.at <= change.now - KEPT))


def _ours(slot: Slot, claimed_at: float) -> tuple[ColumnElement[bool], ...]:
    return (
        IdempotencyRow.caller == slot.caller,
        IdempotencyRow.key == slot.key,
        IdempotencyRow.at == claimed_at,
        IdempotencyRow.status.is_(None),
    )
