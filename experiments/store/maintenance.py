"""Maintenance windows: who works on what, until when."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ldfi.errors import NotFound
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import MaintenanceRow


def open_windows(session: Session, now: float) -> list[Maintenance]:
    """List the windows that are open now."""
    query = select(MaintenanceRow).where(
        MaintenanceRow.opened_at <= now,
        MaintenanceRow.until > now,
        MaintenanceRow.closed_at.is_(None),
    )
    return [window_of(row) for row in session.scalars(query.order_by(MaintenanceRow.opened_at))]


def between(session: Session, start: float, end: float, most: int) -> list[Maintenance]:
    """List the windows that were open at some time from ``start`` to ``end``; the first
    ``most``."""
    over = func.coalesce(MaintenanceRow.closed_at, MaintenanceRow.until)
    query = select(MaintenanceRow).where(MaintenanceRow.opened_at < end, over > start)
    return [
        window_of(row)
        for row in session.scalars(query.order_by(MaintenanceRow.opened_at).limit(most))
    ]


def open_window(change: Change, window: Maintenance) -> None:
    """Open a window."""
    change.session.add(
        MaintenanceRow(
            id=window.id,
            owner=window.owner,
            reason=window.reason,
            down=list(window.down),
            opened_at=window.opened_at,
            until=window.until,
        )
    )
    change.audit("maintenance opened", window.id, window.reason)
    what = ", ".join(window.down) or "everything"
    text = f"{what}, by {window.owner}: {window.reason}"
    notifications.put(change, "maintenance-opened", "A maintenance window is open", text)


def window(session: Session, window_id: str) -> Maintenance:
    """Return a window, open or not. Raises NotFound."""
    row = session.get(MaintenanceRow, window_id)
    if row is None:
        raise NotFound(f"there is no maintenance window {window_id!r}")
    return window_of(row)


def close_window(change: Change, window_id: str) -> Maintenance:
    """Close a window before its time; a closed one stays as it is. Raises NotFound."""
    row = change.session.get(MaintenanceRow, window_id)
    if row is None:
        raise NotFound(f"there is no maintenance window {window_id!r}")
    if row.closed_at is None:
        row.closed_at = change.now
        change.audit("maintenance closed", window_id)
        what = ", ".join(row.down) or "everything"
        notifications.put(change, "maintenance-closed", "A maintenance window is closed", what)
    return window_of(row)


def window_of(row: MaintenanceRow) -> Maintenance:
    """Read a row into the words of the domain."""
    return Maintenance(
        id=row.id,
        owner=row.owner,
        reason=row.reason,
        down=tuple(row.down),
        opened_at=row.opened_at,
        until=row.until,
        closed_at=row.closed_at,
    )
