"""A campaign: experiments over request classes until nothing is left to try within its bounds.

    scheduled ◀──run over, next one comes──┐
        └──its time has come──▶ running ───┴──▶ finished      stopped: by a person, for good
                                   └▶ paused ◀┘ by a person, until resumed

Pure: it is told what was observed and what time it is, and says which experiments have ended and
what to try next. At most one experiment runs on a class at a time. A campaign with a schedule runs
again and again; what an earlier run has shown still counts in the next, unless a class's lineage
has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.ending import Ending, ending_of
from ldfi.experiments.domain.campaign.experiment_tally import Trial, Trials
from ldfi.experiments.domain.campaign.exploration import Exploration, FindingChange, Plan
from ldfi.experiments.domain.campaign.fault_history import Experience
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.recording import proved, runs_of
from ldfi.experiments.domain.campaign.result import (
    ExperimentResult,
    Hypothesis,
    completed,
    result_of,
    suspects_of,
)
from ldfi.experiments.domain.judging.experiment import Experiment, Purpose, killed_by
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.settings import LONGEST_WINDOW, Settings
from ldfi.experiments.domain.traffic.catalogue import ClassChange, KnownClass
from ldfi.experiments.domain.traffic.cut_traces import cut
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.domain.traffic.point_shares import share_of
from ldfi.fit.protocol.kinds import FaultKind, late
from ldfi.lineage.class_parts import COMMON
from ldfi.lineage.run_summary import Runs

CampaignState = Literal["scheduled", "running", "paused", "finished", "stopped"]
Gate = Callable[[str, Exploration], str | None]
"""Why no experiment may start on a class just now; None when one may."""

NOTEWORTHY = 5
"""Good requests from which on a class counts as one the campaign has to finish."""

PAUSE_SECONDS = 2.0
"""How long a class is not asked again that has nothing to try just now."""

ENROLLED_AT_ONCE = 5
"""Classes taken up in one pass: each takes some two milliseconds, in which nothing else goes on."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What was asked for. ``classes`` are patterns of names; none means every fit class.

    ``hypotheses``: try just these, once each, instead of exploring.
    """

    settings: Settings = field(default_factory=Settings)
    classes: tuple[str, ...] = ()
    name: str = ""
    calendar: Calendar | None = None
    schedule: Schedule | None = None
    hypotheses: tuple[Hypothesis, ...] = ()

    @property
    def kinds(self) -> frozenset[FaultKind]:
        """The kinds it may try."""
        named = {each.partition("@")[0] for faults in self.hypotheses for each in faults}
        return frozenset(named or self.settings.kinds)

    @property
    def delays(self) -> bool:
        """Return whether it may delay anything."""
        return any(map(late, self.kinds))


@dataclass(slots=True)
class Campaign:
    """``new_id`` makes the ids of experiments; it is passed in, as the clock is.

    ``waiting``: why nothing is tried on a class just now, for people; ``""`` is the whole
    campaign. ``held``: classes whose lineage changed, until an operator releases them. ``fdr``:
    the stream of levels; ``injectors``: who can make which calls fail. All campaigns of a service
    share both. ``closed``: points at which a fault has killed a process, with the campaign in
    which it did; all share it as well. ``ending``: how its last run
    ended, until the next one begins. ``spent``: whether too few members are left of the run.
    """

    id: str
    definition: Definition
    new_id: Callable[[], str]
    protected: tuple[str, ...] = ()
    fdr: OnlineFdr = field(default_factory=OnlineFdr)
    injectors: Injectors = field(default_factory=Injectors)
    closed: dict[str, str] = field(default_factory=dict)
    state: CampaignState = "running"
    reason: str = ""
    run: int = 1
    run_started_at: float = 0.0
    next_run_at: float | None = None
    explorations: dict[str, Exploration] = field(default_factory=dict)
    running: dict[str, Experiment] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    experience: Experience = field(default_factory=Experience)
    trials: Trials = field(default_factory=Trials)
    ending: Ending | None = None
    spent: bool = False
    _by_id: dict[str, Experiment] = field(default_factory=dict)
    _retry_at: dict[str, float] = field(default_factory=dict)
    _held_until: float = 0.0

    @property
    def settings(self) -> Settings:
        """Return its bounds and care."""
        return self.definition.settings

    @property
    def confirming_purpose(self) -> Purpose:
        """Return the purpose of experiments whose harm makes a finding; e-LOND counts these
        only."""
        return "confirm" if self.settings.confirm else "explore"

    def live(self) -> bool:
        """Return whether it may still start experiments, now or at some later time."""
        return self.state in {"scheduled", "running", "paused"}

    def active(self) -> list[Experiment]:
        """Return its experiments that may still inject something."""
        return [experiment for experiment in self.running.values() if experiment.active]

    def begin_run(self, now: float) -> None:
        """Begin the next run; findings are tried again."""
        self.state, self.reason = "running", ""
        self.run_started_at, self.next_run_at = now, None
        self.ending, self.spent = None, False
        self.trials.begin_run()
        self.waiting.clear()
        self._retry_at.clear()
        self._held_until = 0.0

    def end_run(self, now: float) -> None:
        """End this run: the next one is scheduled, or there is none."""
        explorations = self.explorations.values()
        self.ending = ending_of(explorations, self.trials, self.held, spent=self.spent)
        self.reason = self.ending.reason
        if self.definition.schedule is None:
            self.state = "finished"
        else:
            self.state = "scheduled"
            self.next_run_at = self.definition.schedule.next_after(now)
            self.run += 1

    def observe(self, observation: Observation) -> Experiment | None:
        """Take in a request under experiment; None when the experiment is not one of ours."""
        experiment = self._by_id.get(observation.lineage.experiment or "")
        if experiment is None:
            return None
        exploration = self.explorations.get(experiment.request_class)
        if exploration is not None:
            experiment.frequency = exploration.knowledge.traffic.frequency
        experiment.observe(observation)
        if exploration is not None:
            traffic, lineage = exploration.knowledge.traffic, observation.lineage
            traffic.returns.add(observation.outcome.device, lineage.start)
            if not cut(lineage):
                traffic.topology.learn(lineage)
        return experiment

    def lead_of(self, experiment: Experiment) -> Hypothesis | None:
        """Return which faults the failures of a union point to, so that it need not hurt anybody
        else.

        None while nobody has failed, or most have not, and where their traces say nothing new.
        """
        exploration = self.explorations.get(experiment.request_class)
        treated = experiment.arms["treatment"]
        hurts = experiment.bad and 2 * treated.failures >= treated.total
        united = len(experiment.hypothesis) > experiment.settings.max_size
        if exploration is None or not hurts or not united:
            return None
        if experiment.purpose != "explore" or experiment.state != "observing":
            return None
        traffic = exploration.knowledge.traffic
        suspects = suspects_of(experiment, traffic.usual_support(), traffic.record())
        return exploration.lead(suspects)

    def wants(self, name: str) -> bool:
        """Return whether a class of this name is one of those asked for."""
        return not self.definition.classes or matching(self.definition.classes, [name]) is not None

    def enroll(
        self, classes: Mapping[str, KnownClass], known: Callable[[str], Iterable[Hypothesis]]
    ) -> None:
        """Start to explore ready classes, a few at a time. ``known``: earlier findings of a
        class."""
        room = ENROLLED_AT_ONCE
        for name, each in classes.items():
            if name in self.explorations or name in self.held or not self.wants(name):
                continue
            unfit = each.unfit_for(self.settings.min_consistency)
            if unfit is not None:
                self.waiting[name] = unfit
            elif each.traffic.good < self.settings.min_traffic:
                self.waiting[name] = (
                    f"{each.traffic.good} good requests seen of {self.settings.min_traffic}"
                )
            elif room:
                room -= 1
                self.waiting.pop(name, None)
                self.explorations[name] = self.explore(each)
                self.explorations[name].begin_run(known(name))

    def explore(self, known: KnownClass) -> Exploration:
        """Make an exploration of a class, that knows nothing but its traffic."""
        knowledge = Knowledge(
            known.name, self.settings, known.traffic, self.protected, self.injectors
        )
        return Exploration(knowledge, known.version, self.definition.hypotheses)

    def propose(
        self, classes: Mapping[str, KnownClass], gate: Gate, room: int, now: float
    ) -> list[Experiment]:
        """Propose at most ``room`` new experiments, on the classes with the most traffic first."""
        proposed: list[Experiment] = []
        room = min(room, self.settings.concurrency - len(self.active()))
        if room <= 0 or now < self._held_until:
            return proposed
        idle = [
            (name, exploration)
            for name, exploration in self.explorations.items()
            if not exploration.finished and name not in self.running and name in classes
        ]
        idle.sort(key=lambda item: -item[1].knowledge.traffic.good)
        for name, exploration in idle:
            if len(proposed) >= room:
                break
            if now < self._retry_at.get(name, 0.0):
                continue
            obstacle = gate(name, exploration)
            if obstacle is not None:
                self.waiting[name] = obstacle
                continue
            self.waiting.pop(name, None)
            exploration.shut_off(self._closed_to(exploration))
            exploration.expect(self.experience)
            self.trials.set_aside(exploration)
            plan = exploration.plan(now)
            if plan is None:
                self._retry_at[name] = now + PAUSE_SECONDS
            else:
                proposed.append(self._experiment(classes[name], exploration, plan, now))
        return proposed

    def _closed_to(self, exploration: Exploration) -> set[str]:
        """List the points at which nothing is to be tried, since a fault there killed a process.
        What a person has asked for is tried there, unless it was this campaign in which it did."""
        if not exploration.only:
            return {*self.closed}
        return {point for point, where in self.closed.items() if where == self.id}

    def hold(
        self, experiment: Experiment, reason: str, retry_at: float, *, all_classes: bool = False
    ) -> None:
        """Hold back a proposed experiment; its class is asked again at ``retry_at``.

        ``all_classes``: and so is every other one, for what stands in the way is not its own.
        """
        name = experiment.request_class
        self.waiting[name] = reason
        self._retry_at[name] = retry_at
        if all_classes:
            self._held_until = retry_at
        self.drop(experiment)

    def drop(self, experiment: Experiment) -> None:
        """Forget an experiment that was never armed."""
        self.running.pop(experiment.request_class, None)
        self._by_id.pop(experiment.id, None)

    def close(
        self, experiment: Experiment
    ) -> tuple[ExperimentResult | None, list[FindingChange], Runs]:
        """Learn the result of an ended experiment; nothing when it was aborted.

        Also gives two of its requests, to be shown.
        """
        name = experiment.request_class
        self.running.pop(name, None)
        exploration = self.explorations.get(name)
        result, changes, runs = None, list[FindingChange](), Runs()
        for point in experiment.instances.points():
            self.closed[point] = self.id
        if (
            experiment.state == "decided"
            and exploration is not None
            and exploration.version == experiment.version
        ):
            if experiment.verdict == "harmful" and experiment.purpose == self.confirming_purpose:
                self.fdr.discovered()
            traffic = exploration.knowledge.traffic
            learned = result_of(experiment, traffic.usual_support(), traffic.record())
            result = proved(experiment, completed(learned, experiment, traffic.unmet))
            self.experience.add(result)
            self.trials.add(Trial.of(experiment, result), exploration.knowledge)
            changes = exploration.learn(result, experiment.ended_at or 0.0)
            runs = runs_of(experiment, result)
        elif exploration is not None:
            hurt = experiment.bystanders.hurt is not None
            exploration.call_off(experiment.hypothesis, interference=hurt)
        killed = killed_by(experiment)
        if killed and not changes:
            changes = [FindingChange(killed, "killed")]
        experiment.good.clear()
        experiment.bad.clear()
        experiment.undisturbed = None
        return result, changes, runs

    def forget(self, experiment: Experiment) -> None:
        """Forget an experiment long after its end; later requests of it are not counted."""
        self._by_id.pop(experiment.id, None)

    def follow(self, changed: ClassChange) -> bool:
        """Follow a class that changed, expired or came back; return whether to abort its
        experiments."""
        known, name = changed.known, changed.known.name
        if name not in self.explorations:
            return False
        if changed.kind == "changed" and self.settings.on_drift == "ignore":
            self.explorations[name].knowledge.traffic = known.traffic
            return False
        del self.explorations[name]
        self.trials.forget(name)
        if changed.kind == "changed" and self.settings.on_drift == "pause":
            self.held.add(name)
            self.waiting[name] = "its lineage changed; release it to explore it anew"
        return name in self.running

    def release(self, name: str) -> bool:
        """Let a class that drifted be explored again; False when it was not held."""
        held = name in self.held
        self.held.discard(name)
        self.waiting.pop(name, None)
        return held

    def complete(self, classes: Mapping[str, KnownClass]) -> bool:
        """Return whether every class that matters has been explored to its end."""
        if self.running:
            return False
        named = [name for name in self.definition.classes if "*" not in name]
        if any(map(self._unfinished, named)):
            return False
        if any(self._unfinished(n) and self._matters(known) for n, known in classes.items()):
            return False
        return bool(named) or any(map(self._matters, classes.values()))

    def _unfinished(self, name: str) -> bool:
        exploration = self.explorations.get(name)
        return exploration is None or not exploration.finished

    def _matters(self, known: KnownClass) -> bool:
        return (
            self.wants(known.name)
            and known.traffic.good >= NOTEWORTHY
            and known.unfit_for(self.settings.min_consistency) is None
            and known.name not in self.held
        )

    def certificates(self) -> list[dict[str, Any]]:
        """Return one certificate for each class, written where something was learned since."""
        return [each.knowledge.certificate() for each in self.explorations.values()]

    def _experiment(
        self, known: KnownClass, exploration: Exploration, plan: Plan, now: float
    ) -> Experiment:
        faults = exploration.knowledge.expand(plan.hypothesis)
        names = [str(fault) for fault in faults]
        risk = self.experience.risk(names, self.settings.members)
        hurt = plan.hypothesis in exploration.knowledge.hurt
        known_to_hurt = hurt or plan.purpose in {"confirm", "verify"}
        share = share_of(known.traffic, (fault.point for fault in faults))
        experiment = Experiment(
            id=self.new_id(),
            request_class=known.name,
            predicate=known.rule,
            hypothesis=plan.hypothesis,
            faults=faults,
            settings=_planned(exploration.settings, share),
            purpose=plan.purpose,
            risk=self.settings.members if known_to_hurt else risk,
            version=exploration.version,
            created_at=now,
            opening=plan.opening,
            open_before=sum(each.knowledge.open for each in self.explorations.values()),
        )
        self.running[known.name] = self._by_id[experiment.id] = experiment
        return experiment


def _planned(settings: Settings, share: float) -> Settings:
    """Return the plan with a longer window if few requests of the class reach the point: long
    enough for the usual number of requests, if the settings allow it."""
    longer = settings.window if share > 1 - COMMON else settings.window / share
    return replace(settings, window=max(settings.window, min(LONGEST_WINDOW, longer)))
