"""What a campaign could decide, by the traffic there is: asked before it starts, or just asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.gates.feasibility import Estimate, Flow, chosen, estimate, why_not
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.errors import CannotDecide

SEEN_SECONDS: Final = 60.0
"""How long a class must have been seen until its rate of requests says something."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """A campaign as it would start: its settings chosen, what each class seen long enough can
    decide, and why it may not start, if so."""

    definition: Definition
    estimates: tuple[Estimate, ...]
    why_not: str | None

    def checked(self) -> Definition:
        """Return what is to be started. Raises CannotDecide."""
        if self.why_not is not None:
            raise CannotDecide(self.why_not)
        return self.definition


def forecast(
    definition: Definition, given: Collection[str], catalogue: Catalogue, fdr: OnlineFdr, now: float
) -> Forecast:
    """Say how a campaign would start now. ``given``: the settings that somebody has asked for.

    Where a Prometheus counts the outcomes, or the campaign starts at some other time, nobody knows
    the traffic: then nothing stands in the way.
    """
    settings = definition.settings
    level = replace(fdr).next_level(settings.fdr)
    flows = _flows(definition, catalogue, now)
    settings = chosen(settings, given, flows, level)
    estimates = tuple(estimate(settings, flow, level) for flow in flows)
    against = why_not(settings, estimates) if definition.schedule is None else None
    if settings.profile == "production" and not flows and definition.schedule is None:
        against = (
            "no class has been seen for long enough to choose the smallest shares by its traffic: "
            f"wait until one was seen for {SEEN_SECONDS:.0f} s, or give treatment, control and "
            "window without a profile"
        )
    return Forecast(replace(definition, settings=settings), estimates, against)


def _flows(definition: Definition, catalogue: Catalogue, now: float) -> list[Flow]:
    settings: Settings = definition.settings
    if settings.promql is not None:
        return []
    flows = [
        Flow(known.name, known.rate(now) / 60, 1 - known.traffic.success_rate())
        for known in catalogue.classes.values()
        if now - known.first_seen >= SEEN_SECONDS
        and known.unfit_for(settings.min_consistency) is None
        and (not definition.classes or matching(definition.classes, [known.name]) is not None)
    ]
    return sorted(flows, key=lambda each: (-each.per_second, each.request_class))
