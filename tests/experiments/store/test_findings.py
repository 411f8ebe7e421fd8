"""Findings on record: which state follows which, what is told of it, and what is verified later."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from ldfi.errors import Conflict, NotFound
from ldfi.experiments.domain.campaign.exploration import FindingChange, FindingNews
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store import findings
from ldfi.experiments.store.arming import new_row
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import (
    AuditRow,
    ExperimentRow,
    FindingRow,
    NotificationRow,
    finding_id,
)
from ldfi.lineage.run_summary import Runs
from tests.analysis.repairs.runs import call, runs
from tests.experiments.simulated import BOOT
from tests.kit.rows import experiment_row

FAULTS = frozenset({"error@b", "error@a"})
ID = finding_id("GET /", FAULTS)

NEXT = {
    # was: (told suspected, open, refuted, fixed, superseded)
    "": ("suspected", "open", "refuted", "refuted", "superseded"),
    "suspected": ("suspected", "open", "refuted", "refuted", "superseded"),
    "open": ("open", "open", "fixed", "fixed", "superseded"),
    "acknowledged": ("acknowledged", "acknowledged", "fixed", "fixed", "superseded"),
    "refuted": ("suspected", "open", "refuted", "refuted", "refuted"),
    "fixed": ("fixed", "regressed", "fixed", "fixed", "fixed"),
    "regressed": ("regressed", "regressed", "fixed", "fixed", "superseded"),
    "superseded": ("suspected", "open", "refuted", "refuted", "superseded"),
}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
TOLD: tuple[FindingNews, ...] = ("suspected", "open", "refuted", "fixed", "superseded")


def tell(db: Database, state: FindingNews, now: float, *traces: str) -> None:
    with db.change(now) as change:
        findings.apply(change, FindingChange(FAULTS, state, traces), "GET /", "c", "e")


def audits(db: Database, since: float) -> list[tuple[str, str, str]]:
    with db.read() as session:
        rows = session.scalars(select(AuditRow).order_by(AuditRow.id))
        return [(row.who, row.what, row.why) for row in rows if row.at >= since]


def news(db: Database, since: float = 0.0) -> list[dict[str, Any]]:
    """What receivers of notifications are given to work with."""
    with db.read() as session:
        rows = session.scalars(select(NotificationRow).order_by(NotificationRow.id))
        return [row.document["details"] for row in rows if row.at >= since]


def the_finding(db: Database) -> FindingRow:
    with db.read() as session:
        return session.get_one(FindingRow, ID)


def be(db: Database, state: str) -> None:
    """Bring the finding into a state."""
    if state:
        tell(db, "open", 1.0, "t0")
        with db.change(1.0) as change:
            change.session.get_one(FindingRow, ID).state = state


@ON_SQLITE
@pytest.mark.parametrize(
    ("was", "told", "state"),
    [
        (was, told, state)
        for was, states in NEXT.items()
        for told, state in zip(TOLD, states, strict=True)
    ],
)
def test_what_was_known_and_what_was_told_make_the_state(
    database: Database, was: str, told: FindingNews, state: str
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


@ON_SQLITE
@pytest.mark.parametrize("state", ["suspected", "refuted", "fixed"])
def test_what_does_not_hurt_cannot_be_acknowledged(database: Database, state: str) -> None:
    be(database, state)
    with pytest.raises(Conflict, match=state), database.change(2.0) as change:
        findings.acknowledge(change, ID, "ticket")
    with pytest.raises(NotFound, match="nowhere"), database.change(2.0) as change:
        findings.acknowledge(change, "nowhere", "ticket")


def test_acknowledging_is_told_once_and_the_note_may_change(database: Database) -> None:
    be(database, "open")
    for at, note in enumerate(("next sprint", "next sprint", "this sprint"), start=5):
        with database.change(float(at), "kim") as change:
            assert findings.acknowledge(change, ID, note).note == note

    assert audits(database, since=5) == [
        ("kim", "finding acknowledged", "next sprint"),
        ("kim", "finding acknowledged", "this sprint"),
    ]
    (told,) = news(database, since=5)
    assert (told["state"], told["was"], told["note"]) == ("acknowledged", "open", "next sprint")


def test_a_link_to_a_tracker_is_carried_by_every_later_event(database: Database) -> None:
    page = "https://tracker.example.org/SHOP-42"
    be(database, "open")
    for at, url in enumerate((page, page, None, page), start=5):
        with database.change(float(at), "bot") as change:
            assert findings.link(change, ID, url).tracker_url == url
    # Then whoever set it is not told so, or the two would answer each other for ever
    assert news(database, since=5) == []
    linked = [what.removeprefix("finding ") for _, what, _ in audits(database, since=5)]
    assert linked == ["linked", "unlinked", "linked"]
    # And the tracker can be told where its own page is
    tell(database, "fixed", 9.0)
    (told,) = news(database, since=9)
    assert (told["state"], told["tracker_url"]) == ("fixed", page)
    with pytest.raises(NotFound, match="nowhere"), database.change(9.0) as change:
        findings.link(change, "nowhere", page)


def test_an_event_says_all_that_a_tracker_needs(database: Database) -> None:
    # Given an experiment on record in which a finding hurt
    arms = {
        arm: {"devices": devices, "failures": failures, "latency": None}
        for arm, devices, failures in (("treatment", 20, 19), ("control", 21, 0))
    }
    experiment = Experiment("e", "GET /", BOOT, FAULTS, (), Settings())
    with database.change(1.0) as change:
        row = new_row(experiment, "c", 1)
        row.comparison = arms
        change.session.add(row)
    tell(database, "open", 2.0, "t1")

    assert news(database) == [
        {
            "finding": ID,
            "state": "open",
            "was": None,
            "request_class": "GET /",
            "faults": ["error@a", "error@b"],
            "campaign": "c",
            "experiment": "e",
            "traces": ["t1"],
            "found_at": 2.0,
            "verified_at": 2.0,
            "note": None,
            "tracker_url": None,
            "treatment": {"devices": 20, "failures": 19},
            "control": {"devices": 21, "failures": 0},
        }
    ]
    with database.read() as session:
        (text,) = [row.document["text"] for row in session.scalars(select(NotificationRow))]
    assert text.splitlines() == [
        "a and b both fail: open",
        "19 of 20 failed in treatment, 0 of 21 failed in control",
    ]


@pytest.mark.parametrize("state", [state for state in NEXT if state])
def test_what_is_verified_in_a_later_run(database: Database, state: str) -> None:
    be(database, state)
    with database.read() as session:
        later = findings.known(session, "GET /", before=1.5)
        same = findings.known(session, "GET /", before=1.0)
        other = findings.known(session, "GET /other", before=1.5)
        asked = findings.known(session, "GET /", before=1.5, asked=[FAULTS])

    assert later == ([] if state in {"suspected", "refuted", "superseded"} else [FAULTS])
    assert asked == ([] if state == "refuted" else [FAULTS])
    assert same == other == []


def state_after(history: Sequence[str]) -> str | None:
    """What a history comes to, told from its end and not step by step."""
    told = [event for event in history if event != "ack"]
    if not told:
        return None
    if "open" not in told:
        return "suspected" if told[-1] == "suspected" else "refuted"
    survived = [at for at, event in enumerate(history) if event in {"fixed", "refuted"}]
    hurt = [at for at, event in enumerate(history) if event == "open"]
    since = max(survived, default=-1)
    if hurt[-1] < since:
        return "fixed"
    began = next(at for at in hurt if at > since)
    if "ack" in history[began:]:
        return "acknowledged"
    return "regressed" if hurt[0] < since else "open"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.sampled_from([*TOLD[:-1], "ack"]), max_size=9))
def test_whatever_happens_to_a_finding_its_state_says_so(
    database: Database, history: list[FindingNews | Literal["ack"]]
) -> None:
    request_class = f"GET /{uuid.uuid4()}"
    identity = finding_id(request_class, FAULTS)
    for at, event in enumerate(history, start=1):
        with database.change(float(at), "kim") as change:
            if event != "ack":
                finding = FindingChange(FAULTS, event, ())
                findings.apply(change, finding, request_class, "c", "e")
            else:
                with suppress(Conflict, NotFound):
                    findings.acknowledge(change, identity, "on it")
        with database.read() as session:
            row = session.get(FindingRow, identity)
            audit = select(AuditRow.what).where(AuditRow.subject == identity)
            changes = [what.removeprefix("finding ") for what in session.scalars(audit)]
        assert (row.state if row else None) == state_after(history[:at])
        # And the audit alone tells the same, each state once
        assert (changes[-1] if changes else None) == (row.state if row else None)
        assert all(one != other for one, other in pairwise(changes))


def tried(
    database: Database,
    identity: str,
    faults: list[str],
    verdict: str,
    at: float,
    hurt: int,
    runs: Runs | None = None,
) -> None:
    counts = {"treatment": {"devices": 9, "failures": hurt}}
    lesson = None if runs is None else {"runs": runs.to_json()}
    more = {"verdict": verdict, "ended_at": at, "comparison": counts, "lesson": lesson}
    with database.change(at) as change:
        change.session.add(
            experiment_row(identity, sorted(faults), faults=[], created_at=at, **more)
        )


def proof(database: Database) -> findings.Proof | None:
    with database.read() as session:
        return findings.proofs(session, [session.get_one(FindingRow, ID)]).get(ID)


def test_the_proof_is_the_newest_that_hurt_with_just_these_failures(database: Database) -> None:
    tell(database, "open", 1.0)  # found by the experiment "e"
    assert proof(database) is None
    both = sorted(FAULTS)
    tried(database, "e", [*both, "error@c"], "tolerated", 1.0, 0)
    assert proof(database) is None  # it hurt nobody: it shows nothing
    with database.change(1.0) as change:
        change.session.get_one(ExperimentRow, "e").verdict = "harmful"
    found = proof(database)
    assert found is not None
    assert (found.experiment_id, found.alone) == ("e", False)  # more was failing

    tried(database, "e1", both, "harmful", 2.0, 3)
    tried(database, "e3", both, "harmful", 4.0, 5)
    tried(database, "e2", both, "harmful", 3.0, 4)
    tried(database, "e4", both, "tolerated", 5.0, 0)
    tried(database, "e5", both[:1], "harmful", 6.0, 6)
    found = proof(database)
    assert found is not None
    assert (found.experiment_id, found.alone) == ("e3", True)
    assert found.counts["treatment"] == {"devices": 9, "failures": 5}


@pytest.mark.parametrize("left", [Runs(), None], ids=["pruned", "folded"])
def test_an_old_proof_shows_the_first_requests(database: Database, left: Runs | None) -> None:
    # Given a finding whose confirmation has lost its details by age, as the first never does
    seen = runs([call("pump>http:GET:tank/x", failed=True, fired="error")])
    tell(database, "open", 1.0)
    tried(database, "e", [*sorted(FAULTS), "error@c"], "harmful", 1.0, 2, seen)
    tried(database, "e1", sorted(FAULTS), "harmful", 2.0, 3, left)
    # Then it is still shown how it fails, beside what the newest counted
    found = proof(database)
    assert found is not None
    assert (found.experiment_id, found.alone, found.runs) == ("e1", True, seen)
