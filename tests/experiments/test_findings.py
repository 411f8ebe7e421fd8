"""Findings on record: which state follows which, what is told of it, and what is verified later."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from experiments.domain.exploration import FindingChange, FindingState
from experiments.errors import Conflict, NotFound
from experiments.store import findings
from experiments.store.database import Database
from experiments.store.schema import AuditRow, FindingRow, NotificationRow

FAULTS = frozenset({"error@b", "error@a"})
ID = findings.finding_id("GET /", FAULTS)

NEXT = {
    # was: (told suspected, open, refuted, fixed)
    "": ("suspected", "open", "refuted", "fixed"),
    "suspected": ("suspected", "open", "refuted", "fixed"),
    "open": ("open", "open", None, "fixed"),
    "acknowledged": ("acknowledged", "acknowledged", None, "fixed"),
    "refuted": ("suspected", "open", "refuted", "fixed"),
    "fixed": ("fixed", "regressed", None, "fixed"),
    "regressed": ("regressed", "regressed", None, "fixed"),
}
TOLD: tuple[FindingState, ...] = ("suspected", "open", "refuted", "fixed")


def tell(db: Database, state: FindingState, now: float, *traces: str) -> None:
    with db.change(now) as change:
        findings.apply(change, FindingChange(FAULTS, state, traces), "GET /", "c", "e")


def the_finding(db: Database) -> FindingRow:
    with db.read() as session:
        return session.get_one(FindingRow, ID)


def be(db: Database, state: str) -> None:
    """Bring the finding into a state."""
    if state:
        tell(db, "open", 1.0, "t0")
        with db.change(1.0) as change:
            change.session.get_one(FindingRow, ID).state = state


@pytest.mark.parametrize(
    ("was", "told", "state"),
    [
        (was, told, state)
        for was, states in NEXT.items()
        for told, state in zip(TOLD, states, strict=True)
        if state is not None
    ],
)
def test_what_was_known_and_what_was_told_make_the_state(
    database: Database, was: str, told: FindingState, state: str
) -> None:
    be(database, was)
    with database.read() as session:
        before = len(list(session.scalars(select(NotificationRow))))

    tell(database, told, 5.0, "t1")

    row = the_finding(database)
    assert row.state == state
    assert row.traces == ["t1"]
    assert row.found_at == (1.0 if was else 5.0)
    if told in {"open", "fixed"}:
        assert row.verified_at == 5.0
    # People are told of what is new, and not of mere suspicions
    with database.read() as session:
        news = list(session.scalars(select(NotificationRow)))[before:]
        audit = set(session.scalars(select(AuditRow.what).where(AuditRow.at == 5.0)))
    changed = state != was
    assert audit == ({f"finding {state}"} if changed else set())
    assert [each.document["details"]["state"] for each in news] == (
        [state] if changed and state != "suspected" else []
    )


def test_traces_once_known_are_not_lost(database: Database) -> None:
    tell(database, "open", 1.0, "t0")
    tell(database, "fixed", 2.0)

    assert the_finding(database).traces == ["t0"]


@pytest.mark.parametrize("state", ["open", "regressed", "acknowledged"])
def test_what_hurts_can_be_acknowledged(database: Database, state: str) -> None:
    be(database, state)
    with database.change(2.0, "kim") as change:
        assert findings.acknowledge(change, ID, "ticket").state == "acknowledged"


@pytest.mark.parametrize("state", ["suspected", "refuted", "fixed"])
def test_what_does_not_hurt_cannot(database: Database, state: str) -> None:
    be(database, state)
    with pytest.raises(Conflict, match=state), database.change(2.0) as change:
        findings.acknowledge(change, ID, "ticket")
    with pytest.raises(NotFound, match="nowhere"), database.change(2.0) as change:
        findings.acknowledge(change, "nowhere", "ticket")


@pytest.mark.parametrize("state", [state for state in NEXT if state])
def test_what_is_verified_in_a_later_run(database: Database, state: str) -> None:
    be(database, state)
    with database.read() as session:
        later = findings.known(session, "GET /", before=1.5)
        same = findings.known(session, "GET /", before=1.0)
        other = findings.known(session, "GET /other", before=1.5)

    assert later == ([] if state in {"suspected", "refuted"} else [FAULTS])
    assert same == other == []
