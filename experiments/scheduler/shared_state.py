"""What the parts of the scheduler share: the campaigns, and what stands in their way.

Each field is changed by the part that is named with it; the others look.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from ldfi.errors import NotFound
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.gates.guard_facts import Facts, touches
from ldfi.experiments.domain.gates.maintenance import Maintenance, Step
from ldfi.experiments.domain.judging.bystanders import systems_of
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.missing_reports import too_many
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.device_returns import Returns
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.scheduler.nearby_experiments import Nearby
from ldfi.experiments.store import halts

# The steps of upgrades that are under way: one for each maintenance window that is open.

KEPT: Final = 100
"""Steps that can still be asked about when they are over."""


@dataclass(slots=True)
class WatchedSteps:
    """By the id of the window. In memory: whoever takes over begins to watch anew."""

    known: dict[str, Step] = field(default_factory=dict)

    def of(self, window: Maintenance) -> Step:
        """Return the step of a window, as far as it was watched here."""
        step = self.known.get(window.id)
        if step is None:
            step = self.known[window.id] = Step(window)
            while len(self.known) > KEPT:
                del self.known[next(iter(self.known))]
        return step

    def pass_by(
        self,
        observation: Observation,
        known: KnownClass,
        windows: Iterable[Maintenance],
        now: float,
    ) -> None:
        """Take a request that was not injected into, before its class does."""
        for window in windows:
            if window.active(now):
                self.of(window).pass_by(observation, known, now)


@dataclass(slots=True)
class State:
    """``campaigns``: those that are not over, by id (commands, switch).

    ``halted_here``: why everything is halted in this namespace (switch). ``breach_here``: the
    guardrail that does not hold (whoever watches them). ``global_controls``: halt and
    guardrails of all namespaces; both levels count, see :attr:`halted` and :attr:`breach`.
    ``windows``: the open maintenance windows (switch). ``fdr``: the stream of levels, one for
    the namespace's life (arming takes them; the switch reads how far).
    ``next_pass``: when the campaigns are asked next (scheduler; whoever has made room for more
    brings it forward). ``unread``: whether campaigns may be on record that are not here (commands;
    the switch reads them). ``late``: requests that came in when their experiment was over: they
    count for its members only (scheduler). ``nearby``: experiments that others may feel (arming
    adds them, the scheduler takes them away). ``steps``: of upgrades, watched (scheduler).
    ``injectors``: who can make which calls fail (the engine; the scheduler, of what has fired).
    ``closed``: points at which a fault has killed a process, with the campaign in which it did
    (campaigns; the switch reads them). ``outlived``: points at which a fault has fired and its
    process has told of it (scheduler), or something was tried and nothing died (passes).
    ``traces``: seconds that a trace may take until it is whole. ``returns``: how soon devices ask
    again, whatever they ask for (scheduler).
    """

    limits: Limits
    campaigns: dict[str, Campaign] = field(default_factory=dict)
    halted_here: str | None = None
    breach_here: str | None = None
    windows: list[Maintenance] = field(default_factory=list)
    fdr: OnlineFdr = field(default_factory=OnlineFdr)
    next_pass: float = 0.0
    unread: bool = True
    late: int = 0
    nearby: Nearby = field(default_factory=Nearby)
    steps: WatchedSteps = field(default_factory=WatchedSteps)
    injectors: Injectors = field(default_factory=Injectors)
    closed: dict[str, str] = field(default_factory=dict)
    outlived: set[str] = field(default_factory=set)
    traces: float = 0.0
    global_controls: GlobalControls = field(default_factory=GlobalControls)
    returns: Returns = field(default_factory=Returns)

    @property
    def halted(self) -> str | None:
        """Why everything is halted, here or in all namespaces; None when nothing is."""
        global_controls = self.global_controls.halted()
        return (
            self.halted_here
            if global_controls is None
            else halts.both(self.halted_here, global_controls)
        )

    @property
    def breach(self) -> str | None:
        """The guardrail that does not hold, of this namespace or of all; None when all do."""
        return self.global_controls.breach() if self.breach_here is None else self.breach_here

    @breach.setter
    def breach(self, reason: str | None) -> None:
        self.breach_here = reason

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

    def unsure(self, experiment: Experiment) -> frozenset[str]:
        """Return the points of an experiment where it is unknown whether a fault kills the
        process."""
        return frozenset(fault.point for fault in experiment.faults) - self.outlived

    def facts(self, campaign: Campaign, now: float) -> Facts:
        """Return what guards need of a campaign, without a class."""
        calendar = campaign.definition.calendar
        return Facts(
            halted=self.halted,
            breach=self.breach,
            closed=calendar.closed(now) if calendar is not None else None,
            campaign=campaign.state,
            protected_classes=self.limits.protected_classes,
            steady=campaign.settings.steady,
        )

    def facts_of(self, campaign: Campaign, experiment: Experiment, now: float) -> Facts:
        """Return what guards need of a campaign and of an experiment's class and points."""
        facts = self.facts(campaign, now)
        exploration = campaign.explorations.get(experiment.request_class)
        if exploration is not None:
            facts = self.of_class(facts, exploration, now)
        if experiment.armed_at is not None:
            facts = replace(facts, beside=experiment.bystanders.hurt)
        elif exploration is not None:
            callees = exploration.knowledge.traffic.topology.callees
            systems = systems_of((fault.point for fault in experiment.faults), callees)
            facts = replace(facts, cooling=self.nearby.cooling(systems, now))
        return replace(facts, touches=touches(self.windows, experiment, exploration))

    def of_class(self, facts: Facts, exploration: Exploration, now: float) -> Facts:
        """Return what guards need of a campaign and one of its classes."""
        known, settings = exploration.knowledge, exploration.settings
        steady = known.traffic.steady(now)
        heard = None if settings.promql is not None else known.traffic.reporting.share(now)
        heard = 1.0 if heard is None else heard
        return replace(
            self.nearby.facts(facts, known.traffic, now),
            request_class=known.name,
            success_rate=steady.rate,
            outcomes=steady.outcomes,
            unheard=too_many(1 - heard, settings) if heard < 1 else None,
        )


def new_id() -> str:
    """Make an id for a campaign or an experiment."""
    return secrets.token_hex(6)
