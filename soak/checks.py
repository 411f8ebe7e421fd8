"""Checks of what must hold whenever the service is killed. Each yields what is wrong, in words.

They know the tables and the witness's notes, and nothing of how the service works.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from ldfi.experiments.domain.campaign.lifecycle import HURTING
from ldfi.experiments.domain.judging.experiment import ACTIVE
from ldfi.experiments.store.schema import AuditRow, ExperimentRow
from soak.record import Record
from soak.treated import Treated

WHOLE_SECOND = 1.0
"""The expiry of a failure context is written in whole seconds, so it ends that much later."""

HOUR, DAY = 3_600.0, 86_400.0
OVER = ("decided", "aborted")
Findings = set[tuple[str, tuple[str, ...]]]
"""Class, and faults in order."""

_ENDS = {f"experiment {end}" for end in ("harmful", "tolerated", "inconclusive", "aborted")}
_ORDER = ["experiment armed", "experiment observing", "experiment settling"]


@dataclass(frozen=True, slots=True)
class Kill:
    """A life of the service ended at ``at``, Unix seconds; ``aim`` is what it was aimed at."""

    at: float
    aim: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the service was told to keep. ``slack``: seconds by which the witness may see a
    request later than the edge decided about it."""

    lease: float
    hour: int
    slack: float = 0.0


def at_any_time(record: Record, bounds: Bounds) -> Iterator[str]:
    """Check what holds in every state of the database."""
    yield from one_experiment_a_class(record)
    yield from budgets_hold(record, bounds.hour)
    yield from nothing_decided_twice(record)
    yield from every_step_is_audited(record)
    yield from findings_rest_on_experiments(record)
    yield from told_exactly_once(record)


def one_experiment_a_class(record: Record) -> Iterator[str]:
    """Check that no class has two experiments at once."""
    active = [row for row in record.experiments.values() if row.state in ACTIVE]
    for name, count in Counter(row.request_class for row in active).items():
        if count > 1:
            yield f"{count} experiments are active on class {name!r}"
    for row in active:
        if row.active_class != row.request_class:
            yield f"experiment {row.id} is {row.state} and does not hold its class"


def budgets_hold(record: Record, hour: int) -> Iterator[str]:
    """Check that charges of any hour, any day and every campaign are within their budgets."""
    armed = sorted(_armed(record), key=lambda row: row.armed_at or 0.0)
    for span, budget in ((HOUR, hour), (DAY, 2 * hour)):
        for last in armed:
            end = last.armed_at or 0.0
            within = [row for row in armed if end - span < (row.armed_at or 0.0) <= end]
            charged = sum(row.members_charged for row in within)
            if charged > budget:
                yield f"{charged} members charged in {span:.0f} s, the budget is {budget}"
    for campaign in record.campaigns.values():
        mine = [row for row in armed if row.campaign_id == campaign.id and row.run == campaign.run]
        charged = sum(row.members_charged for row in mine)
        budget = campaign.definition["settings"]["member_budget"]
        if charged > budget:
            yield f"campaign {campaign.id} is charged {charged} members, its budget is {budget}"
    for row in armed:
        if row.members_charged > row.members_reserved:
            yield f"experiment {row.id} is charged more than was reserved for it"


def nothing_decided_twice(record: Record) -> Iterator[str]:
    """Check that nothing decided about a class as it is was tried again, unless refuted."""
    refuted = [audit.at for audit in record.audit if audit.what == "finding refuted"]
    tried: defaultdict[tuple[Any, ...], list[ExperimentRow]] = defaultdict(list)
    for row in record.experiments.values():
        if row.verdict in {"harmful", "tolerated"} and row.purpose in {"explore", "confirm"}:
            version = (row.lesson or {}).get("version")
            what = (row.campaign_id, row.run, row.request_class, version, row.purpose)
            tried[*what, tuple(row.hypothesis)].append(row)
    for what, rows in tried.items():
        rows.sort(key=lambda row: row.ended_at or 0.0)
        for one, again in pairwise(rows):
            if not any((one.ended_at or 0.0) <= at <= (again.armed_at or 0.0) for at in refuted):
                yield f"experiments {one.id} and {again.id} decided the same: {what}"


