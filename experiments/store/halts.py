"""The kill switch: halted, by whom and why, until somebody resumes; and how far the machine's clock
was set, which budgets go by: after a restart too, and in every process that shows them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import FlagRow
from ldfi.experiments.telemetry import clock

_ALSO = "; also: "


def halted(session: Session) -> str | None:
    """Return why everything is halted; None when nothing is."""
    row = session.get(FlagRow, "halted")
    return row.value.get("reason") if row else None


def both(before: str | None, reason: str) -> str:
    """Return the reasons of somebody who halts what is halted already: none of them is lost."""
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


def note_jumps(change: Change, jumps: Iterable[clock.Jump]) -> None:
    """Keep on record by how much time has jumped forward, and when; what is old is dropped."""
    lately = sorted({*_on_record(change.session), *jumps})
    kept = [each for each in lately if each[0] >= change.now - clock.REMEMBERED]
    change.session.merge(FlagRow(name="clock", value={"jumps": kept}))


def jumped(session: Session, now: float) -> float:
    """Say by how many seconds time has jumped forward within the last day, in this process or in
    one that has kept it on record."""
    every = {*_on_record(session), *clock.CLOCK.jumps}
    return sum(by for at, by in every if at >= now - clock.REMEMBERED)


def _on_record(session: Session) -> Iterable[clock.Jump]:
    row = session.get(FlagRow, "clock")
    return [(at, by) for at, by in row.value["jumps"]] if row is not None else []
