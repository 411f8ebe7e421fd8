"""What people are to be told: written in the transaction of the change, delivered afterwards.

A notification is *dealt* once: each target there is then gets a delivery of its own. Whoever writes
one need not know the targets.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, exists, select, update
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Change, unless_unwritable
from ldfi.experiments.store.schema import DeliveryRow, NotificationRow

Event = Literal[
    "campaign-started",
    "campaign-ended",
    "finding",
    "halted",
    "resumed",
    "approval-needed",
    "guardrail-breached",
    "class-drifted",
    "not-signed",
    "maintenance-opened",
    "maintenance-closed",
]
EVENTS: tuple[Event, ...] = get_args(Event)


def put(
    change: Change, event: Event, title: str, text: str, details: dict[str, Any] | None = None
) -> None:
    """Have people told, in the transaction of the change."""
    document = {"title": title, "text": text, "details": details or {}, "by": change.who}
    with unless_unwritable(change, "notification", title):
        change.session.add(NotificationRow(at=change.now, event=event, document=document))


def to_be_dealt(session: Session, targets: Collection[str]) -> bool:
    """Return whether :func:`deal` has anything to do."""
    query = select(exists().where(_NEW) | exists().where(_deserted(targets)))
    return bool(session.scalar(query))


def deal(change: Change, targets: Collection[str], limit: int = 1000) -> None:
    """Give each target a delivery of what is new, ``limit`` notifications at most, oldest first.

    What waits for any other target is given up: nobody delivers it any more.
    """
    new = select(NotificationRow).where(_NEW).order_by(NotificationRow.id).limit(limit)
    for row in change.session.scalars(new):
        row.dealt_at = change.now
        change.session.add_all(DeliveryRow(notification_id=row.id, target=each) for each in targets)
    change.session.execute(
        update(DeliveryRow)
        .where(_deserted(targets))
        .values(ended_at=change.now, error="the target is not configured any more")
    )


def waiting(session: Session, target: str, limit: int = 20) -> list[NotificationRow]:
    """Read what has not been delivered to this target yet, oldest first."""
    query = (
        select(NotificationRow)
        .join(DeliveryRow, DeliveryRow.notification_id == NotificationRow.id)
        .where(DeliveryRow.target == target, DeliveryRow.ended_at.is_(None))
    )
    return list(session.scalars(query.order_by(NotificationRow.id).limit(limit)))


def end_delivery(change: Change, identity: int, target: str, error: str | None = None) -> None:
    """Write down that this target has been told, or with an error that it was given up."""
    change.session.execute(
        update(DeliveryRow)
        .where(DeliveryRow.notification_id == identity, DeliveryRow.target == target)
        .values(ended_at=change.now, error=error)
    )


_NEW = NotificationRow.dealt_at.is_(None)


def _deserted(targets: Collection[str]) -> ColumnElement[bool]:
    return DeliveryRow.ended_at.is_(None) & DeliveryRow.target.not_in(targets)
