"""Reads a campaign as every face shows it: where it stands, and what it has cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.judging.counts import DeviceCounts, counts_so_far
from ldfi.experiments.queries.experiment_summary import Live
from ldfi.experiments.store.device_sums import SUMS
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow


@dataclass(frozen=True, slots=True)
class ClassCost:
    """What experiments on one request class cost in a run. ``armed``: how many there were;
    ``charged``: devices that budgets count for them, all that are reserved while they go on."""

    armed: int = 0
    charged: int = 0
    counts: DeviceCounts = field(default_factory=DeviceCounts)

    def __add__(self, other: ClassCost) -> ClassCost:
        """Take both together."""
        return ClassCost(
            self.armed + other.armed, self.charged + other.charged, self.counts + other.counts
        )


@dataclass(frozen=True, slots=True)
class CampaignSummary:
    """One campaign. ``run``: the run that is counted, 0 before the first. ``by_class``: what it has
    cost by request class. ``open_hypotheses``: minimal ones of which nobody knows whether they
    hurt. ``findings``: minimal failing sets known in its classes, whatever their state on
    record."""

    id: str
    name: str
    state: str
    run: int
    by_class: Mapping[str, ClassCost] = field(default_factory=dict)
    open_hypotheses: int = 0
    findings: int = 0

    @property
    def cost(self) -> ClassCost:
        """Return what the run has cost."""
        return sum(self.by_class.values(), ClassCost())

    @property
    def counts(self) -> DeviceCounts:
        """Count the devices of the run's experiments."""
        return self.cost.counts


def campaign_summary(
    session: Session,
    row: CampaignRow,
    live: Campaign | None,
    running: Live,
    run: int | None = None,
) -> CampaignSummary:
    """Read a campaign. ``live``: itself, while it is; ``running``: experiments that are not over.
    ``run``: another run than its newest."""
    run = row.run if run is None else run
    return _summary(row, run, live, _costs(session, [(row.id, run)], running).get(row.id, {}))


def campaign_summaries(
    session: Session, rows: Sequence[CampaignRow], campaigns: Mapping[str, Campaign], running: Live
) -> list[CampaignSummary]:
    """Read campaigns, their newest runs: two questions, however many there are."""
    costs = _costs(session, [(row.id, row.run) for row in rows], running)
    return [_summary(row, row.run, campaigns.get(row.id), costs.get(row.id, {})) for row in rows]


_ByClass = dict[str, ClassCost]


def _costs(session: Session, runs: Sequence[tuple[str, int]], running: Live) -> dict[str, _ByClass]:
    """Sum up by campaign and class; what still runs tells itself what it has done so far."""
    row = ExperimentRow
    mine = tuple_(row.campaign_id, row.run).in_(runs)
    of = (row.campaign_id, row.request_class)
    charged = func.coalesce(func.sum(row.members_charged), 0)
    sums = select(*of, func.count(row.armed_at), charged, *SUMS).group_by(*of)
    costs: defaultdict[str, _ByClass] = defaultdict(dict)
    for campaign, name, armed, many, *figures in session.execute(
        sums.where(mine, row.id.not_in(running))
    ):
        costs[campaign][name] = ClassCost(armed, int(many), DeviceCounts(*map(int, figures)))
    going = select(*of, row.id, row.armed_at, row.members_charged, row.members_reserved)
    rows = session.execute(going.where(mine, row.id.in_(running))) if running else ()
    for campaign, name, identity, armed_at, many, reserved in rows:
        counts = counts_so_far(running[identity], reserved)
        so_far = ClassCost(int(armed_at is not None), many, counts)
        costs[campaign][name] = costs[campaign].get(name, ClassCost()) + so_far
    return costs


def _summary(
    row: CampaignRow, run: int, live: Campaign | None, by_class: _ByClass
) -> CampaignSummary:
    if live is None:
        certificates = [each["certificate"] for each in row.certificates]
        open_hypotheses = sum(len(each["open"]) for each in certificates)
        findings = sum(len(each["findings"]) for each in certificates)
    else:
        known = live.explorations.values()
        open_hypotheses = sum(each.knowledge.open for each in known)
        findings = sum(len(each.killed) + len([*each.knowledge.findings()]) for each in known)
    return CampaignSummary(row.id, row.name, row.state, run, by_class, open_hypotheses, findings)
