"""What a campaign could decide, by the traffic there is: asked before it starts, or just asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ldfi.errors import CannotDecide, Invalid
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.gates.feasibility import Estimate, Flow, chosen, estimate, why_not
from ldfi.experiments.domain.gates.wait_checks import ServiceTimes, contradiction, fitted
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.settings import SETTINGS, Settings
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.class_traffic import RATE_OUTCOMES, RATE_SECONDS
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.domain.traffic.point_shares import shares


@dataclass(frozen=True, slots=True)
class Forecast:
    """A campaign as it would start: its settings chosen, what each class seen long enough can
    decide, and why it may not start, if so: ``contradiction``, or too little traffic."""

    definition: Definition
    estimates: tuple[Estimate, ...]
    contradiction: str | None
    undecidable: str | None

    @property
    def why_not(self) -> str | None:
        """Return why it may not start; None where it may."""
        return self.contradiction or self.undecidable

    def checked(self) -> Definition:
        """Return the definition to start. Raises Invalid or CannotDecide."""
        if self.contradiction is not None:
            raise Invalid(self.contradiction)
        if self.undecidable is not None:
            raise CannotDecide(self.undecidable)
        return self.definition


def forecast(
    definition: Definition,
    given: Collection[str],
    catalogue: Catalogue,
    fdr: OnlineFdr,
    waits: ServiceTimes,
    now: float,
) -> Forecast:
    """Return how a campaign would start now. ``given``: the settings that were asked for.

    A form sends every field, so where the service's times want something else than the default,
    a default counts as not given.

    Where a Prometheus counts the outcomes, or the campaign starts at some other time, nobody knows
    the traffic: then nothing stands in the way.
    """
    settings = definition.settings
    level = replace(fdr).next_level(settings.fdr)
    flows = _flows(definition, catalogue, now)
    settings = chosen(settings, given, flows, level)
    meant = {
        name
        for name in SETTINGS.keys() & given
        if getattr(settings, name) != SETTINGS[name].default
    }
    delays = definition.delays
    settings = fitted(settings, meant, waits, delays=delays)
    estimates = tuple(estimate(settings, flow, level) for flow in flows)
    against = why_not(settings, estimates, level) if definition.schedule is None else None
    if settings.profile == "production" and not flows and definition.schedule is None:
        against = (
            "no class has been seen for long enough to choose the smallest shares by its traffic: "
            f"wait until one has had {RATE_OUTCOMES} outcomes in {RATE_SECONDS:.0f} s or more, or "
            "give treatment, control and window without a profile"
        )
    made = replace(definition, settings=settings)
    problem = contradiction(settings, waits, delays=delays, kinds=definition.kinds)
    return Forecast(made, estimates, problem, against)


def _flows(definition: Definition, catalogue: Catalogue, now: float) -> list[Flow]:
    settings: Settings = definition.settings
    if settings.promql is not None:
        return []
    flows = []
    for known in catalogue.classes.values():
        rate = known.traffic.per_second(now)
        named = not definition.classes or matching(definition.classes, [known.name]) is not None
        if rate is not None and named and known.unfit_for(settings.min_consistency) is None:
            heard = known.traffic.reporting.share(now)
            flows.append(
                Flow(
                    known.name,
                    rate,
                    1 - known.traffic.steady(now).rate,
                    1.0 if heard is None else heard,
                    min(shares(known.traffic).values(), default=1.0),
                )
            )
    return sorted(flows, key=lambda each: (-each.per_second, each.request_class))
