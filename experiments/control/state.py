"""What the parts of the scheduler share: the campaigns, and what stands in their way.

Each field is changed by the part that is named with it; the others look.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.gates.facts import Facts, touches
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.bystanders import COOL_SECONDS, LONGEST, MINUTE
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.errors import NotFound


@dataclass(slots=True)
class State:
    """``campaigns``: those that are not over, by id (commands, switch).

    ``halted``: why everything is halted (switch). ``breach``: the guardrail that does not hold
    (whoever watches them). ``windows``: the maintenance windows that are open (switch). ``fdr``:
    the stream of levels, one for the service's life (arming takes them; the switch reads how far).
    ``next_pass``: when the campaigns are asked next (scheduler; whoever has made room for more
    brings it forward). ``unread``: whether campaigns may be on record that are not here (commands;
    the switch reads them). ``late``: requests that came in when their experiment was over: they
    count for its members only (scheduler). ``near``: experiments that are armed, or were so lately
    that others may still feel it (arming adds them, the scheduler takes them away).
    """

    limits: Limits
    campaigns: dict[str, Campaign] = field(default_factory=dict)
    halted: str | None = None
    breach: str | None = None
    windows: list[Maintenance] = field(default_factory=list)
    fdr: OnlineFdr = field(default_factory=OnlineFdr)
    next_pass: float = 0.0
    unread: bool = True
    late: int = 0
    near: list[Experiment] = field(default_factory=list)

    def active(self) -> Iterator[tuple[Campaign, Experiment]]:
        """Every experiment that may still inject something, with its campaign."""
        for campaign in list(self.campaigns.values()):
            for experiment in campaign.active():
                yield campaign, experiment

    def experiment(self, experiment_id: str) -> tuple[Campaign, Experiment]:
        """Return an experiment that is not over, and its campaign. Raises NotFound."""
        for campaign in self.campaigns.values():
            for experiment in campaign.running.values():
                if experiment.id == experiment_id:
                    return campaign, experiment
        raise NotFound(f"there is no experiment {experiment_id!r} that still runs")

    def facts(self, campaign: Campaign, now: float) -> Facts:
        """Return what the guards have to know of a campaign, whatever its classes."""
        calendar = campaign.definition.calendar
        return Facts(
            halted=self.halted,
            breach=self.breach,
            closed=calendar.closed(now) if calendar is not None else None,
            campaign=campaign.state,
            protected_classes=self.limits.protected_classes,
        )

    def facts_of(self, campaign: Campaign, experiment: Experiment, now: float) -> Facts:
        """Return the same, and what they have to know of an experiment's class and points."""
        facts = self.facts(campaign, now)
        exploration = campaign.explorations.get(experiment.request_class)
        if exploration is not None:
            facts = self.of_class(facts, exploration, now)
        if experiment.armed_at is not None:
            facts = replace(facts, beside=experiment.bystanders.hurt)
        return replace(facts, touches=touches(self.windows, experiment, exploration))

    def of_class(self, facts: Facts, exploration: Exploration, now: float) -> Facts:
        """Return what the guards have to know of a campaign, and of one of its classes."""
        traffic = exploration.knowledge.traffic
        shared = [each for each in self.near if traffic.topology.reaches(each.bystanders.systems)]
        ended = [(each, now - each.disarmed_at) for each in shared if each.disarmed_at is not None]
        felt = (each.bystanders.hurt for each, ago in ended if each.bystanders.felt(ago))
        return replace(
            facts,
            request_class=exploration.knowledge.name,
            success_rate=traffic.success_rate(),
            beside=next(felt, None),
            cooling=next((each.id for each, ago in ended if ago < COOL_SECONDS), None),
            alone=self._in_the_way(shared),
        )

    def _in_the_way(self, shared: list[Experiment]) -> str | None:
        """Name an armed experiment that keeps another one off: where bystanders were hurt lately,
        nobody could tell by which of two that run at once."""
        hurt = [each.bystanders for each in shared if each.bystanders.hurt is not None]
        for each in self.near if hurt else ():
            known = any(bystanders.knows(each.request_class) for bystanders in hurt)
            if each.active and (known or each in shared):
                return each.id
        return None

    def pass_by(self, observation: Observation, known: KnownClass) -> None:
        """Take in a request that nobody injected into: it may be hurt by what is armed."""
        for experiment in self.near:
            bystanders = experiment.bystanders
            if not bystanders.knows(known.name):
                if experiment.over or not known.traffic.topology.reaches(bystanders.systems):
                    continue
                bystanders.note(known.name, *known.traffic.failing())
            called, outcome = observation.lineage.called, observation.outcome
            callees = known.traffic.topology.callees
            reached = any(callees.get(point, point) in bystanders.systems for point in called)
            bystanders.add(known.name, outcome.device, success=outcome.success, reached=reached)

    def part_from(self, now: float) -> None:
        """Forget experiments that nobody can feel any more."""
        self.near = [each for each in self.near if not each.over or now < _near_until(each)]


def _near_until(experiment: Experiment) -> float:
    stays = MINUTE if experiment.bystanders.hurt is None else LONGEST
    return (experiment.ended_at or 0.0) + stays


def new_id() -> str:
    """Make an id for a campaign or an experiment."""
    return secrets.token_hex(6)
