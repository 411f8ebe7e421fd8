"""A campaign: experiments over request classes until nothing is left to try within its bounds.

Pure: it is told what was observed and what time it is, and says which experiments have just ended
and which shall be armed next. At most one experiment runs on a class at a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from experiments.domain.experiment import Experiment
from experiments.domain.exploration import Exploration
from experiments.domain.lesson import lesson_of
from experiments.domain.observation import Observation
from experiments.domain.request_class import RequestClass
from experiments.domain.settings import Settings
from experiments.domain.traffic import Traffic

State = Literal["running", "finished", "stopped"]
Gate = Callable[[Exploration], str | None]
"""Why no experiment may start on a class just now; None when one may."""

NOTEWORTHY = 5
"""Good requests from which on a class counts as one the campaign has to finish."""


@dataclass(frozen=True, slots=True)
class ClassTraffic:
    """A request class and what its unperturbed traffic has shown."""

    request_class: RequestClass
    traffic: Traffic


@dataclass(slots=True)
class Campaign:
    """``wanted`` names the classes to explore; empty means every class with enough traffic."""

    id: str
    settings: Settings
    wanted: tuple[str, ...] = ()
    state: State = "running"
    reason: str = ""
    explorations: dict[str, Exploration] = field(default_factory=dict)
    running: dict[str, Experiment] = field(default_factory=dict)
    experiments: dict[str, Experiment] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)

    def observe(self, observation: Observation) -> bool:
        """Take in a request under experiment; False when the experiment is not one of ours."""
        experiment = self.experiments.get(observation.lineage.experiment or "")
        if experiment is None:
            return False
        experiment.observe(observation)
        exploration = self.explorations[experiment.request_class.name]
        exploration.traffic.topology.learn(observation.lineage)
        return True

    def review(self, now: float) -> list[Experiment]:
        """End what can be ended, and learn from it."""
        ended = [experiment for experiment in self.running.values() if experiment.review(now)]
        for experiment in ended:
            self._close(experiment)
        return ended

    def abort(self, reason: str, now: float) -> list[Experiment]:
        """Abort whatever runs."""
        aborted = list(self.running.values())
        for experiment in aborted:
            experiment.abort(reason, now)
            self._close(experiment)
        return aborted

    def stop(self, reason: str, now: float) -> list[Experiment]:
        """Stop for good."""
        if self.state != "running":
            return []
        self.state, self.reason = "stopped", reason
        return self.abort(reason, now)

    def propose(self, classes: Mapping[str, ClassTraffic], gate: Gate) -> list[Experiment]:
        """The experiments to arm now. Ends the campaign when nothing is left."""
        if self.state != "running":
            return []
        self._enroll(classes)
        proposed = [
            experiment
            for name, exploration in self.explorations.items()
            if (experiment := self._propose_one(name, exploration, gate))
        ]
        if not self.running and self._complete(classes):
            self.state, self.reason = "finished", "nothing left to try within the bounds"
        return proposed

    def active(self) -> bool:
        """Whether it may still start experiments."""
        return self.state == "running"

    def exposed(self) -> int:
        """Devices exposed to faults so far, once per experiment."""
        return sum(len(experiment.exposed) for experiment in self.experiments.values())

    def hurt(self) -> int:
        """Those of them that saw a failure."""
        return sum(len(experiment.hurt) for experiment in self.experiments.values())

    def _enroll(self, classes: Mapping[str, ClassTraffic]) -> None:
        for name, known in classes.items():
            if name not in self.explorations and self._wants(name):
                exploration = Exploration(known.request_class, self.settings, known.traffic)
                if exploration.ready():
                    self.explorations[name] = exploration

    def _wants(self, name: str) -> bool:
        return not self.wanted or name in self.wanted

    def _propose_one(self, name: str, exploration: Exploration, gate: Gate) -> Experiment | None:
        if name in self.running or exploration.finished:
            return None
        obstacle = gate(exploration)
        if obstacle is not None:
            self.waiting[name] = obstacle
            return None
        self.waiting.pop(name, None)
        hypothesis = exploration.propose()
        if hypothesis is None:
            return None
        experiment = Experiment(
            id=secrets.token_hex(6),
            request_class=exploration.request_class,
            hypothesis=hypothesis,
            faults=exploration.expand(hypothesis),
            settings=self.settings,
        )
        self.running[name] = self.experiments[experiment.id] = experiment
        return experiment

    def _close(self, experiment: Experiment) -> None:
        name = experiment.request_class.name
        exploration = self.explorations[name]
        del self.running[name]
        exploration.learn(lesson_of(experiment, exploration.traffic.usual_support()))
        experiment.good.clear()
        experiment.bad.clear()

    def _complete(self, classes: Mapping[str, ClassTraffic]) -> bool:
        """Whether every class that matters has been explored to its end."""
        expected = {
            name
            for name, known in classes.items()
            if self._wants(name) and known.traffic.good >= NOTEWORTHY
        } | set(self.wanted)
        return bool(expected) and all(
            name in self.explorations and self.explorations[name].finished for name in expected
        )
