"""What the page of a finding tells, so that nobody needs to know how it was found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldfi.analysis.phrases import others_alone, said_fault, said_outcome
from ldfi.analysis.repairs.advice import Advice
from ldfi.analysis.repairs.issue import TRACKERS, Issue, Tracker, issue
from ldfi.dashboards.lineage_graph import LineageGraph, difference
from ldfi.dashboards.run_tree import SideBySide, callees_of, runs_shown, side_by_side
from ldfi.dashboards.words import capitalised
from ldfi.experiments.api.repairs import Explained
from ldfi.experiments.queries.finding_commands import Command, finding_commands, reproduce_command
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow
from ldfi.lineage.run import Run, Runs
from ldfi.scenarios.scenario import Scenario

NAMES: Mapping[Tracker, str] = {"github": "GitHub", "gitlab": "GitLab", "jira": "Jira"}

MEANINGS = {
    "killed": (
        "One request was enough: a process was about to see the failure, and was not heard of "
        "again. Nobody tries that again until a person has it tried."
    ),
    "suspected": "An experiment hurt. A second one has yet to confirm it.",
    "open": "Confirmed: users are hurt when this happens. Nobody has said yet that they know.",
    "acknowledged": "Confirmed, and somebody knows of it.",
    "fixed": "It was confirmed once. When it was last tried, users were not hurt any more.",
    "regressed": "It was fixed, and hurts again.",
    "refuted": "When it was tried again, nobody was hurt: the first experiment was misleading.",
    "superseded": "A part of it was found to hurt by itself: that is the finding now.",
}
SPREADS = {
    "turned away": (
        "It does not stay with those who meet it: after a few failures others were turned away "
        "before they came that far, as when one failing user opens a circuit breaker for all."
    ),
    "in vain": (
        "It does not stay with those who meet it: others came as far and failed there as well, as "
        "when a few slow or failed calls use up a pool of connections that all share."
    ),
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One experiment that tried just this."""

    experiment: ExperimentRow
    saw: str
    """Control against treatment, in a sentence."""


@dataclass(frozen=True, slots=True)
class FindingStory:
    """``last_seen``: Unix seconds, when it last hurt as far as is on record."""

    finding: FindingRow
    title: str
    meaning: str
    causes: tuple[str, ...]
    interference: bool
    """Whether only others failed: no device that met the failures did."""
    saw: str
    spread: str
    """How others were hurt who did not meet the failures; empty where none were."""
    detail: str
    evidence: tuple[Evidence, ...]
    history: tuple[AuditRow, ...]
    runs: Runs
    beside: SideBySide | None
    graph: LineageGraph | None
    last_seen: float
    commands: tuple[Command, ...]
    needs_body: bool
    """Whether the request has a body, of which only the shape is known."""
    share: float | None
    """Of all requests, those that are of this class; None where nobody asks for anything."""
    advice: Advice
    issues: tuple[tuple[str, Issue], ...]
    """What each tracker is given, by the tracker's name."""


def finding_story(
    explained: Explained,
    experiments: Sequence[ExperimentRow],
    history: Sequence[AuditRow],
    public_url: str,
    scenario: Scenario | None = None,
) -> FindingStory:
    """Tell the story of a finding. ``experiments``: those that tried just this, the newest
    first. ``public_url``: where this service is; empty where it does not know. ``scenario``: None
    where none can be made of it."""
    finding, callees = explained.row, explained.callees
    subject = explained.subject(public_url, reproduce_command(finding.id, scenario))
    hurt = [each for each in experiments if each.verdict == "harmful"]
    harmful = next(iter(hurt), None)
    proof = explained.proof
    interference = bool(hurt) and all(others_alone(e.verdict, e.comparison or {}) for e in hurt)
    runs = proof.runs if proof is not None else runs_shown(harmful)
    named = {**callees, **callees_of(runs)}
    both = (
        (runs.control, runs.treated)
        if runs.control is not None and runs.treated is not None
        else None
    )
    return FindingStory(
        finding=finding,
        title=capitalised(explained.advice.sentence),
        meaning="" if interference else MEANINGS.get(finding.state, ""),
        causes=tuple(said_fault(fault, named) for fault in finding.faults),
        interference=interference,
        saw=said_outcome(harmful.comparison, "harmful") if harmful is not None else "",
        spread=_spread(next((each for each in hurt if each.lesson), None)),
        detail=_detail(runs.treated),
        evidence=tuple(
            Evidence(each, said_outcome(each.comparison, _of_harm(each.verdict)))
            for each in experiments
        ),
        history=tuple(history),
        runs=runs,
        beside=side_by_side(*both) if both else None,
        graph=difference(*both) if both else None,
        last_seen=max([finding.found_at, *(each.ended_at or 0.0 for each in hurt)]),
        commands=tuple(finding_commands(finding.id, scenario)),
        needs_body=scenario is not None and scenario.request.body is not None,
        share=explained.share,
        advice=explained.advice,
        issues=tuple((NAMES[tracker], issue(subject, tracker)) for tracker in TRACKERS),
    )


def _of_harm(verdict: str | None) -> str | None:
    """Return the verdict of an experiment as it counts beside a finding: that one of them was
    tolerated does not mean that users get what they ask for."""
    return verdict if verdict == "harmful" else None


def _spread(experiment: ExperimentRow | None) -> str:
    """Say how it reached others, and how many."""
    told = SPREADS.get(((experiment.lesson if experiment else None) or {}).get("spread", ""), "")
    if experiment is None or not told:
        return ""
    figures = experiment.reason.partition(": ")[2]
    return f"{told} When it was tried, {figures}." if figures else told


def _detail(run: Run | None) -> str:
    """Say what the device of the request shown said. A wait that nobody feels is left out."""
    if run is None or run.success:
        return ""
    said = []
    if run.duration >= 1:
        said.append(f"waited {run.duration:.1f} seconds for its answer")
    if run.error_code:
        said.append(f"reported “{run.error_code}”")
    return f"One device that failed {' and '.join(said)}." if said else ""
