"""Exploring one request class: what to try next, and what has become of its findings.

In this order: *verify* what was found before, *confirm* what was just found, *explore* what nobody
knows yet, first of all what requests blame that failed by themselves, and *recheck* a few sets that
were only inferred to be safe.

A finding is ``suspected`` at first. When an experiment of its own hurts as well, it is ``open``;
when that one is survived, it is ``refuted``: the verdict that suspected it was wrong. A finding
that was open and is survived later is ``fixed``. In both cases whatever was put down to these
faults is forgotten, and what is known is built anew from the lessons that are left. A finding of
which a part hurts by itself is ``superseded`` by that part.

All of it is a function of the class's traffic as it is now and of the lessons in their order, so
that after a restart the same is known and the same comes next (:meth:`Exploration.replay`).

What is known of the class, and the way to and from the solver, is
:class:`~ldfi.experiments.domain.campaign.knowledge.Knowledge`; whoever wants that asks
``exploration.knowledge``.

A failure that contradicts what was survived is *repeated* before anything is built on it, and the
second lesson takes the place of the first. (A request of which spans were lost seems to have failed
of fewer faults than it did.) Where both say the same it is believed, and the explorer goes over to
its cautious strategy, as more faults do help here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ldfi.experiments.domain.campaign.experience import Experience
from ldfi.experiments.domain.campaign.knowledge import Hypothesis, Knowledge
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.campaign.suspicions import suspicions
from ldfi.experiments.domain.judging.experiment import Purpose
from ldfi.experiments.domain.judging.slots import Opening

FindingNews = Literal["suspected", "open", "refuted", "fixed", "superseded"]

MAX_TRIES = 3
"""Inconclusive attempts after which a finding is neither confirmed nor verified any more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next experiment on a class."""

    hypothesis: Hypothesis
    purpose: Purpose
    opening: Opening | None = field(default=None, compare=False)
    """Of one that confirms: what the first slot left."""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """What an experiment did to a finding: it is new, or its state is."""

    faults: Hypothesis
    state: FindingNews
    traces: tuple[str, ...] = ()


@dataclass(slots=True)
class Exploration:
    """What is tried on one class, in which order, and the states of its findings.

    ``version``: that of the request class whose lineage this is about. ``only``: hypotheses to be
    tried once each instead of exploring. ``called_off``: of which an experiment was aborted.
    """

    knowledge: Knowledge
    version: int = 1
    only: tuple[Hypothesis, ...] = ()
    finished: bool = False
    to_verify: list[Hypothesis] = field(default_factory=list)
    called_off: set[Hypothesis] = field(default_factory=set)
    _judged: dict[Hypothesis, FindingNews] = field(default_factory=dict)
    _told: dict[Hypothesis, FindingNews] = field(default_factory=dict)
    _tries: Counter[tuple[str, Hypothesis]] = field(default_factory=Counter)
    _rechecked: int = 0
    _leads: list[Hypothesis] = field(default_factory=list)
    """What the first failures of unions point to, and is tried alone."""
    _hurt_at: dict[Hypothesis, float] = field(default_factory=dict)
    """When an experiment hurt (Unix seconds)."""
    _asked: list[Hypothesis] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._asked = list(self.only)

    def begin_run(self, known: Iterable[Hypothesis]) -> None:
        """Begin a new run of the campaign: try what was found before once more."""
        self.finished = False
        self._rechecked = 0
        self._tries.clear()
        self.called_off.clear()
        self.to_verify = list(known) if self.knowledge.settings.verify else []
        if self.only:
            self.to_verify = [each for each in self.to_verify if each in self.only]
        self._asked = [each for each in self.only if each not in self.to_verify]

    def plan(self, now: float = math.inf) -> Plan | None:
        """Choose the next experiment; None when nothing is left within the bounds, or what is left
        has to wait (Unix seconds): a finding is confirmed some time after it has hurt."""
        if self.only:
            plan = self._verification() or self._asked_for() or self._confirmation(now)
        else:
            plan = (
                self._verification()
                or self._confirmation(now)
                or self._following()
                or self._doubt()
                or self._suspicion()
                or self._exploration()
                or self._confirmation(now, ripe=False)
                or self._recheck()
            )
        self.finished = plan is None and not self._unconfirmed(ripe=False)
        return plan

    def lead(self, suspects: Hypothesis) -> Hypothesis | None:
        """Say as which hypothesis the suspects of a union can be tried alone; None where that is no
        news, or they are too many."""
        known, lead = self.knowledge, self.knowledge.by_system(suspects)
        if not lead or len(lead) > known.settings.max_size or not known.tries(lead):
            return None
        fresh = self._tries["lead", lead] < MAX_TRIES and lead not in self._leads
        return lead if fresh else None

    def expect(self, experience: Experience) -> None:
        """Take into account what experience says of the faults of this class."""
        known, settings = self.knowledge, self.knowledge.settings
        if settings.strategy == "likeliest":
            faults = (f"{kind}@{p}" for p in known.points for kind in settings.kinds)
            known.explorer.expect({fault: experience.likelihood(fault) for fault in faults})

    def learn(self, lesson: Lesson, now: float = 0.0) -> list[FindingChange]:
        """Take a lesson, learned ``now`` (Unix seconds); return what it does to the findings."""
        if lesson.succeeded is False:
            self._hurt_at[lesson.injected] = now
        before = self._told
        self._take(lesson)
        self._told = self.states
        traces = dict(self.knowledge.findings())
        confirmed = {lesson.injected} if lesson.succeeded is False else set[Hypothesis]()
        return [
            FindingChange(faults, state, traces.get(faults, lesson.traces))
            for faults, state in self._told.items()
            if before.get(faults) != state or (faults in confirmed and state == "open")
        ]

    def replay(self, lessons: Iterable[Lesson]) -> None:
        """Learn again what was learned before a restart."""
        for lesson in lessons:
            self._take(lesson)
        self._told = self.states

    @property
    def states(self) -> dict[Hypothesis, FindingNews]:
        """Return every finding with its state, as far as this campaign knows.

        What an experiment of its own said of it holds, unless it was found once more since, or less
        than all of it was found to hurt.
        """
        found = {faults for faults, _ in self.knowledge.findings()}
        states = dict(self._judged)
        for faults, state in self._judged.items():
            if state == "open" and self.knowledge.superseded(faults):
                states[faults] = "superseded"
        for faults in sorted(found, key=sorted):
            if states.get(faults) != "open":
                states[faults] = "suspected" if self.knowledge.settings.confirm else "open"
        return states

    def _take(self, lesson: Lesson) -> None:
        if lesson.injected in self._asked:
            self._asked.remove(lesson.injected)
        if lesson.injected in self._leads:
            self._leads.remove(lesson.injected)
        if lesson.purpose in {"confirm", "verify"}:
            self._judge(lesson)
        elif lesson.purpose == "repeat":
            self._replace(lesson)
        elif lesson.lead:
            self._tries["lead", lesson.lead] += 1
            self._leads.append(lesson.lead)
        else:
            self.knowledge.learn(lesson)
            self._rechecked += lesson.purpose == "recheck"

    def _judge(self, lesson: Lesson) -> None:
        """Judge a known finding that was tried again by itself."""
        faults = lesson.injected
        if faults in self.to_verify:
            self.to_verify.remove(faults)
        if lesson.succeeded is None:
            self._tries[lesson.purpose, faults] += 1
            if lesson.purpose == "verify" and self._tries[lesson.purpose, faults] < MAX_TRIES:
                self.to_verify.append(faults)
            return
        if lesson.succeeded:
            self._judged[faults] = "refuted" if lesson.purpose == "confirm" else "fixed"
            injected = self.knowledge.injected(faults)
            self.knowledge.forget_harm(lambda harm: injected <= harm.fired)
        self.knowledge.learn(lesson)
        if not lesson.succeeded:
            self._judged[faults] = "open"

    def _replace(self, lesson: Lesson) -> None:
        """Put the answer of the second try in the place of the first."""
        self._tries["repeat", lesson.injected] += 1
        if lesson.succeeded is not None:
            self._tries["repeat", lesson.injected] = MAX_TRIES
            self.knowledge.forget_harm(lambda harm: harm.injected == lesson.injected)
            self.knowledge.learn(lesson)

    def _asked_for(self) -> Plan | None:
        self._asked = [each for each in self._asked if self.knowledge.knows(each)]
        return Plan(self._asked[0], "explore") if self._asked else None

    def _verification(self) -> Plan | None:
        self.knowledge.study_traffic()
        self.to_verify = [each for each in self.to_verify if self.knowledge.knows(each)]
        return Plan(self.to_verify[0], "verify") if self.to_verify else None

    def _confirmation(self, now: float, *, ripe: bool = True) -> Plan | None:
        apart = self.knowledge.settings.apart
        suspected = [
            faults
            for faults in self._unconfirmed(ripe=ripe)
            if now >= self._hurt_at.get(faults, 0.0) + apart
        ]
        if not suspected:
            return None
        first = min(suspected, key=sorted)
        return Plan(first, "confirm", self._opening(first))

    def _opening(self, faults: Hypothesis) -> Opening | None:
        """Look up what the last experiment of these faults left to a second one."""
        for lesson in reversed(self.knowledge.lessons):
            if lesson.injected == faults and lesson.purpose in {"explore", "recheck", "repeat"}:
                return lesson.opening
        return None

    def _following(self) -> Plan | None:
        self._leads = [each for each in self._leads if self.knowledge.tries(each)]
        return Plan(self._leads[0], "explore") if self._leads else None

    def _suspicion(self) -> Plan | None:
        """Try alone what nature says hurts. What was called off is left to the unions."""
        fresh = (each for each in suspicions(self.knowledge) if each not in self.called_off)
        return next((Plan(each, "explore") for each in fresh), None)

    def _unconfirmed(self, *, ripe: bool) -> list[Hypothesis]:
        """``ripe``: leave out what a broader finding, still to be tried, may replace."""
        return [
            faults
            for faults, state in self.states.items()
            if state == "suspected"
            and self._tries["confirm", faults] < MAX_TRIES
            and not (ripe and self.knowledge.superseded_soon(faults))
        ]

    def _doubt(self) -> Plan | None:
        """Find what hurt although it should not have, and was not tried again yet."""
        states = self.states
        doubted = (
            lesson.injected
            for lesson in self.knowledge.lessons
            if lesson.injected not in states
            and self._tries["repeat", lesson.injected] < MAX_TRIES
            and self.knowledge.doubts(lesson)
        )
        return next((Plan(faults, "repeat") for faults in doubted), None)

    def _exploration(self) -> Plan | None:
        proposed = self.knowledge.propose()
        return None if proposed is None else Plan(proposed, "explore")

    def _recheck(self) -> Plan | None:
        if self._rechecked >= self.knowledge.settings.rechecks:
            return None
        drawn = self.knowledge.recheck()
        return None if drawn is None else Plan(drawn, "recheck")