def every_step_is_audited(record: Record) -> Iterator[str]:
    """Check the audit of each armed experiment: armed once, ended once, steps in order."""
    audit: defaultdict[str, list[AuditRow]] = defaultdict(list)
    for each in record.audit:
        if each.what in _ENDS or each.what in _ORDER:
            audit[each.subject].append(each)
    for row in record.experiments.values():
        what = [each.what for each in audit[row.id]]
        if row.armed_at is not None:
            yield from _wrong_steps(row, what)
    for identity in audit.keys() - record.experiments.keys():
        yield f"the audit knows experiment {identity}, the record does not"
    for campaign in record.campaigns.values():
        states = [each.what for each in record.audit if each.subject == campaign.id]
        ends = states.count("campaign finished")
        if states.count("campaign running") != 1 or ends != (campaign.state == "finished"):
            yield f"campaign {campaign.id} is {campaign.state}; the audit says {states}"


def _wrong_steps(row: ExperimentRow, what: list[str]) -> Iterator[str]:
    ends = [f"experiment {row.verdict or row.state}"] if row.state in OVER else []
    steps = what[: len(what) - len(ends)]
    places = [_ORDER.index(step) if step in _ORDER else -1 for step in steps]
    if steps[:1] != _ORDER[:1] or places != sorted(set(places)) or what[len(steps) :] != ends:
        yield f"experiment {row.id} is {row.verdict or row.state}; the audit says {what}"
    elif row.state in ACTIVE and what[-1] != f"experiment {row.state}":
        yield f"experiment {row.id} is {row.state}, its last step in the audit is {what[-1]}"


def findings_rest_on_experiments(record: Record) -> Iterator[str]:
    """No finding without the experiment that showed it, and no confirmation without its finding."""
    known = {(row.request_class, tuple(row.faults)) for row in record.findings.values()}
    if len(known) < len(record.findings):
        yield "a failing set is on record as two findings"
    for finding in record.findings.values():
        shown = record.experiments.get(finding.experiment_id)
        if shown is None or shown.state != "decided":
            yield f"finding {finding.id} names experiment {finding.experiment_id}, not decided"
    for row in record.experiments.values():
        if row.purpose != "confirm" or row.verdict != "harmful" or row.lesson is None:
            continue
        if (row.request_class, tuple(sorted(row.hypothesis))) not in known:
            yield f"experiment {row.id} confirmed {row.hypothesis}, and no finding says so"


def told_exactly_once(record: Record) -> Iterator[str]:
    """For each change of a finding and each end of a campaign: one notification, no more."""
    due = Counter(
        (each.subject, each.what.removeprefix("finding "))
        for each in record.audit
        if each.what.startswith("finding ") and each.what != "finding suspected"
    )
    due.update(
        (each.subject, each.what.removeprefix("campaign "))
        for each in record.audit
        if each.what in {"campaign running", "campaign finished"}
    )
    told = Counter(
        (details.get("finding") or details["campaign"], details["state"])
        for each in record.notifications
        if each.event in {"finding", "campaign-started", "campaign-ended"}
        for details in [each.document["details"]]
    )
    for (subject, state), count in (due - told).items():
        yield f"nobody was told ({count} times) that {subject} is {state}"
    for (subject, state), count in (told - due).items():
        yield f"people were told {count} times too often that {subject} is {state}"


def nothing_lost(before: Record, now: Record) -> Iterator[str]:
    """Check that what was on record is still there, and what had ended has not changed."""
    for name in ("experiments", "findings", "campaigns"):
        for identity in getattr(before, name).keys() - getattr(now, name).keys():
            yield f"{name}: {identity} was on record and is gone"
    gone = {each.id for each in before.audit} - {each.id for each in now.audit}
    gone |= {each.id for each in before.notifications} - {each.id for each in now.notifications}
    if gone:
        yield f"{len(gone)} rows of the audit or notifications are gone"
    for identity, was in before.experiments.items():
        row = now.experiments.get(identity)
        if row is not None and was.state in OVER and _ended(row) != _ended(was):
            yield f"experiment {identity} had ended as {_ended(was)} and is now {_ended(row)}"
    for identity, finding in before.findings.items():
        state = now.findings[identity].state if identity in now.findings else ""
        if finding.state in HURTING and state not in HURTING:
            yield f"finding {identity} was {finding.state} and is now {state or 'gone'}"


def _ended(row: ExperimentRow) -> tuple[Any, ...]:
    return row.state, row.verdict, row.ended_at, row.members_charged, row.lesson


