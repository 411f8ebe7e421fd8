"""What is known of one request class: from evidence to a hypothesis, from a lesson to evidence.

This is where the three rooms meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ldfi.experiments.domain.campaign.agreement import agreed, borne_out, together
from ldfi.experiments.domain.campaign.class_context import ClassContext, surroundings
from ldfi.experiments.domain.campaign.evidence_quality import EvidenceQuality, grounds
from ldfi.experiments.domain.campaign.filing import Filing
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

    It is a function of the traffic as it is now, the lessons and their order: teach a new one the
    same, and it knows the same. What a lesson means depends on what surrounds it (which points
    share a system, what stands behind what, which callers give up), and traffic and later lessons
    tell more of that. So whenever the surroundings have changed, all lessons are learned once more;
    otherwise a new one is merely added. ``traffic`` may be replaced by what the class's traffic is
    from now on; what was learned before still counts. ``protected``: patterns of points that nobody
    may inject into. ``injectors``: who can make which calls fail. ``open``: how many minimal
    hypotheses are open, as of the last proposal. ``fold``: what all lessons amount to.
    ``hurt``: every set that ever hurt, though that may have been found to be wrong.
    """

    name: str
    settings: Settings
    traffic: Traffic
    protected: tuple[str, ...] = ()
    injectors: Injectors = field(default_factory=Injectors)
    open: int = 0
    lessons: list[ExperimentResult] = field(default_factory=list, init=False)
    hurt: set[Hypothesis] = field(default_factory=set, init=False)
    _fold: SolverInput | None = field(default=None, init=False)
    """None until somebody asks: lessons that are learned again one after the other are folded
    once."""
    _grounds: EvidenceQuality | None = field(default=None, init=False)
    _left_out: set[str] = field(default_factory=set, init=False)
    _silent: set[str] = field(default_factory=set, init=False)
    shut: frozenset[str] = field(default=frozenset(), init=False)
    """Points at which a fault has killed a process: nothing is tried there without a person."""
    filing: Filing = field(default_factory=Filing, init=False)

    @property
    def fold(self) -> SolverInput:
        """Return what traffic shows, and all lessons were taught to."""
        return self._fold or self._build(self._surroundings())

    @property
    def _around(self) -> ClassContext:
        return self.fold.around

    @property
    def grounds(self) -> EvidenceQuality:
        """Return what of it is firm enough for a certificate to rest on."""
        if self._grounds is None:
            doubted = self.settings.rechecks > 0
            self._grounds = grounds(
                self.lessons,
                self.hurt,
                self.fold,
                lambda: self._empty(self._around),
                doubted=doubted,
            )
        return self._grounds

    def propose(self) -> Hypothesis | None:
        """Choose the next hypothesis worth an experiment.

        None when nothing is left within the bounds, or nothing can be found in time.
        """
        self.study_traffic()
        try:
            proposed = self.fold.explorer.propose()
        except OutOfTime:
            proposed = None  # what is left is listed as open on the certificate
        self.open = self.fold.explorer.open_count(OPEN_SHOWN)
        return None if proposed is None else _hypothesis(proposed)

    def recheck(self) -> Hypothesis | None:
        """Draw a hypothesis that was inferred safe but never tried; None if there is none."""
        alike = self._alike_untried()
        if alike is not None:
            return alike
        drawn = self.fold.explorer.recheck()
        return None if drawn is None else _hypothesis(drawn)

    def _alike_untried(self) -> Hypothesis | None:
        """Draw a fault that is only assumed to be survived, as one that is taken as alike was; None
        where as many were tried as are to be."""
        pairs = [p for each in self.points for p in self.fold.kinds.alike_at(each)]
        assumed = {fault for pair in pairs for fault in pair}
        tried = {fault for each in self.lessons for fault in each.injected}
        again = sum(
            each.times
            for each in self.lessons
            if each.purpose == "recheck" and each.injected <= assumed
        )
        untried = sorted(
            each
            for each in assumed - tried
            if self.fold.explorer.judge({each}) == "safe" and self.fold.reaches(frozenset({each}))
        )
        if not untried or 2 * again >= self.settings.rechecks:
            return None
        return frozenset({random.Random(f"{self.settings.seed} alike {again}").choice(untried)})

    def superseded_soon(self, hypothesis: Hypothesis) -> bool:
        """Say whether the same with errors in place of delays is still open.

        A delay that makes its call fail implies the error, so if the error hurts as well, that is
        the finding.
        """
        gone, tried = self.fold.kinds.gone, self.fold.kinds.at
        weaker = frozenset(
            gone(point)
            if kind == "delay" and point in self._around.given_up and gone(point) in tried(point)
            else f"{kind}@{point}"
            for kind, _, point in (fault.partition("@") for fault in hypothesis)
        )
        return weaker != hypothesis and self._unknown(weaker)

    def knows(self, hypothesis: Hypothesis) -> bool:
        """Say whether all of it can be injected: its points and systems have been seen.

        A fallback may have been seen only while something was injected, in another campaign.
        """
        topology = self.traffic.topology
        points = {each.partition("@")[2] for each in hypothesis if not each.startswith(DOWN)}
        seen = all(point in self.points or topology.knows(point) for point in points)
        if not seen or not self._spelt_out(hypothesis) or kills(self, hypothesis):
            return False
        return self.fold.reaches(hypothesis)

    def tries(self, hypothesis: Hypothesis) -> bool:
        """Say whether it may be tried and would be news: neither rejected nor known."""
        rejected = any(
            each.purpose == "rejected" and each.injected <= hypothesis for each in self.lessons
        )
        return not rejected and self.knows(hypothesis) and self._unknown(hypothesis)

    def _unknown(self, hypothesis: Hypothesis) -> bool:
        """Say whether nothing is known of it, and nothing presumed."""
        told = self.fold.explorer.judge(hypothesis)
        return told == "open" and self.fold.explorer.admissible(hypothesis)

    def by_system(self, faults: Hypothesis) -> Hypothesis:
        """Name the faults by the systems that are down where all errors of one are among them, and
        errors by what they are at their points."""
        faults = frozenset(map(self.fold.kinds.meant, faults))
        down = {name for name in self.fold.domains if self.fold.errors(name) <= faults}
        errors = frozenset().union(*(self.fold.errors(name) for name in down))
        return (faults - errors) | down

    def expand(self, hypothesis: Iterable[str]) -> tuple[Fault, ...]:
        """Spell out what has to be injected: a domain becomes an error at each of its points.

        A point fails in one way only. Where both kinds are asked for, the delay stands for both:
        the explorer asks only where it knows that the delay ends in an error. Raises KeyError for a
        domain that is none now: ask :meth:`knows` of what others remember.
        """
        faults: dict[str, Fault] = {}
        for variable in sorted(hypothesis, reverse=True):
            if variable.startswith(DOWN):
                for point in self.fold.domains[variable]:
                    faults.setdefault(point, Fault.parse(self.fold.kinds.gone(point)))
            else:
                fault = Fault.parse(variable)
                if fault.kind == "delay" or fault.point not in faults:
                    faults[fault.point] = fault
        return tuple(sorted(faults.values()))

    def learn(
        self, lesson: ExperimentResult, instead_of: Callable[[ExperimentResult], bool] | None = None
    ) -> None:
        """Take in a lesson, ``instead_of`` those that were wrong; None: none were."""
        kept = self.lessons
        if instead_of is not None:
            kept = [each for each in kept if not instead_of(each)]
        same = together(lesson, kept)
        replaced = len(kept) < len(self.lessons)
        self.lessons = [*kept, lesson]
        if lesson.succeeded is False:
            self.hurt.add(lesson.injected)
        self._grounds = None
        self.filing.changes += 1
        if self._fold is None:
            return
        all_of_it = [*same, lesson]
        said = any(agreed(each, all_of_it) != agreed(each, same) for each in same)
        if replaced or said or self._surroundings() != self._around:
            self._fold = None
        else:
            self._fold.take(lesson if lesson.succeeded is None else agreed(lesson, all_of_it))

    def leave_out(self, variables: Iterable[str], *, silent: bool = False) -> None:
        """Never propose these from now on. ``silent``: faults that have no injector, for they
        should have fired and never did."""
        known = self._silent if silent else self._left_out
        fresh = sorted(set(variables) - known)
        if not fresh:
            return
        known.update(fresh)
        self._grounds = None
        self.filing.changes += 1
        if self._fold is None:
            return
        if silent:
            self.fold.set_aside({fault: self._why_silent(fault) for fault in fresh})
        for variable in () if silent else fresh:
            self.fold.explorer.exclude({variable})

    def again(
        self, lessons: Iterable[ExperimentResult], hurt: Iterable[Hypothesis] = ()
    ) -> Knowledge:
        """Know the same traffic, and these lessons; nothing is left out any more. ``hurt``: what
        has hurt besides what is known of."""
        fresh = Knowledge(self.name, self.settings, self.traffic, self.protected, self.injectors)
        fresh.filing, fresh.lessons = self.filing, list(lessons)
        harmful = (each.injected for each in fresh.lessons if each.succeeded is False)
        fresh.hurt = {*self.hurt, *hurt, *harmful}
        fresh.filing.changes += 1
        return fresh

    def study_traffic(self) -> None:
        """Take in what the traffic has shown since the last time."""
        self.filing.look(self.traffic.unseen)
        around = self._surroundings()
        if around != self._around:
            self._build(around)

    def _build(self, around: ClassContext) -> SolverInput:
        """Know nothing, and learn everything: what traffic shows, then lesson by lesson."""
        self._grounds = None
        self.filing.changes += 1
        self._fold = self._empty(around)
        for lesson in borne_out(self.lessons):
            self._fold.take(lesson)
        return self._fold

    def _surroundings(self) -> ClassContext:
        return surroundings(self.traffic, self.lessons, self.settings, self.injectors)

    def _empty(self, around: ClassContext) -> SolverInput:
        fold = SolverInput(self.settings, around, self.protected)
        for variable in sorted(self._left_out):
            fold.explorer.exclude({variable})
        fold.set_aside({fault: self._why_silent(fault) for fault in sorted(self._silent)})
        closed = sorted(self.shut & around.points)
        fold.explorer.protect([fault for point in closed for fault in fold.kinds.at(point)])
        return fold

    def _why_silent(self, fault: str) -> str:
        """Say why a fault never fired, where that is known: a caller that does not time out can see
        no timeout, whoever injects."""
        kind, _, point = fault.partition("@")
        fired = (each.partition("@")[2] for lesson in self.lessons for each in lesson.fired)
        reached = bool(self.injectors.words(point)) or point in fired
        return NO_TIMEOUT if kind == "timeout" and reached else ""

    @property
    def points(self) -> frozenset[str]:
        """Return every point seen in this class."""
        return self._around.points

    def judge(self, points: Iterable[str]) -> Judgement:
        """Say what is known of these points failing, all at once."""
        errors = frozenset(map(self.fold.kinds.gone, points))
        return self.fold.explorer.judge(self.fold.with_tokens(errors))

    def failed_in(self, faults: Hypothesis, lesson: ExperimentResult) -> bool:
        """Say whether all of these failed in a run. Which calls a system was that is none any more
        nobody knows: then that is only said of runs in which just this was tried."""
        if not self._spelt_out(faults):
            return lesson.injected == faults
        return self._injected(faults) <= lesson.fired

    def superseded(self, faults: Hypothesis) -> bool:
        """Say whether less than all of these was found to hurt. Of what a system was, that is none
        any more, nothing is less."""
        if not self._spelt_out(faults):
            return False
        whole = self._brought_about(faults)
        return any(self._brought_about(found) < whole for found, _ in self.findings())

    def findings(self) -> list[tuple[Hypothesis, tuple[str, ...]]]:
        """Return the minimal failing sets found so far, each with exemplar traces."""
        found = map(_hypothesis, self.fold.explorer.findings)
        return [(faults, self.fold.traces.get(self._injected(faults), ())) for faults in found]

    def statement(self) -> Statement:
        """Copy what the certificate is to say, so that it can be written while more is learned."""
        self.study_traffic()
        return self.grounds.statement()

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
        """Say whether every system in it is still one: traffic may have shown since that its calls
        reach others."""
        return all(each in self.fold.domains for each in hypothesis if each.startswith(DOWN))

    def _brought_about(self, hypothesis: Hypothesis) -> Hypothesis:
        injected = self._injected(hypothesis)
        late = {p for p in self._around.given_up if f"delay@{p}" in injected}
        return injected | frozenset(map(self.fold.kinds.gone, late))


def kills(known: Knowledge, hypothesis: Hypothesis) -> bool:
    """Say whether a part of it was seen to kill a process, and nobody has said since that it may be
    tried again."""
    if not known.shut:
        return False
    domains = known.fold.domains
    points = (domains.get(each, {each.partition("@")[2]}) for each in hypothesis)
    return not known.shut.isdisjoint(frozenset[str]().union(*points))


def shut_off(known: Knowledge, points: Iterable[str]) -> None:
    """Try nothing at just these points from now on: a fault there kills a process."""
    wanted = frozenset(points)
    if wanted != known.shut:
        known.shut, known._fold, known._grounds = wanted, None, None
        known.filing.changes += 1


def _hypothesis(faults: Iterable[object]) -> Hypothesis:
    return frozenset(map(str, faults))


def unseen_of(knowledge: Knowledge) -> dict[str, Any]:
    """Return what the certificate says of what cannot be seen: the figure, and the bound that was
    asked for."""
    return {"bound": knowledge.settings.unseen, **knowledge.traffic.unseen.to_json()}
