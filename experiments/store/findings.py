"""Findings: minimal failing sets, and what has become of them.

A finding outlives campaigns; :mod:`ldfi.experiments.domain.campaign.lifecycle` says which state
follows which. Whatever changes one leaves an audit row and, but for mere suspicions and links, a
notification that carries all that an issue tracker needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sqlalchemy import CompoundSelect, Select, select, union
from sqlalchemy.orm import Session, load_only

from ldfi.analysis.phrases import said_shortly
from ldfi.errors import Conflict, NotFound
from ldfi.experiments.domain.campaign.exploration import FindingChange
from ldfi.experiments.domain.campaign.lifecycle import CONFIRMED, HURTING, FindingState, next_state
from ldfi.experiments.domain.campaign.result import Hypothesis
from ldfi.experiments.domain.judging.killed_process import KILLED
from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import ExperimentRow, FindingRow, finding_id
from ldfi.lineage.run_summary import Runs


def load(session: Session, identity: str) -> FindingRow:
    """Load the record of one finding. Raises NotFound."""
    row = session.get(FindingRow, identity)
    if row is None:
        raise NotFound(f"there is no finding {identity!r}; `ldfi findings` lists them")
    return row


def known(
    session: Session, request_class: str, before: float, asked: Collection[Hypothesis] = ()
) -> list[Hypothesis]:
    """List what was found in a class before a run began, and may be tried again.

    What nobody has confirmed, or a part of it explains, is tried again only when it is ``asked``
    for.
    """
    query = select(FindingRow).where(
        FindingRow.request_class == request_class,
        FindingRow.found_at < before,
        FindingRow.state.in_([*CONFIRMED, "suspected", "superseded"]),
    )
    found = [
        (frozenset(row.faults), row.state)
        for row in session.scalars(query.order_by(FindingRow.found_at))
    ]
    return [faults for faults, state in found if state in CONFIRMED or faults in asked]


def closed(session: Session) -> dict[str, str]:
    """List the points at which a fault has killed a process, each with the campaign in which that
    was: nothing is tried there without a person."""
    query = select(FindingRow.faults, FindingRow.campaign_id).where(FindingRow.state == "killed")
    return {
        each.partition("@")[2]: campaign
        for faults, campaign in session.execute(query.order_by(FindingRow.found_at))
        for each in faults
    }


def survived(change: Change, faults: Hypothesis) -> None:
    """Take back that these killed a process, where that was said: a person has had them tried
    again, and they were survived."""
    for row in change.session.scalars(select(FindingRow).where(FindingRow.state == "killed")):
        if faults.issuperset(row.faults):
            row.state, row.verified_at = "fixed", change.now
            change.audit("finding fixed", row.id, ", ".join(row.faults))
            _tell(change, row, "killed", None)


@dataclass(frozen=True, slots=True)
class Proof:
    """The experiment that shows best that a finding hurts.

    ``alone``: it tried just these failures; else more at once. ``counts``: by arm, how many devices
    counted and failed. ``runs``: the two requests that were kept of it.
    """

    experiment_id: str
    alone: bool
    counts: Mapping[str, Any] = field(default_factory=dict)
    runs: Runs = field(default_factory=Runs)


def proofs(session: Session, found: Sequence[FindingRow]) -> dict[str, Proof]:
    """Find, by finding, the newest experiment that hurt with just these failures, else the one
    that found it, if that hurt. Of one that is old the two requests are gone; then these are of the
    one that found it, whose stay. One question, however many there are."""
    wanted = {row.id: row.experiment_id for row in found}
    mine = FindingRow.id.in_(wanted)
    found_by = select(FindingRow.experiment_id).where(mine)
    shown: CompoundSelect[Any] = union(_newest_that_hurt().where(mine), found_by)
    query = (
        select(
            ExperimentRow.id,
            ExperimentRow.tried,
            ExperimentRow.verdict,
            ExperimentRow.comparison,
            ExperimentRow.lesson,
        )
        .where(ExperimentRow.id.in_(shown))
        .order_by(ExperimentRow.ended_at, ExperimentRow.id)
    )
    alone, others = {}, {}
    for identity, tried, verdict, counts, result in session.execute(query):
        if verdict != "harmful":  # asked for here, or SQLite reads all that hurt
            continue
        runs = Runs.from_json((result or {}).get("runs"))
        alone[tried] = Proof(identity, True, counts, runs)
        others[identity] = Proof(identity, False, counts, runs)
    best = {}
    for identity, named in wanted.items():
        first = others.get(named)
        proof = alone.get(identity) or first
        if proof is not None and first is not None and proof.runs == Runs():
            proof = replace(proof, runs=first.runs)
        if proof is not None:
            best[identity] = proof
    return best


def shown_by(session: Session) -> set[str]:
    """List the experiments that findings name, and those that show best that they hurt: a finding
    may be named by one that was survived, and told what of an earlier harm was to blame."""
    return {
        *session.scalars(select(FindingRow.experiment_id)),
        *filter(None, session.scalars(_newest_that_hurt())),
    }


def _newest_that_hurt() -> Select[tuple[str | None]]:
    """Choose, for each finding, the newest experiment that hurt with just its failures."""
    newest = (
        select(ExperimentRow.id)
        .where(ExperimentRow.tried == FindingRow.id, ExperimentRow.verdict == "harmful")
        .order_by(ExperimentRow.ended_at.desc(), ExperimentRow.id.desc())
        .limit(1)
        .correlate(FindingRow)
    )
    return select(newest.scalar_subquery()).select_from(FindingRow)


def make_good(session: Session) -> None:
    """Note of experiments what they tried, where a version before that put them on record."""
    rows = (
        select(ExperimentRow)
        .where(ExperimentRow.tried.is_(None))
        .options(load_only(ExperimentRow.request_class, ExperimentRow.hypothesis))
    )
    for row in session.scalars(rows):
        row.tried = finding_id(row.request_class, row.hypothesis)


def apply(
    change: Change, finding: FindingChange, request_class: str, campaign_id: str, experiment_id: str
) -> None:
    """Write down what an experiment did to a finding."""
    identity = finding_id(request_class, finding.faults)
    row = change.session.get(FindingRow, identity)
    was = None if row is None else cast(FindingState, row.state)
    if row is None:
        row = FindingRow(
            id=identity,
            request_class=request_class,
            faults=sorted(finding.faults),
            found_at=change.now,
            campaign_id=campaign_id,
            experiment_id=experiment_id,
            traces=list(finding.traces),
        )
        change.session.add(row)
    if finding.state in {"open", "fixed"}:
        row.verified_at = change.now
    if finding.traces:
        row.traces = list(finding.traces)
    row.state = next_state(was, finding.state)
    if finding.state == "killed":
        row.campaign_id, row.experiment_id, row.note = campaign_id, experiment_id, None
    if row.state == was:
        return
    change.audit(f"finding {row.state}", identity, ", ".join(row.faults))
    if row.state != "suspected":
        _tell(change, row, was, change.session.get(ExperimentRow, experiment_id))


def acknowledge(change: Change, identity: str, note: str) -> FindingRow:
    """Record that somebody knows of it. Raises NotFound, or Conflict where it does not hurt (any
    more)."""
    row = load(change.session, identity)
    was = cast(FindingState, row.state)
    if was == "killed":  # who knows of it has not said that it may be tried again
        row.note = note
        change.audit("finding noted", identity, note)
        return row
    if was not in HURTING:
        raise Conflict(f"finding {identity} is {was}: there is nothing to acknowledge")
    if (was, row.note) == ("acknowledged", note):
        return row
    row.state, row.note = "acknowledged", note
    change.audit("finding acknowledged", identity, note)
    if was != "acknowledged":
        _tell(change, row, was, None)
    return row


def link(change: Change, identity: str, tracker_url: str | None) -> FindingRow:
    """Record where people work on it; None: nowhere (any more). Raises NotFound.

    Nobody is notified: it is most often the receiver of a notification who says so.
    """
    row = load(change.session, identity)
    if row.tracker_url != tracker_url:
        row.tracker_url = tracker_url
        what = "finding linked" if tracker_url else "finding unlinked"
        change.audit(what, identity, tracker_url or "")
    return row


def _tell(
    change: Change, row: FindingRow, was: FindingState | None, experiment: ExperimentRow | None
) -> None:
    """Tell people, and their tracker, of a new state."""
    arms = {} if experiment is None else _arms(experiment.comparison)
    said = KILLED if row.state == "killed" else row.state
    lines = [
        f"{said_shortly(row.faults)}: {said}",
        _counted(arms),
        row.note or "",
        row.tracker_url or "",
    ]
    details = {
        "finding": row.id,
        "state": row.state,
        "was": was,
        "request_class": row.request_class,
        "faults": row.faults,
        "campaign": row.campaign_id if experiment is None else experiment.campaign_id,
        "experiment": row.experiment_id if experiment is None else experiment.id,
        "traces": row.traces,
        "found_at": row.found_at,
        "verified_at": row.verified_at,
        "note": row.note,
        "tracker_url": row.tracker_url,
        **arms,
    }
    title = f"{said}: {row.request_class}"
    notifications.put(change, "finding", title, "\n".join(filter(None, lines)), details)


def _arms(comparison: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Count the devices that counted, and failures among them, in either arm."""
    return {
        arm: {name: comparison[arm][name] for name in ("devices", "failures")}
        for arm in ("treatment", "control")
        if arm in comparison
    }


def _counted(arms: dict[str, dict[str, int]]) -> str:
    return ", ".join(f"{n['failures']} of {n['devices']} failed in {a}" for a, n in arms.items())
