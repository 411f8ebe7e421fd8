"""What the experiments of a campaign came to, as far as the end of a run has to answer for it.

What stays open stays so for a reason: the window was over, devices never reported, nothing fired.
And a point at which nothing fires, although it was called or requests enough have passed by, is
*silent*: nobody can inject there, or hardly any request gets there. To try it again would cost a
window and members and teach nothing, so for the rest of the run it is set aside, and the end of the
run says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult, Hypothesis
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.judgement import INTERFERENCE
from ldfi.experiments.domain.judging.killed_process import KILLED
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import KINDS
from ldfi.fit.protocol.native_kinds import gone

NOT_ALL_FIRED = "not all of its faults fired"
SILENT_DEVICES = "devices never reported"
"""Why nothing is known of a hypothesis, where the experiment's own words have figures in them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One experiment that is decided, as its record has it.

    ``why``: its reason, where it is inconclusive. ``exposed`` and ``passed_by``: treated devices in
    whose requests something fired, and in whose nothing did. ``least``: outcomes that a verdict
    takes at least. ``taught``: its result.
    """

    request_class: str
    hypothesis: Hypothesis
    faults: tuple[str, ...]
    purpose: str
    verdict: str
    why: str
    exposed: int
    passed_by: int
    least: int
    taught: ExperimentResult

    @classmethod
    def of(cls, experiment: Experiment, result: ExperimentResult) -> Trial:
        """Write down a decided experiment."""
        return cls(
            request_class=experiment.request_class,
            hypothesis=experiment.hypothesis,
            faults=tuple(map(str, experiment.faults)),
            purpose=experiment.purpose,
            verdict=experiment.verdict or "",
            why=experiment.reason,
            exposed=len(experiment.exposed),
            passed_by=len(experiment.passed_by),
            least=experiment.settings.min_samples,
            taught=result,
        )

    @property
    def decided(self) -> bool:
        """Return whether it has a verdict that says something."""
        return self.verdict in {"harmful", "tolerated"} and not self.taught.interference

    @property
    def why_open(self) -> str:
        """Return why nothing is known of the hypothesis, where nothing is."""
        if self.taught.interference:
            return INTERFERENCE
        if self.taught.killed:
            return KILLED
        if self.decided:
            return NOT_ALL_FIRED
        return SILENT_DEVICES if "treated devices never reported" in self.why else self.why

    def silent(self, usual: frozenset[str]) -> frozenset[str]:
        """Return its points that were called while they should have failed, and never did; of a
        kind that not every library can have, the fault instead.

        Of what was called, an inconclusive experiment does not tell. So where requests enough have
        passed by and nothing fired, those of its points count that requests of the class call
        anyway (``usual``): a fallback waits for its turn.
        """
        points = frozenset(_points(self.faults))
        nothing = not self.decided and not self.exposed and self.passed_by >= self.least
        called = usual if nothing else self.taught.called
        quiet = points & called - _points(self.taught.fired)
        return frozenset(_aside(each) for each in self.faults if each.partition("@")[2] in quiet)


@dataclass(slots=True)
class Trials:
    """The last trial of each hypothesis, and the points that are set aside, by request class."""

    _last: defaultdict[str, dict[Hypothesis, Trial]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _silent: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def last(self, name: str) -> Mapping[Hypothesis, Trial]:
        """Return the last trial of each hypothesis of a class."""
        return self._last.get(name, {})

    def silent(self, name: str) -> list[str]:
        """List the points of a class that are set aside."""
        return sorted(self._silent.get(name, ()))

    def add(self, trial: Trial, knowledge: Knowledge) -> None:
        """Take in a trial. A point at which something has fired before is not set aside."""
        name = trial.request_class
        self._last[name][trial.hypothesis] = trial
        silent = trial.silent(knowledge.traffic.usually_called())
        if silent:
            fired = (_points(result.fired) | result.fired for result in knowledge.results)
            self._silent[name] |= silent.difference(*fired)

    def remember(self, name: str, results: Iterable[ExperimentResult]) -> None:
        """Learn what earlier runs decided."""
        for result in results:
            if result.succeeded is not None:
                self._last[name][result.injected] = _decided(name, result)

    def forget(self, name: str) -> None:
        """Forget a class: its lineage has changed, or it went."""
        self._last.pop(name, None)
        self._silent.pop(name, None)

    def set_aside(self, exploration: Exploration) -> None:
        """Have nothing tried any more that takes a fault at a silent point."""
        knowledge = exploration.knowledge
        silent = self._silent.get(knowledge.name)
        if not silent:
            return
        whole = {each for each in silent if not _is_fault(each)}
        kinds = knowledge.solver_input.kinds
        given_up = {each for point in whole for each in kinds.at(point)} | (silent - whole)
        knowledge.leave_out(given_up, silent=True)
        shared = knowledge.traffic.topology.shared()
        given_up |= {DOWN + system for system, points in shared.items() if points & silent}
        exploration.to_verify = [each for each in exploration.to_verify if not each & given_up]

    def begin_run(self) -> None:
        """Let the next run try again what this one set aside or tried without a verdict.

        There may be more traffic by then, or ``fit`` where nothing could fire.
        """
        for name, last in self._last.items():
            self._last[name] = {each: trial for each, trial in last.items() if trial.decided}
        self._silent.clear()


def _decided(name: str, result: ExperimentResult) -> Trial:
    return Trial(
        request_class=name,
        hypothesis=result.injected,
        faults=tuple(sorted(result.fired)),
        purpose=result.purpose,
        verdict="tolerated" if result.succeeded else "harmful",
        why="",
        exposed=0,
        passed_by=0,
        least=0,
        taught=result,
    )


def _aside(fault: str) -> str:
    """Return what to set aside with a fault that never fired: its point, or only the kind where
    the library may lack just that."""
    kind, _, point = fault.partition("@")
    return point if kind in {*KINDS, gone(point)} else fault


def _is_fault(aside: str) -> bool:
    """Tell a fault from a point, in whose name the caller stands before anything else."""
    kind, at, _ = aside.partition("@")
    return bool(at) and ">" not in kind


def _points(faults: Iterable[str]) -> set[str]:
    return {fault.partition("@")[2] for fault in faults}
