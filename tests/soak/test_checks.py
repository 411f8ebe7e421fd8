"""The checks of the crash test can fail: each finds a record that was doctored just so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from ldfi.experiments.store.schema import (
    AuditRow,
    CampaignRow,
    ExperimentRow,
    FindingRow,
    NotificationRow,
)
from soak import checks
from soak.checks import Bounds, Kill
from soak.record import Record
from soak.treated import Treated

BOUNDS = Bounds(lease=3.0, hour=60)
KILLS = [Kill(104.0, "blind")]
PLANTED: set[tuple[str, tuple[str, ...]]] = {("GET /boot", ("error@layout",))}
TREATED = [Treated("e1", "d1", 101.0, 101.0), Treated("e1", "d2", 101.5, None)]
TREATED += [Treated("e2", "d3", 103.5, 106.9)]


def an_experiment(identity: str, armed_at: float, **more: object) -> ExperimentRow:
    row = ExperimentRow(
        id=identity,
        campaign_id="c1",
        run=1,
        request_class="GET /boot",
        active_class=None,
        purpose="explore",
        hypothesis=["error@layout"],
        state="decided",
        verdict="harmful",
        members_reserved=10,
        members_charged=10,
        armed_at=armed_at,
        lease_until=armed_at + 3.0,
        ended_at=armed_at + 2.0,
        comparison={"exposed": 1},
        lesson={"version": 1},
    )
    for name, value in more.items():
        setattr(row, name, value)
    return row


def a_record() -> Record:
    """A campaign that found what is planted: explored, one attempt crashed, confirmed."""
    crashed = {"state": "aborted", "verdict": None, "lesson": None, "ended_at": 108.0}
    rows = [
        an_experiment("e1", 100.0),
        an_experiment("e2", 103.0, purpose="confirm", comparison={}, **crashed),
        an_experiment("e3", 109.0, purpose="confirm", comparison={}),
    ]
    finding = FindingRow(
        id="f1",
        request_class="GET /boot",
        faults=["error@layout"],
        state="open",
        campaign_id="c1",
        experiment_id="e1",
    )
    campaign = CampaignRow(
        id="c1",
        state="finished",
        reason="",
        run=1,
        definition={"settings": {"member_budget": 100}},
    )
    steps = [("campaign running", "c1")]
    for row in rows:
        steps.append(("experiment armed", row.id))
        steps += [("experiment observing", row.id)] if row.id != "e3" else []
        steps += [("experiment settling", row.id)] if row.id != "e2" else []
        steps.append((f"experiment {row.verdict or row.state}", row.id))
    steps += [("finding suspected", "f1"), ("finding open", "f1"), ("campaign finished", "c1")]
    told = [("campaign-started", {"campaign": "c1", "state": "running"})]
    told += [("finding", {"finding": "f1", "state": "open"})]
    told += [("campaign-ended", {"campaign": "c1", "state": "finished"})]
    return Record(
        at=120.0,
        experiments={row.id: row for row in rows},
        findings={"f1": finding},
        campaigns={"c1": campaign},
        audit=[
            AuditRow(id=number, at=100.0 + number, what=what, subject=subject)
            for number, (what, subject) in enumerate(steps)
        ],
        notifications=[
            NotificationRow(id=number, event=event, document={"details": details})
            for number, (event, details) in enumerate(told)
        ],
    )


def all_checks(record: Record, treated: Iterable[Treated] = TREATED) -> list[str]:
    return [
        *checks.at_any_time(record, BOUNDS),
        *checks.nothing_lost(a_record(), record),
        *checks.nothing_outlives_its_lease(record, treated, KILLS, BOUNDS),
        *checks.every_exposure_is_accounted_for(record, treated),
        *checks.no_device_in_two_experiments(record, treated),
        *checks.all_is_done(record, ["c1"], PLANTED),
    ]


def test_a_sound_record_passes() -> None:
    assert not all_checks(a_record())


def two_on_one_class(record: Record) -> None:
    for name in ("e2", "e3"):
        record.experiments[name].state = "observing"


def a_class_let_go(record: Record) -> None:
    record.experiments["e3"].state = "settling"


def overspent(record: Record) -> None:
    for row in record.experiments.values():
        row.members_reserved = row.members_charged = 30


def overcharged(record: Record) -> None:
    record.experiments["e1"].members_charged = 11


def rerun(record: Record) -> None:
    record.experiments["e3"].purpose = "explore"


def armed_twice(record: Record) -> None:
    record.audit.insert(2, AuditRow(id=90, at=101.0, what="experiment armed", subject="e1"))


def never_ended(record: Record) -> None:
    record.audit = [each for each in record.audit if each.what != "experiment aborted"]


def a_confirmation_without_finding(record: Record) -> None:
    record.findings.clear()


def a_finding_out_of_nowhere(record: Record) -> None:
    record.findings["f1"].experiment_id = "e2"


def untold(record: Record) -> None:
    del record.notifications[1]


def told_twice(record: Record) -> None:
    record.notifications.append(record.notifications[1])


def an_experiment_gone(record: Record) -> None:
    del record.experiments["e2"]


def decided_otherwise(record: Record) -> None:
    record.experiments["e1"].verdict = "tolerated"


def forgotten(record: Record) -> None:
    record.findings["f1"].state = "suspected"


def started_twice(record: Record) -> None:
    record.audit.append(AuditRow(id=91, at=119.0, what="campaign running", subject="c1"))


def not_done(record: Record) -> None:
    record.campaigns["c1"].state = "running"


def undercharged(record: Record) -> None:
    record.experiments["e1"].members_charged = 1


@pytest.mark.parametrize(
    ("doctor", "complaint"),
    [
        (two_on_one_class, "2 experiments are active on class 'GET /boot'"),
        (a_class_let_go, "e3 is settling and does not hold its class"),
        (overspent, "90 members charged in 3600 s, the budget is 60"),
        (overcharged, "e1 is charged more than was reserved"),
        (rerun, "e1 and e3 decided the same"),
        (armed_twice, "e1 is harmful; the audit says"),
        (never_ended, "e2 is aborted; the audit says"),
        (a_confirmation_without_finding, "e3 confirmed"),
        (a_finding_out_of_nowhere, "f1 names experiment e2, not decided"),
        (untold, "nobody was told"),
        (told_twice, "1 times too often"),
        (an_experiment_gone, "e2 was on record and is gone"),
        (decided_otherwise, "e1 had ended as"),
        (forgotten, "f1 was open and is now suspected"),
        (started_twice, "campaign c1 is finished; the audit says"),
        (not_done, "campaign c1 is running"),
        (undercharged, "2 devices were treated for e1, 1 are charged"),
    ],
)
def test_each_check_finds_what_it_is_for(doctor: Callable[[Record], None], complaint: str) -> None:
    record = a_record()
    doctor(record)
    assert any(complaint in wrong for wrong in all_checks(record)), all_checks(record)


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (Treated("e1", "d1", 102.5, 102.5), "stamped for e1 0.500 s after it had ended"),
        (Treated("e2", "d3", 106.5, 106.5), "stamped for e2 0.500 s after its lease"),
        (Treated("e2", "d3", 105.0, 107.5), "e2 fired 0.500 s after its lease"),
        (Treated("e2", "d3", 105.0, 108.5), "e2 fired 4.500 s after the service was killed"),
        (Treated("e9", "d1", 101.0, 101.0), "for e9, which nobody armed"),
        (Treated("e9", "d1", 101.0, 101.0), "1 devices were treated for e9, 0 are charged"),
        (Treated("e2", "d1", 103.2, None), "['d1'] were treated for e1 and for e2 at once"),
    ],
)
def test_each_check_of_what_the_witness_saw(seen: Treated, complaint: str) -> None:
    record = a_record()
    if "at once" in complaint:
        record.experiments["e1"].ended_at = 103.1
    assert any(complaint in wrong for wrong in all_checks(record, [*TREATED, seen]))


def test_the_witness_may_be_a_little_late_where_it_says_so() -> None:
    late = [replace(TREATED[0], stamped=102.4, fired=None)]
    record = a_record()
    strict, lax = BOUNDS, replace(BOUNDS, slack=0.5)
    assert list(checks.nothing_outlives_its_lease(record, late, KILLS, strict))
    assert not list(checks.nothing_outlives_its_lease(record, late, KILLS, lax))