def nothing_outlives_its_lease(
    record: Record, treated: Iterable[Treated], kills: Sequence[Kill], bounds: Bounds
) -> Iterator[str]:
    """Check that no fault fires after the lease on record, nor later than a lease after a kill."""
    for each in treated:
        row = record.experiments.get(each.experiment)
        if row is None or row.armed_at is None or row.lease_until is None:
            yield f"{each.device} was treated for {each.experiment}, which nobody armed"
            continue
        last = each.fired or each.stamped
        until = row.lease_until + WHOLE_SECOND
        if last > until:
            yield f"a fault of {row.id} fired {last - until:.3f} s after its lease on record"
        if each.stamped > row.lease_until + bounds.slack:
            late = each.stamped - row.lease_until
            yield f"an edge stamped for {row.id} {late:.3f} s after its lease on record"
        if row.ended_at is not None and each.stamped > row.ended_at + bounds.slack:
            late = each.stamped - row.ended_at
            yield f"an edge stamped for {row.id} {late:.3f} s after it had ended"
        killed = next((kill.at for kill in kills if kill.at > row.armed_at), None)
        if killed is not None and last > killed + bounds.lease + WHOLE_SECOND:
            yield f"a fault of {row.id} fired {last - killed:.3f} s after the service was killed"


def every_exposure_is_accounted_for(record: Record, treated: Iterable[Treated]) -> Iterator[str]:
    """Check that each experiment is charged with at least the devices treated for it."""
    devices = _devices(treated)
    for identity, seen in devices.items():
        row = record.experiments.get(identity)
        charged = 0 if row is None else row.members_charged
        if len(seen) > charged:
            yield f"{len(seen)} devices were treated for {identity}, {charged} are charged"
    for row in _armed(record):
        exposed = row.comparison.get("exposed", 0)
        if exposed > len(devices.get(row.id, ())):
            yield f"experiment {row.id} counts {exposed} exposed devices, the witness saw fewer"


def no_device_in_two_experiments(record: Record, treated: Iterable[Treated]) -> Iterator[str]:
    """Check that experiments that overlap in time treat different devices."""
    devices = _devices(treated)
    rows = sorted(_armed(record), key=lambda row: row.armed_at or 0.0)
    for one, other in combinations(rows, 2):
        both = devices.get(one.id, set()) & devices.get(other.id, set())
        if both and (other.armed_at or 0.0) < (one.ended_at or record.at):
            yield f"{sorted(both)[:3]} were treated for {one.id} and for {other.id} at once"


def all_is_done(record: Record, started: Sequence[str], planted: Findings) -> Iterator[str]:
    """Check that each campaign was started once, has finished, and all planted is found."""
    for row in record.experiments.values():
        if row.state not in OVER:
            yield f"experiment {row.id} is still {row.state}"
    if sorted(started) != sorted(record.campaigns):
        yield f"campaigns {sorted(started)} were started, on record are {sorted(record.campaigns)}"
    for campaign in record.campaigns.values():
        if campaign.state != "finished":
            yield f"campaign {campaign.id} is {campaign.state}: {campaign.reason}"
    for name, faults in sorted(planted - found(record)):
        yield f"a planted weakness of {name} was not found: {', '.join(faults)}"
    for name, faults in sorted(found(record) - planted):
        yield f"a finding of {name} was never planted: {', '.join(faults)}"


def found(record: Record) -> Findings:
    """Return the class and the faults of each finding that hurts."""
    return {
        (row.request_class, tuple(sorted(row.faults)))
        for row in record.findings.values()
        if row.state in HURTING
    }


def decided_all(record: Record, campaign: str) -> bool:
    """Return whether each hypothesis that this campaign tried was decided in the end."""
    mine = [row for row in _armed(record) if row.campaign_id == campaign]
    tried = {(row.request_class, *row.hypothesis) for row in mine}
    decided = [row for row in mine if row.verdict in {"harmful", "tolerated"}]
    return tried == {(row.request_class, *row.hypothesis) for row in decided}


def _devices(treated: Iterable[Treated]) -> dict[str, set[str]]:
    devices: defaultdict[str, set[str]] = defaultdict(set)
    for each in treated:
        devices[each.experiment].add(each.device)
    return dict(devices)


def _armed(record: Record) -> list[ExperimentRow]:
    return [row for row in record.experiments.values() if row.armed_at is not None]
