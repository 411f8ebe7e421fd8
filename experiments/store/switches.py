"""The kill switch: halted, by whom and why, until somebody resumes."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import FlagRow


def halted(session: Session) -> str | None:
    """Say why everything is halted; None when nothing is."""
    row = session.get(FlagRow, "halted")
    return row.value.get("reason") if row else None


def set_halted(change: Change, reason: str | None) -> None:
    """Halt everything, or with None resume."""
    change.session.merge(FlagRow(name="halted", value={"reason": reason}))
    change.audit("resume" if reason is None else "halt", why=reason or "")
    if reason is None:
        notifications.put(change, "resumed", "Experiments may start again", f"by {change.who}")
    else:
        notifications.put(change, "halted", "Everything is halted", f"by {change.who}: {reason}")
