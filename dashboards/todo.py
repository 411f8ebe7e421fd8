"""Who must act: what waits for a person, from what is on record. Pure.

What nobody has taken on comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.repairs.called import BY_THEIR_NAMES, Called
from ldfi.dashboards.links import to_campaign, to_experiment, to_finding
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.store.schema import AuditRow, FindingRow

NOBODY, OPERATOR = "Nobody yet", "An operator"


@dataclass(frozen=True, slots=True)
class Act:
    """``who``: as far as anybody is known to. ``since``: Unix seconds, where that is known."""

    who: str
    what: str
    to: str
    since: float | None = None


def acts(
    findings: Sequence[FindingRow],
    campaigns: Iterable[Campaign],
    halted: str | None,
    halt: AuditRow | None,
    breach: str | None,
    edges: int,
    callees_of: Callable[[str], Mapping[str, str]],
    called: Called = BY_THEIR_NAMES,
) -> list[Act]:
    """List what waits for somebody. ``halt``: the row of the audit that tells who halted."""
    found = [*_of_findings(findings, called)]
    if halted is not None:
        by = f" by {halt.who}" if halt is not None else ""
        to = "/audit?kind=halt"
        since = halt.at if halt is not None else None
        found.append(
            Act(OPERATOR, f"has to resume: everything is halted{by} ({halted})", to, since)
        )
    elif breach:
        found.append(Act(OPERATOR, f"has to look: a guardrail is breached ({breach})", "/audit"))
    live = [each for each in campaigns if each.live()]
    if live and not edges:
        found.append(
            Act(OPERATOR, "has to look: no edge asks for rules, nothing can be tried", "/#missing")
        )
    for campaign in live:
        found += _of_campaign(campaign, callees_of, called)
    return found


def _of_findings(findings: Sequence[FindingRow], called: Called) -> Iterator[Act]:
    for state, one, many in (
        (
            "killed",
            "knows that a failure kills a process, met by {}",
            "knows of {} failures that kill a process",
        ),
        (
            "regressed",
            "has looked at what was fixed on {} and hurts again",
            "has looked at {} findings that were fixed and hurt again",
        ),
        ("open", "knows of a finding on {}", "knows of {} findings that hurt"),
        (
            "suspected",
            "has confirmed that {} may be hurt",
            "has confirmed {} findings that are suspected",
        ),
    ):
        some = [row for row in findings if row.state == state]
        if len(some) == 1:
            row = some[0]
            what = one.format(called.name(row.request_class))
            yield Act(NOBODY, what, to_finding(row.id), row.found_at)
        elif some:
            oldest = min(row.found_at for row in some)
            yield Act(NOBODY, many.format(len(some)), f"/findings?state={state}", oldest)


def _of_campaign(
    campaign: Campaign, callees_of: Callable[[str], Mapping[str, str]], called: Called
) -> Iterator[Act]:
    name = campaign.definition.name or campaign.id
    to = to_campaign(campaign.id)
    if campaign.state == "paused":
        yield Act(OPERATOR, f"has to resume “{name}”, which is paused: {campaign.reason}", to)
        return
    for each in campaign.running.values():
        if each.state == "waiting" and each.approved_by is None:
            said = said_shortly(sorted(each.hypothesis), callees_of(each.request_class))
            what = f"{called.name(each.request_class)}: {said}"
            what = f"has to approve or reject, for “{name}”, on {what}"
            yield Act(OPERATOR, what, to_experiment(each.id), each.created_at)
    for held in sorted(campaign.held):
        yield Act(
            OPERATOR, f"has to release {called.name(held)} for “{name}”: its lineage changed", to
        )
