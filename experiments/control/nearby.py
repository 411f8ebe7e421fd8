"""Experiments that others may feel: armed, or disarmed so lately that what they did may last.

Whoever is not injected into may fail all the same, where requests share what is injected into
(:mod:`ldfi.experiments.domain.judging.bystanders`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ldfi.experiments.domain.gates.facts import Facts
from ldfi.experiments.domain.judging.bystanders import COOL, LONGEST, MINUTE
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation


@dataclass(slots=True)
class Nearby:
    """The experiments of all campaigns, in the order in which they were armed."""

    experiments: list[Experiment] = field(default_factory=list)

    def facts(self, facts: Facts, traffic: Traffic, now: float) -> Facts:
        """Return what the guards have to know of those that reach what a class reaches, too."""
        reaches = traffic.topology.reaches
        shared = [each for each in self.experiments if reaches(each.bystanders.systems)]
        ended = [(each, now - each.disarmed_at) for each in shared if each.disarmed_at is not None]
        felt = (each.bystanders.hurt for each, ago in ended if each.bystanders.felt(ago))
        return replace(
            facts,
            beside=next(felt, None),
            alone=self._in_the_way(shared),
        )

    def cooling(self, systems: frozenset[str], now: float) -> str | None:
        """Name an experiment that injected into one of these systems until just now."""
        for each in self.experiments:
            ended = each.disarmed_at
            if (
                ended is not None
                and now < ended + each.settings.apart * COOL
                and each.bystanders.systems & systems
            ):
                return each.id
        return None

    def pass_by(self, observation: Observation, known: KnownClass) -> None:
        """Take in a request that nobody injected into: it may be hurt by what is armed."""
        topology = known.traffic.topology
        for experiment in self.experiments:
            bystanders = experiment.bystanders
            if not bystanders.knows(known.name):
                if experiment.over or not topology.reaches(bystanders.systems):
                    continue
                bystanders.note(known.name, *known.traffic.failing())
            called, outcome = observation.lineage.called, observation.outcome
            reached = any(topology.callees.get(each, each) in bystanders.systems for each in called)
            bystanders.add(known.name, outcome.device, success=outcome.success, reached=reached)

    def part(self, now: float) -> None:
        """Forget experiments that nobody can feel any more."""
        self.experiments = [
            each for each in self.experiments if not each.over or now < _felt_until(each)
        ]

    def _in_the_way(self, shared: list[Experiment]) -> str | None:
        """Name an armed experiment that keeps another one off: where bystanders were hurt lately,
        nobody could tell by which of two that run at once."""
        hurt = [each.bystanders for each in shared if each.bystanders.hurt is not None]
        for each in self.experiments if hurt else ():
            known = any(bystanders.knows(each.request_class) for bystanders in hurt)
            if each.active and (known or each in shared):
                return each.id
        return None


def _felt_until(experiment: Experiment) -> float:
    stays = MINUTE if experiment.bystanders.hurt is None else LONGEST
    return (experiment.ended_at or 0.0) + stays
