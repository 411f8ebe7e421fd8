"""Who leads, and in which epoch: what other processes go by, and what fences off old leaders.

Every transaction of a leader looks whether its epoch is still the last one, and holds that fast
until it ends. So whatever an old leader does that does not know of its successor (its machine had
stood still, say) is either done before the successor begins to read, or not at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.errors import Deposed
from ldfi.experiments.store.schema import FlagRow

_NAME = "leader"


class Office(NamedTuple):
    """``epoch`` is one more than that of the leader before. ``url`` is where others reach this
    leader; empty when it has left."""

    epoch: int
    url: str


def current(session: Session) -> Office | None:
    """Look up who leads, or led last; None when nobody ever did."""
    return _office(session.scalar(select(FlagRow.value).where(FlagRow.name == _NAME)))


def enter(session: Session, url: str) -> int:
    """Begin to lead; the epoch. The lock of leaders must be ours."""
    last = _office(_locked(session))
    epoch = last.epoch + 1 if last is not None else 1
    session.merge(FlagRow(name=_NAME, value={"epoch": epoch, "url": url}))
    return epoch


def leave(session: Session, epoch: int) -> None:
    """Lead no longer: nobody need ask this process any more. Raises Deposed."""
    check(session, epoch)
    session.merge(FlagRow(name=_NAME, value={"epoch": epoch, "url": ""}))


def check(session: Session, epoch: int) -> None:
    """Check that no other leader has come since; none can before the session ends. Raises
    Deposed."""
    last = _office(_locked(session, read=True))
    if last is None or last.epoch != epoch:
        raise Deposed(f"another process leads, in epoch {last and last.epoch}; this was {epoch}")


def _locked(session: Session, *, read: bool = False) -> dict[str, Any] | None:
    query = select(FlagRow.value).where(FlagRow.name == _NAME)
    return session.scalar(query.with_for_update(read=read))


def _office(value: dict[str, Any] | None) -> Office | None:
    return None if value is None else Office(int(value["epoch"]), str(value["url"]))
