"""What people are to be told: written in the transaction of the change, delivered afterwards."""

from __future__ import annotations

from typing import Any, Literal, get_args

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import NotificationRow

Event = Literal[
    "campaign-started",
    "campaign-ended",
    "finding",
    "halted",
    "resumed",
    "approval-needed",
    "guardrail-breached",
    "class-drifted",
    "maintenance-opened",
    "maintenance-closed",
]
EVENTS: tuple[Event, ...] = get_args(Event)


def put(
    change: Change, event: Event, title: str, text: str, details: dict[str, Any] | None = None
) -> None:
    """Have people told."""
    document = {"title": title, "text": text, "details": details or {}, "by": change.who}
    change.session.add(NotificationRow(at=change.now, event=event, document=document))


def undelivered(session: Session, limit: int = 20) -> list[NotificationRow]:
    """What has not been delivered yet, oldest first."""
    query = select(NotificationRow).where(NotificationRow.delivered_at.is_(None))
    return list(session.scalars(query.order_by(NotificationRow.id).limit(limit)))


def delivered(change: Change, identity: int, error: str | None = None) -> None:
    """It has been delivered, or with an error given up."""
    change.session.execute(
        update(NotificationRow)
        .where(NotificationRow.id == identity)
        .values(delivered_at=change.now, error=error)
    )
