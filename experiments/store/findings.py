"""Findings: minimal failing sets, and what has become of them.

A finding outlives campaigns. What an exploration says of it (suspected, open, refuted, fixed) is
combined here with what was known before: one that was fixed and hurts again has regressed, and one
that somebody acknowledged stays so as long as it hurts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from experiments.domain.exploration import FindingChange
from experiments.errors import Conflict, NotFound
from experiments.store import notifications
from experiments.store.database import Change
from experiments.store.schema import FindingRow

ANNOUNCED = ("open", "acknowledged", "regressed")
"""States of a finding that hurts, for sure, as far as anyone knows."""


def finding_id(request_class: str, faults: Iterable[str]) -> str:
    """The same failing set of the same class has the same id, whoever finds it, and when."""
    text = "\n".join([request_class, *sorted(faults)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def known(session: Session, request_class: str, before: float) -> list[frozenset[str]]:
    """What was found in a class before a run began, and may be tried again."""
    query = select(FindingRow.faults).where(
        FindingRow.request_class == request_class,
        FindingRow.found_at < before,
        FindingRow.state.in_([*ANNOUNCED, "fixed"]),
    )
    return [frozenset(faults) for faults in session.scalars(query.order_by(FindingRow.found_at))]


def apply(
    change: Change, finding: FindingChange, request_class: str, campaign_id: str, experiment_id: str
) -> None:
    """Write down what an experiment did to a finding."""
    identity = finding_id(request_class, finding.faults)
    row = change.session.get(FindingRow, identity)
    if row is None:
        row = FindingRow(
            id=identity,
            request_class=request_class,
            faults=sorted(finding.faults),
            state="",
            found_at=change.now,
            campaign_id=campaign_id,
            experiment_id=experiment_id,
            traces=list(finding.traces),
        )
        change.session.add(row)
    state = _next_state(row.state, finding.state)
    if finding.state in {"open", "fixed"}:
        row.verified_at = change.now
    if finding.traces:
        row.traces = list(finding.traces)
    if state == row.state:
        return
    row.state = state
    faults = ", ".join(row.faults)
    change.audit(f"finding {state}", identity, faults)
    if state != "suspected":
        notifications.put(
            change,
            "finding",
            f"{state}: {request_class}",
            f"{faults} together: {state}" if len(row.faults) > 1 else f"{faults}: {state}",
            {"finding": identity, "state": state, "request_class": request_class},
        )


def acknowledge(change: Change, identity: str, why: str) -> FindingRow:
    """Somebody knows of it. Raises NotFound, or Conflict where it does not hurt (any more)."""
    row = change.session.get(FindingRow, identity)
    if row is None:
        raise NotFound(f"there is no finding {identity!r}")
    if row.state not in ANNOUNCED:
        raise Conflict(f"finding {identity} is {row.state}: there is nothing to acknowledge")
    if row.state != "acknowledged":
        row.state = "acknowledged"
        change.audit("finding acknowledged", identity, why)
    return row


def _next_state(was: str, told: str) -> str:
    if told == "suspected":
        return was if was in {*ANNOUNCED, "fixed"} else "suspected"
    if told == "open":
        return {"fixed": "regressed", "": "open"}.get(was, was if was in ANNOUNCED else "open")
    if told == "refuted" and was in {*ANNOUNCED, "fixed"}:
        return "fixed"  # it was confirmed once, so what has changed is the system
    return told
