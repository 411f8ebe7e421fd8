"""What is known of one request class: from evidence to a hypothesis, from a result to evidence.

This is where the three rooms meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ldfi.experiments.domain.campaign.agreement import agreed, borne_out, together
from ldfi.experiments.domain.campaign.class_context import ClassContext, class_context
from ldfi.experiments.domain.campaign.evidence_quality import EvidenceQuality, evidence_quality
from ldfi.experiments.domain.campaign.last_certificate import Filing
from ldfi.experiments.domain.campaign.result import ExperimentResult, Hypothesis
from ldfi.experiments.domain.campaign.solver_input import NO_TIMEOUT, SolverInput
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.fit.protocol.faults import DOWN, Fault
from ldfi.solver import Judgement, OutOfTime, Statement

OPEN_SHOWN = 9_999
"""Open hypotheses are counted up to this many, for people."""


@dataclass(slots=True)
class Knowledge:
    """One class's traffic, its explorer, and the faults known in it so far.

    It is a function of the traffic as it is now, the results and their order: teach a new one the
    same, and it knows the same. What a result means depends on what surrounds it (which points
    share a system, what stands behind what, which callers give up), and traffic and later results
    tell more of that. So whenever the class context have changed, all results are learned once
    more; otherwise a new one is merely added. ``traffic`` may be replaced by what the class's
    traffic is from now on; what was learned before still counts. ``protected``: patterns of points
    that nobody may inject into. ``injectors``: who can make which calls fail. ``open``: how many
    minimal hypotheses are open, as of the last proposal. ``solver_input``: what all results amount
    to. ``hurt``: every set that ever hurt, though that may have been found to be wrong.
    """

    name: str
    settings: Settings
    traffic: Traffic
    protected: tuple[str, ...] = ()
    injectors: Injectors = field(default_factory=Injectors)
    open: int = 0
    results: list[ExperimentResult] = field(default_factory=list, init=False)
    hurt: set[Hypothesis] = field(default_factory=set, init=False)
    _solver_input: SolverInput | None = field(default=None, init=False)
    """None until somebody asks: results that are learned again one after the other are folded
    once."""
    _evidence_quality: EvidenceQuality | None = field(default=None, init=False)
    _left_out: set[str] = field(default_factory=set, init=False)
    _silent: set[str] = field(default_factory=set, init=False)
    shut: frozenset[str] = field(default=frozenset(), init=False)
    """Points at which a fault has killed a process: nothing is tried there without a person."""
    filing: Filing = field(default_factory=Filing, init=False)

    @property
    def solver_input(self) -> SolverInput:
        """Return the solver's state: fed with the traffic, and then with all results."""
        return self._solver_input or self._build(self._class_context())

    @property
    def _around(self) -> ClassContext:
        return self.solver_input.around

    @property
    def evidence_quality(self) -> EvidenceQuality:
        """Return how much of the evidence is firm enough for a certificate."""
        if self._evidence_quality is None:
            doubted = self.settings.rechecks > 0
            self._evidence_quality = evidence_quality(
                self.results,
                self.hurt,
                self.solver_input,
                lambda: self._empty(self._around),
                doubted=doubted,
            )
        return self._evidence_quality

    def propose(self) -> Hypothesis | None:
        """Choose the next hypothesis worth an experiment.

        None when nothing is left within the bounds, or nothing can be found in time.
        """
        self.study_traffic()
        try:
            proposed = self.solver_input.explorer.propose()
        except OutOfTime:
            proposed = None  # what is left is listed as open on the certificate
        self.open = self.solver_input.explorer.open_count(OPEN_SHOWN)
        return None if proposed is None else _hypothesis(proposed)

    def recheck(self) -> Hypothesis | None:
        """Draw a hypothesis that was inferred safe but never tried; None if there is none."""
        alike = self._alike_untried()
        if alike is not None:
            return alike
        drawn = self.solver_input.explorer.recheck()
        return None if drawn is None else _hypothesis(drawn)

    def _alike_untried(self) -> Hypothesis | None:
        """Draw a fault that is only assumed to be survived, as one that is taken as alike was; None
        where as many were tried as are to be."""
        pairs = [p for each in self.points for p in self.solver_input.kinds.alike_at(each)]
        assumed = {fault for pair in pairs for fault in pair}
        tried = {fault for each in self.results for fault in each.injected}
        again = sum(
            each.times
            for each in self.results
            if each.purpose == "recheck" and each.injected <= assumed
        )
        untried = sorted(
            each
            for each in assumed - tried
            if self.solver_input.explorer.judge({each}) == "safe"
            and self.solver_input.reaches(frozenset({each}))
        )
        if not untried or 2 * again >= self.settings.rechecks:
            return None
        return frozenset({random.Random(f"{self.settings.seed} alike {again}").choice(untried)})

    def superseded_soon(self, hypothesis: Hypothesis) -> bool:
        """Return whether the same with errors in place of delays is still open.

        A delay that makes its call fail implies the error, so if the error hurts as well, that is
        the finding.
        """
        gone, tried = self.solver_input.kinds.gone, self.solver_input.kinds.at
        weaker = frozenset(
            gone(point)
            if kind == "delay" and point in self._around.given_up and gone(point) in tried(point)
            else f"{kind}@{point}"
            for kind, _, point in (fault.partition("@") for fault in hypothesis)
        )
        return weaker != hypothesis and self._unknown(weaker)

    def knows(self, hypothesis: Hypothesis) -> bool:
        """Return whether all of the hypothesis can be injected: its points and domains have been
        seen.

        A fallback may have been seen only while something was injected, in another campaign.
        """
        topology = self.traffic.topology
        points = {each.partition("@")[2] for each in hypothesis if not each.startswith(DOWN)}
        seen = all(point in self.points or topology.knows(point) for point in points)
        if not seen or not self._spelt_out(hypothesis) or kills(self, hypothesis):
            return False
        return self.solver_input.reaches(hypothesis)

    def tries(self, hypothesis: Hypothesis) -> bool:
        """Return whether it may be tried and would be news: neither rejected nor known."""
        rejected = any(
            each.purpose == "rejected" and each.injected <= hypothesis for each in self.results
        )
        return not rejected and self.knows(hypothesis) and self._unknown(hypothesis)

    def _unknown(self, hypothesis: Hypothesis) -> bool:
        """Return whether nothing is known of it, and nothing presumed."""
        told = self.solver_input.explorer.judge(hypothesis)
        return told == "open" and self.solver_input.explorer.admissible(hypothesis)

    def by_system(self, faults: Hypothesis) -> Hypothesis:
        """Return the faults with domains in place of all errors of one system, and errors as the
        kind they are at their point."""
        faults = frozenset(map(self.solver_input.kinds.meant, faults))
        down = {
            name for name in self.solver_input.domains if self.solver_input.errors(name) <= faults
        }
        errors = frozenset().union(*(self.solver_input.errors(name) for name in down))
        return (faults - errors) | down

    def expand(self, hypothesis: Iterable[str]) -> tuple[Fault, ...]:
        """Return what to inject for a hypothesis: a domain becomes an error at each of its
        points.

        A point fails in one way only. Where both kinds are asked for, the delay stands for both:
        the explorer asks only where it knows that the delay ends in an error. Raises KeyError for a
        domain that is none now: ask :meth:`knows` of what others remember.
        """
        faults: dict[str, Fault] = {}
        for variable in sorted(hypothesis, reverse=True):
            if variable.startswith(DOWN):
                for point in self.solver_input.domains[variable]:
                    faults.setdefault(point, Fault.parse(self.solver_input.kinds.gone(point)))
            else:
                fault = Fault.parse(variable)
                if fault.kind == "delay" or fault.point not in faults:
                    faults[fault.point] = fault
        return tuple(sorted(faults.values()))

    def learn(
        self, result: ExperimentResult, instead_of: Callable[[ExperimentResult], bool] | None = None
    ) -> None:
        """Take in a result, ``instead_of`` those that were wrong; None: none were."""
        kept = self.results
        if instead_of is not None:
            kept = [each for each in kept if not instead_of(each)]
        same = together(result, kept)
        replaced = len(kept) < len(self.results)
        self.results = [*kept, result]
        if result.succeeded is False:
            self.hurt.add(result.injected)
        self._evidence_quality = None
        self.filing.changes += 1
        if self._solver_input is None:
            return
        all_of_it = [*same, result]
        said = any(agreed(each, all_of_it) != agreed(each, same) for each in same)
        if replaced or said or self._class_context() != self._around:
            self._solver_input = None
        else:
            self._solver_input.take(
                result if result.succeeded is None else agreed(result, all_of_it)
            )

    def leave_out(self, variables: Iterable[str], *, silent: bool = False) -> None:
        """Never propose these from now on. ``silent``: faults that have no injector, for they
        should have fired and never did."""
        known = self._silent if silent else self._left_out
        fresh = sorted(set(variables) - known)
        if not fresh:
            return
        known.update(fresh)
        self._evidence_quality = None
        self.filing.changes += 1
        if self._solver_input is None:
            return
        if silent:
            self.solver_input.set_aside({fault: self._why_silent(fault) for fault in fresh})
        for variable in () if silent else fresh:
            self.solver_input.explorer.exclude({variable})

    def again(
        self, results: Iterable[ExperimentResult], hurt: Iterable[Hypothesis] = ()
    ) -> Knowledge:
        """Return knowledge of the same traffic and of these results only. ``hurt``: further sets
        that ever hurt."""
        fresh = Knowledge(self.name, self.settings, self.traffic, self.protected, self.injectors)
        fresh.filing, fresh.results = self.filing, list(results)
        harmful = (each.injected for each in fresh.results if each.succeeded is False)
        fresh.hurt = {*self.hurt, *hurt, *harmful}
        fresh.filing.changes += 1
        return fresh

    def study_traffic(self) -> None:
        """Learn what the traffic has shown since the last call."""
        self.filing.look(self.traffic.unseen)
        around = self._class_context()
        if around != self._around:
            self._build(around)

    def _build(self, around: ClassContext) -> SolverInput:
        """Feed a new solver: first the traffic, then each result."""
        self._evidence_quality = None
        self.filing.changes += 1
        self._solver_input = self._empty(around)
        for result in borne_out(self.results):
            self._solver_input.take(result)
        return self._solver_input

    def _class_context(self) -> ClassContext:
        return class_context(self.traffic, self.results, self.settings, self.injectors)

    def _empty(self, around: ClassContext) -> SolverInput:
        solver_input = SolverInput(self.settings, around, self.protected)
        for variable in sorted(self._left_out):
            solver_input.explorer.exclude({variable})
        solver_input.set_aside({fault: self._why_silent(fault) for fault in sorted(self._silent)})
        closed = sorted(self.shut & around.points)
        solver_input.explorer.protect(
            [fault for point in closed for fault in solver_input.kinds.at(point)]
        )
        return solver_input

    def _why_silent(self, fault: str) -> str:
        """Return why a fault never fired, where that is known: a caller that does not time out can
        see no timeout, whoever injects."""
        kind, _, point = fault.partition("@")
        fired = (each.partition("@")[2] for result in self.results for each in result.fired)
        reached = bool(self.injectors.words(point)) or point in fired
        return NO_TIMEOUT if kind == "timeout" and reached else ""

    @property
    def points(self) -> frozenset[str]:
        """Return every point seen in this class."""
        return self._around.points

    def judge(self, points: Iterable[str]) -> Judgement:
        """Return what is known of all these points failing at once."""
        errors = frozenset(map(self.solver_input.kinds.gone, points))
        return self.solver_input.explorer.judge(self.solver_input.with_tokens(errors))

    def failed_in(self, faults: Hypothesis, result: ExperimentResult) -> bool:
        """Return whether all of these faults failed in a run. For fault domains that no longer
        exist only runs of exactly this set count."""
        if not self._spelt_out(faults):
            return result.injected == faults
        return self._injected(faults) <= result.fired

    def superseded(self, faults: Hypothesis) -> bool:
        """Return whether a proper subset is already a finding. False for fault domains that no
        longer exist."""
        if not self._spelt_out(faults):
            return False
        whole = self._brought_about(faults)
        return any(self._brought_about(found) < whole for found, _ in self.findings())

    def findings(self) -> list[tuple[Hypothesis, tuple[str, ...]]]:
        """Return the minimal failing sets found so far, each with exemplar traces."""
        found = map(_hypothesis, self.solver_input.explorer.findings)
        return [
            (faults, self.solver_input.traces.get(self._injected(faults), ())) for faults in found
        ]

    def statement(self) -> Statement:
        """Return a snapshot from which the certificate can be written while more is learned."""
        self.study_traffic()
        return self.evidence_quality.statement()

    def certificate(self) -> dict[str, Any]:
        """Return the certificate as it stands, with the class by name; it is written only where
        something was learned since the last time."""
        self.study_traffic()
        if self.filing.document is None or not self.filing.current:
            certificate = self.statement().certificate()
            return self.filing.file(self.filing.changes, self.name, certificate, unseen_of(self))
        return self.filing.document

    def _injected(self, variables: Iterable[str]) -> frozenset[str]:
        """Return the faults that are injected for these variables."""
        return frozenset(map(str, self.expand(variables)))

    def _spelt_out(self, hypothesis: Hypothesis) -> bool:
        """Return whether every system in it is still one: traffic may have shown since that its
        calls reach others."""
        return all(
            each in self.solver_input.domains for each in hypothesis if each.startswith(DOWN)
        )

    def _brought_about(self, hypothesis: Hypothesis) -> Hypothesis:
        injected = self._injected(hypothesis)
        late = {p for p in self._around.given_up if f"delay@{p}" in injected}
        return injected | frozenset(map(self.solver_input.kinds.gone, late))


def kills(known: Knowledge, hypothesis: Hypothesis) -> bool:
    """Return whether part of this set was seen to kill a process, and nobody has allowed it
    again since."""
    if not known.shut:
        return False
    domains = known.solver_input.domains
    points = (domains.get(each, {each.partition("@")[2]}) for each in hypothesis)
    return not known.shut.isdisjoint(frozenset[str]().union(*points))


def shut_off(known: Knowledge, points: Iterable[str]) -> None:
    """Try nothing at just these points from now on: a fault there kills a process."""
    wanted = frozenset(points)
    if wanted != known.shut:
        known.shut, known._solver_input, known._evidence_quality = wanted, None, None
        known.filing.changes += 1


def _hypothesis(faults: Iterable[object]) -> Hypothesis:
    return frozenset(map(str, faults))


def unseen_of(knowledge: Knowledge) -> dict[str, Any]:
    """Return the certificate's statement on what cannot be seen: the share, and the bound asked
    for."""
    return {"bound": knowledge.settings.unseen, **knowledge.traffic.unseen.to_json()}
