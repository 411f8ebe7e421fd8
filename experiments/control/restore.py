"""After a restart: campaigns as they were, from what is on record.

An exploration is a function of its class's traffic and of the lessons in their order, so it is
taught them again. Lessons about an earlier lineage of the class are left out. What was running is
not taken up: whoever armed it is gone, its leases have run out or will, and nobody knows whom it
exposed in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.campaign import Campaign, CampaignState
from ldfi.experiments.domain.campaign.ending import Ending
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.campaign.trials import Trial, in_vain
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.store import campaigns, experiments, findings
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow


def restored(
    session: Session,
    row: CampaignRow,
    catalogue: Catalogue,
    protected: tuple[str, ...],
    new_id: Callable[[], str],
    fdr: OnlineFdr,
) -> Campaign:
    """Rebuild the campaign of this row, with everything it had learned."""
    definition = campaigns.definition_from_json(row.definition)
    campaign = Campaign(row.id, definition, new_id, protected, fdr)
    campaign.state = cast(CampaignState, row.state)
    campaign.reason, campaign.run = row.reason, row.run
    campaign.run_started_at = row.run_started_at or 0.0
    campaign.next_run_at = row.next_run_at
    campaign.held.update(row.held)
    campaign.ending = Ending.from_json(row.ending)
    rows = experiments.lessons(session, row.id)
    for name in sorted({each.request_class for each in rows} - campaign.held):
        _explore(session, campaign, catalogue, name, rows)
    for each in rows:
        campaign.experience.add(_lesson(each))
    return campaign


def _explore(
    session: Session,
    campaign: Campaign,
    catalogue: Catalogue,
    name: str,
    rows: list[ExperimentRow],
) -> None:
    known = catalogue.classes.get(name)
    if known is None:
        return  # it will be learned anew when traffic shows it, and then explored anew
    exploration = campaign.explore(known)
    mine = [each for each in rows if each.request_class == name]
    if campaign.settings.on_drift != "ignore":
        mine = [each for each in mine if (each.lesson or {}).get("version") == known.version]
    before = [_lesson(each) for each in mine if each.run < campaign.run]
    exploration.replay(each for each in before if not in_vain(each))
    asked = campaign.definition.hypotheses
    exploration.begin_run(findings.known(session, name, campaign.run_started_at, asked))
    exploration.replay(_lesson(each) for each in mine if each.run == campaign.run)
    for each in mine:
        trial = _trial(each, campaign.settings.min_samples)
        if trial.decided or (each.state == "decided" and each.run == campaign.run):
            campaign.trials.add(trial, exploration.knowledge)
    campaign.explorations[name] = exploration


def _trial(row: ExperimentRow, least: int) -> Trial:
    counts = row.comparison or {}
    return Trial(
        request_class=row.request_class,
        hypothesis=frozenset(row.hypothesis),
        faults=tuple(row.faults),
        purpose=row.purpose,
        verdict=row.verdict or "",
        why=row.reason,
        exposed=counts.get("exposed", 0),
        passed_by=counts.get("passed_by", 0),
        least=least,
        taught=_lesson(row),
    )


def _lesson(row: ExperimentRow) -> Lesson:
    assert row.lesson is not None, "only rows with lessons are asked for"  # noqa: S101
    return Lesson.from_json(row.lesson)
