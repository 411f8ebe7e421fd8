"""The kill switch: halted, by whom and why, until somebody resumes."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import FlagRow

_ALSO = "; also: "


def halted(session: Session) -> str | None:
    """Say why everything is halted; None when nothing is."""
    row = session.get(FlagRow, "halted")
    return row.value.get("reason") if row else None


def both(before: str | None, reason: str) -> str:
    """Give the reasons of somebody who halts what is halted already: none of them is lost."""
    said = before.split(_ALSO) if before is not None else []
    return _ALSO.join(said if reason in said else [*said, reason])


def set_halted(change: Change, reason: str | None) -> str | None:
    """Halt everything, whether it is halted already or not; or with None resume.

    Returns why everything is halted now.
    """
    whole = None if reason is None else both(halted(change.session), reason)
    change.session.merge(FlagRow(name="halted", value={"reason": whole}))
    change.audit("resume" if reason is None else "halt", why=reason or "")
    if reason is None:
        notifications.put(change, "resumed", "Experiments may start again", f"by {change.who}")
    else:
        notifications.put(change, "halted", "Everything is halted", f"by {change.who}: {reason}")
    return whole
