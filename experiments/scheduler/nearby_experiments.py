"""Experiments that others may feel: armed, or disarmed so lately that what they did may last.

Whoever is not injected into may fail all the same, where requests share what is injected into
(:mod:`ldfi.experiments.domain.judging.bystanders`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ldfi.experiments.domain.gates.guard_facts import Facts
from ldfi.experiments.domain.judging.bystanders import COOL, LONGEST, MINUTE
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.baseline import Baseline
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation


@dataclass(slots=True)
class _Beside:
    """How a class fares while these are near to it."""

    experiments: list[Experiment]
    baseline: Baseline = field(default_factory=Baseline)


@dataclass(slots=True)
class Nearby:
    """The experiments of all campaigns, in the order in which they were armed."""

    experiments: list[Experiment] = field(default_factory=list)
    _beside: dict[str, _Beside] = field(default_factory=dict)
    """Of each class to which some are near."""

    def facts(self, facts: Facts, traffic: Traffic, now: float) -> Facts:
        """Return the facts that guards need of experiments that share points with a class."""
        reaches = traffic.topology.reaches
        shared = [each for each in self.experiments if reaches(each.bystanders.shared)]
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

    def pass_by(self, observation: Observation, known: KnownClass, now: float) -> bool:
        """Take a request that was not injected into; return whether an experiment may have
        affected it."""
        topology, near = known.traffic.topology, list[Experiment]()
        for experiment in self.experiments:
            bystanders = experiment.bystanders
            if not bystanders.knows(known.name):
                if (experiment.over or experiment.follows) or not topology.reaches(
                    bystanders.shared
                ):
                    continue
                bystanders.note(known.name, known.traffic.baseline.worst(now))
            bystanders.look(observation, experiment.points)
            called, outcome = observation.lineage.called, observation.outcome
            inner = topology.reaches(bystanders.systems)
            shared = bystanders.systems if inner else bystanders.way
            reached = any(topology.callees.get(each, each) in shared for each in called)
            if not experiment.stays.follows(outcome.device):
                bystanders.add(known.name, outcome.device, success=outcome.success, reached=reached)
            ended = experiment.disarmed_at
            if not (experiment.over or experiment.follows) or (
                ended is not None and bystanders.felt(now - ended)
            ):
                near.append(experiment)
        self._look_beside(observation, known, near, now)
        return bool(near)

    def part(self, now: float) -> None:
        """Forget experiments that can no longer affect anybody."""
        self.experiments = [
            each for each in self.experiments if not each.over or now < _felt_until(each)
        ]
        if not self.experiments:
            self._beside.clear()

    def _look_beside(
        self, observation: Observation, known: KnownClass, near: list[Experiment], now: float
    ) -> None:
        """Add outcomes seen beside an experiment to the baseline once it is over without hurting
        bystanders, since experiments may leave no other time."""
        beside = self._beside.get(known.name)
        if beside is not None and [each.id for each in beside.experiments] != [e.id for e in near]:
            if all(each.bystanders.hurt is None for each in beside.experiments):
                known.traffic.baseline.take(beside.baseline)
            del self._beside[known.name]
        if near:
            beside = self._beside.setdefault(known.name, _Beside(near))
            beside.baseline.add(
                observation.outcome.device, now, success=observation.outcome.success
            )

    def _in_the_way(self, shared: list[Experiment]) -> str | None:
        """Return an armed experiment that blocks another one: with bystanders hurt lately, two
        at once could not be told apart."""
        hurt = [each.bystanders for each in shared if each.bystanders.hurt is not None]
        for each in self.experiments if hurt else ():
            known = any(bystanders.knows(each.request_class) for bystanders in hurt)
            if each.active and (known or each in shared):
                return each.id
        return None


def _felt_until(experiment: Experiment) -> float:
    stays = MINUTE if experiment.bystanders.hurt is None else LONGEST
    return (experiment.ended_at or 0.0) + stays
