"""Exploring one request class: what to try next, and what has become of its findings.

In this order: *verify* what was found before, *confirm* what was just found, *explore* what nobody
knows yet, and *recheck* a few sets that were only inferred to be safe.

A finding is ``suspected`` at first. When an experiment of its own hurts as well, it is ``open``;
when that one is survived, it is ``refuted``: the verdict that suspected it was wrong. A finding
that was open and is survived later is ``fixed``. In both cases whatever was put down to these
faults is forgotten, and what is known is built anew from the lessons that are left.

A failure that contradicts what was survived is *repeated* before anything is built on it, and the
second lesson takes the place of the first. (A request of which spans were lost seems to have failed
of fewer faults than it did.) Where both say the same it is believed, and the explorer goes over to
its cautious strategy, as more faults do help here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ldfi.experiments.domain.campaign.experience import Experience
from ldfi.experiments.domain.campaign.knowledge import Hypothesis, Knowledge
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.judging.experiment import Purpose
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.fit.faults import Fault

FindingNews = Literal["suspected", "open", "refuted", "fixed"]

MAX_TRIES = 3
"""Inconclusive attempts after which a finding is neither confirmed nor verified any more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next experiment on a class."""

    hypothesis: Hypothesis
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class FindingChange:
    """What an experiment did to a finding: it is new, or its state is."""

    faults: Hypothesis
    state: FindingNews
    traces: tuple[str, ...] = ()


@dataclass(slots=True)
class Exploration:
    """``version``: that of the request class whose lineage this is about. ``only``: hypotheses to
    be tried once each instead of exploring."""

    name: str
    settings: Settings
    traffic: Traffic
    version: int = 1
    protected: tuple[str, ...] = ()
    only: tuple[Hypothesis, ...] = ()
    finished: bool = False
    states: dict[Hypothesis, FindingNews] = field(default_factory=dict)
    to_verify: list[Hypothesis] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    _knowledge: Knowledge = field(init=False)
    _tries: Counter[tuple[str, Hypothesis]] = field(default_factory=Counter)
    _rechecked: int = 0
    _asked: list[Hypothesis] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._knowledge = self._blank()
        self._asked = list(self.only)

    @property
    def knowledge(self) -> Knowledge:
        """What is known of the class."""
        return self._knowledge

    @property
    def open(self) -> int:
        """How many minimal hypotheses are open, as of the last plan."""
        return self._knowledge.open

    def begin_run(self, known: Iterable[Hypothesis]) -> None:
        """A new run of the campaign: try what was found before once more."""
        self.finished = False
        self._rechecked = 0
        self._tries.clear()
        self.to_verify = list(known) if self.settings.verify else []
        if self.only:
            self.to_verify = [each for each in self.to_verify if each in self.only]
        self._asked = [each for each in self.only if each not in self.to_verify]

    def plan(self) -> Plan | None:
        """The next experiment; None when nothing is left within the bounds."""
        if self.only:
            plan = self._verification() or self._asked_for() or self._confirmation()
        else:
            plan = (
                self._verification()
                or self._confirmation()
                or self._doubt()
                or self._exploration()
                or self._confirmation(ripe=False)
                or self._recheck()
            )
        self.finished = plan is None
        return plan

    def expect(self, experience: Experience) -> None:
        """Take into account what experience says of the faults of this class."""
        if self.settings.strategy == "likeliest":
            faults = (f"{kind}@{p}" for p in self._knowledge.points for kind in self.settings.kinds)
            self._knowledge.explorer.expect(
                {fault: experience.likelihood(fault) for fault in faults}
            )

    def expand(self, hypothesis: Hypothesis) -> tuple[Fault, ...]:
        """What has to be injected for it."""
        return self._knowledge.expand(hypothesis)

    def learn(self, lesson: Lesson) -> list[FindingChange]:
        """Take a lesson; what it does to the findings."""
        before = dict(self.states)
        self._take(lesson)
        traces = dict(self._knowledge.findings())
        confirmed = {lesson.injected} if lesson.succeeded is False else set[Hypothesis]()
        return [
            FindingChange(faults, state, traces.get(faults, lesson.traces))
            for faults, state in self.states.items()
            if before.get(faults) != state or (faults in confirmed and state == "open")
        ]

    def replay(self, lessons: Iterable[Lesson]) -> None:
        """After a restart: learn again what was learned before."""
        for lesson in lessons:
            self._take(lesson)

    def follow(self, traffic: Traffic) -> None:
        """From now on this is the class's traffic; what was learned before still counts."""
        self.traffic = self._knowledge.traffic = traffic

    def findings(self) -> list[tuple[Hypothesis, tuple[str, ...]]]:
        """The minimal failing sets found so far, each with exemplar traces."""
        return self._knowledge.findings()

    def certificate(self) -> dict[str, Any]:
        """The certificate as it stands, with the class by name."""
        return self._knowledge.certificate()

    def _take(self, lesson: Lesson) -> None:
        if lesson.injected in self._asked:
            self._asked.remove(lesson.injected)
        if lesson.purpose == "rejected":
            self.lessons.append(lesson)
            self._knowledge.exclude(lesson.injected)
        elif lesson.purpose in {"confirm", "verify"}:
            self._judge(lesson)
        elif lesson.purpose == "repeat":
            self._replace(lesson)
        else:
            self._add(lesson)
            self._rechecked += lesson.purpose == "recheck"
        for faults, _ in self._knowledge.findings():
            if self.states.get(faults, "fixed") in {"fixed", "refuted"}:
                self.states[faults] = "suspected" if self.settings.confirm else "open"
        self._forget_superseded()

    def _judge(self, lesson: Lesson) -> None:
        """A known finding was tried again by itself."""
        faults = lesson.injected
        if faults in self.to_verify:
            self.to_verify.remove(faults)
        if lesson.succeeded is None:
            self._tries[lesson.purpose, faults] += 1
            if lesson.purpose == "verify" and self._tries[lesson.purpose, faults] < MAX_TRIES:
                self.to_verify.append(faults)
            return
        if lesson.succeeded:
            self.states[faults] = "refuted" if lesson.purpose == "confirm" else "fixed"
            injected = self._knowledge.injected(faults)
            self._forget(lambda harm: injected <= harm.fired)
        self._add(lesson)
        if not lesson.succeeded:
            self.states[faults] = "open"

    def _replace(self, lesson: Lesson) -> None:
        """What hurt was tried again, and that is the answer."""
        self._tries["repeat", lesson.injected] += 1
        if lesson.succeeded is not None:
            self._tries["repeat", lesson.injected] = MAX_TRIES
            self._forget(lambda harm: harm.injected == lesson.injected)
            self._add(lesson)

    def _add(self, lesson: Lesson) -> None:
        self.lessons.append(lesson)
        self._knowledge.learn(lesson)

    def _forget(self, wrong: Callable[[Lesson], bool]) -> None:
        """Drop every lesson of harm that was wrong, and build what is known anew."""
        self.lessons = [
            lesson for lesson in self.lessons if lesson.succeeded is not False or not wrong(lesson)
        ]
        self._knowledge = self._blank()
        for lesson in self.lessons:
            if lesson.purpose == "rejected":
                self._knowledge.exclude(lesson.injected)
            else:
                self._knowledge.learn(lesson)

    def _forget_superseded(self) -> None:
        """A suspicion that a smaller or broader finding has replaced is none any more."""
        current = {faults for faults, _ in self._knowledge.findings()}
        for faults, state in list(self.states.items()):
            if state == "suspected" and faults not in current:
                del self.states[faults]

    def _blank(self) -> Knowledge:
        return Knowledge(self.name, self.settings, self.traffic, self.protected)

    def _asked_for(self) -> Plan | None:
        self._asked = [each for each in self._asked if self._knowledge.knows(each)]
        return Plan(self._asked[0], "explore") if self._asked else None

    def _verification(self) -> Plan | None:
        self._knowledge.study_traffic()
        self.to_verify = [each for each in self.to_verify if self._knowledge.knows(each)]
        return Plan(self.to_verify[0], "verify") if self.to_verify else None

    def _confirmation(self, *, ripe: bool = True) -> Plan | None:
        """``ripe``: leave out what a broader finding, still to be tried, may replace."""
        suspected = [
            faults
            for faults, state in self.states.items()
            if state == "suspected"
            and self._tries["confirm", faults] < MAX_TRIES
            and not (ripe and self._knowledge.superseded_soon(faults))
        ]
        return Plan(min(suspected, key=sorted), "confirm") if suspected else None

    def _doubt(self) -> Plan | None:
        """What hurt although it should not have, and was not tried again yet."""
        doubted = (
            lesson.injected
            for lesson in self.lessons
            if lesson.injected not in self.states
            and self._tries["repeat", lesson.injected] < MAX_TRIES
            and self._knowledge.doubts(lesson)
        )
        return next((Plan(faults, "repeat") for faults in doubted), None)

    def _exploration(self) -> Plan | None:
        proposed = self._knowledge.propose()
        return None if proposed is None else Plan(proposed, "explore")

    def _recheck(self) -> Plan | None:
        if self._rechecked >= self.settings.rechecks:
            return None
        drawn = self._knowledge.recheck()
        return None if drawn is None else Plan(drawn, "recheck")
