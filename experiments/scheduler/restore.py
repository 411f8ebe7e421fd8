"""After a restart: campaigns as they were, from what is on record.

An exploration is a function of its class's traffic and of the results in their order, so it is
taught them again, run by run; what earlier runs came to may be on record in one piece
(:mod:`ldfi.experiments.store.snapshots`), and then it goes on from there. Results about an earlier
lineage of the class are left out. What was running is not taken up: whoever armed it is gone, its
leases have run out or will, and nobody knows whom it exposed in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import cast

from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.campaign import Campaign, CampaignState
from ldfi.experiments.domain.campaign.ending import Ending
from ldfi.experiments.domain.campaign.experiment_tally import Trial
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.traffic.catalogue import Catalogue, KnownClass
from ldfi.experiments.store import findings, snapshots
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow
from ldfi.experiments.store.snapshots import StoredSnapshot


def restored(
    session: Session, row: CampaignRow, catalogue: Catalogue, campaign: Campaign
) -> Campaign:
    """Rebuild the campaign of this row, with everything it had learned, in one that knows nothing
    yet."""
    campaign.state = cast(CampaignState, row.state)
    campaign.reason, campaign.run = row.reason, row.run
    campaign.run_started_at = row.run_started_at or 0.0
    campaign.next_run_at = row.next_run_at
    campaign.held.update(row.held)
    campaign.ending = Ending.from_json(row.ending)
    stored, rows = snapshots.of_campaign(session, row.id)
    for name in sorted({*stored, *(each.request_class for each in rows)} - campaign.held):
        known = catalogue.classes.get(name)
        if known is None:
            continue  # it will be learned anew when traffic shows it, and then explored anew
        mine = [each for each in rows if each.request_class == name]
        exploration = explored(campaign, known, stored.get(name), mine)
        asked = campaign.definition.hypotheses
        exploration.begin_run(findings.known(session, name, campaign.run_started_at, asked))
        _learn(campaign, exploration, [each for each in mine if each.run == campaign.run])
    for each in stored.values():
        campaign.experience.join(each.experience)
    for row_of in rows:
        campaign.experience.add(result_in(row_of))
    return campaign


def explored(
    campaign: Campaign,
    known: KnownClass,
    stored: StoredSnapshot | None,
    rows: Iterable[ExperimentRow],
) -> Exploration:
    """Explore a class as the runs of a campaign before this one have left it. ``rows``: experiments
    since it stood there."""
    exploration = campaign.explore(known)
    if stored is not None and _counts(campaign, known, stored.version):
        exploration.resume(stored.snapshot)
    earlier = sorted(
        (
            each
            for each in rows
            if each.run < campaign.run
            and _counts(campaign, known, (each.lesson or {}).get("version"))
        ),
        key=lambda each: each.run,
    )
    for _, of_run in groupby(earlier, key=lambda each: each.run):
        exploration.replay(map(result_in, of_run), told=False)
        exploration.begin_run(())
    return exploration


def result_in(row: ExperimentRow) -> ExperimentResult:
    """Return the result that a row holds."""
    assert row.lesson is not None, "only rows with a result are asked for"  # noqa: S101
    return ExperimentResult.from_json(row.lesson)


def _counts(campaign: Campaign, known: KnownClass, version: int | None) -> bool:
    return campaign.settings.on_drift == "ignore" or version == known.version


def _learn(campaign: Campaign, exploration: Exploration, rows: Iterable[ExperimentRow]) -> None:
    """Replay the results of this run."""
    name = exploration.knowledge.name
    campaign.trials.remember(name, exploration.knowledge.results)
    mine = [
        each
        for each in rows
        if campaign.settings.on_drift == "ignore"
        or (each.lesson or {}).get("version") == exploration.version
    ]
    exploration.replay(map(result_in, mine))
    for each in mine:
        if each.state == "decided":
            campaign.trials.add(_trial(each, campaign.settings.min_samples), exploration.knowledge)
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
        taught=result_in(row),
    )
