"""What is known of one request class: from evidence to a hypothesis, from a lesson to evidence.

This is where the three rooms meet. The solver sees variables, which are strings: ``error@POINT``,
``delay@POINT``, and ``down@SYSTEM`` for a fault domain, all of whose points fail together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.campaign.surroundings import Surroundings, surroundings
from ldfi.experiments.domain.campaign.unproven import Unproven, token
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.fit.faults import Fault
from ldfi.solver import Explorer, Judgement, OutOfTime

Hypothesis = frozenset[str]
DOWN = "down@"
SPELT_OUT = 4
"""A domain of fewer points than this is never tried point by point as well: it is the same."""

SOLVER_SECONDS = 2.0
"""The longest the service may stand still for one hypothesis: well within a lease."""

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
    may inject into. ``open``: how many minimal hypotheses are open, as of the last proposal.
    """

    name: str
    settings: Settings
    traffic: Traffic
    protected: tuple[str, ...] = ()
    explorer: Explorer = field(init=False)
    open: int = 0
    lessons: list[Lesson] = field(default_factory=list, init=False)
    _around: Surroundings = field(init=False)
    _domains: dict[str, frozenset[str]] = field(default_factory=dict)
    _traces: dict[frozenset[str], tuple[str, ...]] = field(default_factory=dict)
    _unproven: Unproven = field(default_factory=Unproven)

    def __post_init__(self) -> None:
        self._build(surroundings(self.traffic, self.lessons))

    def propose(self) -> Hypothesis | None:
        """Choose the next hypothesis worth an experiment.

        None when nothing is left within the bounds, or nothing can be found in time.
        """
        self.study_traffic()
        try:
            proposed = self.explorer.propose()
        except OutOfTime:
            proposed = None  # what is left is listed as open on the certificate
        self.open = self.explorer.open_count(OPEN_SHOWN)
        return None if proposed is None else _hypothesis(proposed)

    def recheck(self) -> Hypothesis | None:
        """Draw a hypothesis that was inferred safe but never tried; None if there is none."""
        drawn = self.explorer.recheck()
        return None if drawn is None else _hypothesis(drawn)

    def superseded_soon(self, hypothesis: Hypothesis) -> bool:
        """Say whether the same with errors in place of delays is still open.

        A delay that makes its call fail implies the error, so if the error hurts as well, that is
        the finding.
        """
        weaker = frozenset(
            f"error@{point}"
            if kind == "delay" and point in self._around.given_up
            else f"{kind}@{point}"
            for kind, _, point in (fault.partition("@") for fault in hypothesis)
        )
        return weaker != hypothesis and self.explorer.judge(weaker) == "open"

    def knows(self, hypothesis: Hypothesis) -> bool:
        """Say whether all of it can be injected: its points and systems have been seen.

        A fallback may have been seen only while something was injected, in another campaign.
        """
        topology = self.traffic.topology
        return all(
            variable in self._domains
            if variable.startswith(DOWN)
            else topology.knows(variable.partition("@")[2])
            for variable in hypothesis
        )

    def tries(self, hypothesis: Hypothesis) -> bool:
        """Say whether it may be tried and would be news: neither rejected nor known."""
        rejected = any(
            each.purpose == "rejected" and each.injected <= hypothesis for each in self.lessons
        )
        return not rejected and self.knows(hypothesis) and self.explorer.judge(hypothesis) == "open"

    def by_system(self, faults: Hypothesis) -> Hypothesis:
        """Name the faults by the systems that are down where all errors of one are among them."""
        down = {name for name in self._domains if self._errors(name) <= faults}
        errors = frozenset().union(*(self._errors(name) for name in down))
        return (faults - errors) | down

    def expand(self, hypothesis: Iterable[str]) -> tuple[Fault, ...]:
        """Spell out what has to be injected: a domain becomes an error at each of its points.

        A point fails in one way only. Where both kinds are asked for, the delay stands for both:
        the explorer asks only where it knows that the delay ends in an error.
        """
        faults: dict[str, Fault] = {}
        for variable in sorted(hypothesis, reverse=True):
            if variable.startswith(DOWN):
                for point in self._domains[variable]:
                    faults.setdefault(point, Fault(point, "error"))
            else:
                fault = Fault.parse(variable)
                if fault.kind == "delay" or fault.point not in faults:
                    faults[fault.point] = fault
        return tuple(sorted(faults.values()))

    def learn(self, lesson: Lesson) -> None:
        """Take a lesson to the explorer; what was rejected is never proposed again."""
        self.lessons.append(lesson)
        around = surroundings(self.traffic, self.lessons)
        if around == self._around:
            self._take(lesson)
        else:
            self._build(around)

    def forget_harm(self, wrong: Callable[[Lesson], bool]) -> None:
        """Know from now on what there is to know without those lessons of harm that were wrong."""
        self.lessons = [
            lesson for lesson in self.lessons if lesson.succeeded is not False or not wrong(lesson)
        ]
        self._build(surroundings(self.traffic, self.lessons))

    def study_traffic(self) -> None:
        """Take in what the traffic has shown since the last time."""
        around = surroundings(self.traffic, self.lessons)
        if around != self._around:
            self._build(around)

    def _build(self, around: Surroundings) -> None:
        """Know nothing, and learn everything: what traffic shows, then lesson by lesson."""
        self._around = around
        self._domains, self._traces, self._unproven = {}, {}, Unproven()
        self.explorer = Explorer(
            max_size=self.settings.max_size,
            strategy=self.settings.strategy,
            max_union=self.settings.max_union,
            seed=self.settings.seed,
            time_limit=SOLVER_SECONDS,
        )
        self._know_points()
        if "error" in self.settings.kinds:
            for delay, error in sorted(around.implications):
                self.explorer.imply(delay, error)
        self._know_domains()
        self._know_nesting()
        self._know_nature()
        self._widen()
        for lesson in self.lessons:
            self._take(lesson)

    def _take(self, lesson: Lesson) -> None:
        if lesson.purpose == "rejected":
            self.explorer.exclude(lesson.injected)
        else:
            self._record(lesson)

    def _record(self, lesson: Lesson) -> None:
        if lesson.succeeded and lesson.degraded:
            self.explorer.record(
                injected=lesson.injected,
                succeeded=True,
                fired=self._with_tokens(lesson.fired),
                met=self._within_bounds(lesson.relied_on),
                traces=lesson.traces,
            )
        elif lesson.succeeded:
            self._unproven.add(lesson.fired, lesson.called, lesson.survived)
            self._widen()  # before the record, which judges by it whether anything was closed
            self.explorer.record(
                injected=lesson.injected,
                succeeded=True,
                fired=self._with_tokens(lesson.fired),
                support=self._within_bounds(lesson.relied_on),
                traces=lesson.traces,
            )
        elif lesson.succeeded is None:
            self.explorer.record(injected=lesson.injected, succeeded=None)
        else:
            self._traces.setdefault(lesson.fired, lesson.traces)
            blame = {f for f in lesson.fired if f.partition("@")[2] in lesson.suspects}
            self.explorer.record(
                injected=lesson.injected,
                succeeded=False,
                fired=self._with_tokens(lesson.fired),
                blame=frozenset(blame) or None,
                traces=lesson.traces,
            )

    @property
    def points(self) -> frozenset[str]:
        """Return every point seen in this class."""
        return self._around.points

    def judge(self, points: Iterable[str]) -> Judgement:
        """Say what is known of these points failing, all at once."""
        errors = frozenset(f"error@{point}" for point in points)
        return self.explorer.judge(self._with_tokens(errors))

    def doubts(self, lesson: Lesson) -> bool:
        """Say whether other lessons have it that what fired in its bad requests is survived."""
        fired = self._with_tokens(lesson.fired)
        return lesson.succeeded is False and fired in self.explorer.doubtful

    def superseded(self, faults: Hypothesis) -> bool:
        """Say whether less than all of these was found to hurt."""
        whole = self._brought_about(faults)
        return any(self._brought_about(found) < whole for found, _ in self.findings())

    def findings(self) -> list[tuple[Hypothesis, tuple[str, ...]]]:
        """Return the minimal failing sets found so far, each with exemplar traces."""
        found = map(_hypothesis, self.explorer.findings)
        return [(faults, self._traces.get(self.injected(faults), ())) for faults in found]

    def certificate(self) -> dict[str, Any]:
        """Write the certificate as it stands, with the class by name."""
        self.study_traffic()
        data = self.explorer.certificate().data
        return {"request_class": self.name, "certificate": data}

    def injected(self, variables: Iterable[str]) -> frozenset[str]:
        """Return the faults that are injected for these variables."""
        return frozenset(map(str, self.expand(variables)))

    def _know_nature(self) -> None:
        """Take in what traffic relies on, and what it survives by itself."""
        self._unproven.add(frozenset(), self._around.called)
        for (relied_on, failed), trace_id in zip(
            self._around.supports, self._around.traces, strict=True
        ):
            support = self._within_bounds(relied_on)
            self.explorer.observe(support, failed=self._with_tokens(failed), traces=(trace_id,))
            if failed:
                for fault in sorted(failed - self._within_bounds(failed)):
                    self.explorer.exclude({fault})  # nobody can inject what only nature does
                waited = (fault.partition("@") for fault in relied_on)
                called = frozenset(point for kind, _, point in waited if kind == "delay")
                self._unproven.add(failed, called, failed)

    def _widen(self) -> None:
        """Let clauses hold what their runs leave unproved."""
        errors = {name.removeprefix(DOWN): self._errors(name) for name in self._domains}
        topology, given_up = self._around.topology, self._around.given_up
        for survived, faults in self._unproven.news(errors, topology, given_up):
            self.explorer.observe(self._within_bounds(faults), failed=self._with_tokens(survived))

    def _know_points(self) -> None:
        """Say what may not be tried, and that kinds of fault at one point exclude each other."""
        for point in sorted(self._around.points):
            if matching(self.protected, [point]) is not None:
                self.explorer.protect(f"{kind}@{point}" for kind in self.settings.kinds)
            if len(self.settings.kinds) > 1:
                self.explorer.exclude(f"{kind}@{point}" for kind in self.settings.kinds)

    def _know_domains(self) -> None:
        if "error" not in self.settings.kinds:
            return
        for system, points in sorted(self._around.topology.shared().items()):
            known = points & self._around.points
            if len(known) > 1:
                self._domains[DOWN + system] = known
                members = {*self._errors(DOWN + system), token(system)}
                self.explorer.add_domain(DOWN + system, members)
                self.explorer.exclude({token(system)})
                if len(members) <= SPELT_OUT:
                    self.explorer.exclude(self._errors(DOWN + system))

    def _know_nesting(self) -> None:
        """Exclude a fault on a point together with an error on one around it."""
        topology, known = self._around.topology, self._around.points
        alone = {f"error@{point}": frozenset({point}) for point in known}
        nested = {
            frozenset({outer, f"{kind}@{inner}"})
            for outer, points in (alone | self._domains).items()
            for inner in (topology.behind(points) - points) & known
            for kind in self.settings.kinds
        }
        for pair in sorted(nested, key=sorted):
            self.explorer.exclude(pair)

    def _errors(self, domain: str) -> frozenset[str]:
        return frozenset(f"error@{point}" for point in self._domains[domain])

    def _with_tokens(self, fired: frozenset[str]) -> frozenset[str]:
        """Add to what fired the domains that were down with it."""
        late = {f"error@{p}" for p in self._around.given_up if f"delay@{p}" in fired}
        down = [name for name in self._domains if self._errors(name) <= fired | late]
        return fired | {token(name.removeprefix(DOWN)) for name in down}

    def _brought_about(self, hypothesis: Hypothesis) -> Hypothesis:
        injected = self.injected(hypothesis)
        late = {p for p in self._around.given_up if f"delay@{p}" in injected}
        return injected | {f"error@{point}" for point in late}

    def _within_bounds(self, faults: frozenset[str]) -> frozenset[str]:
        kinds = (*self.settings.kinds, "shared")
        return frozenset(fault for fault in faults if fault.partition("@")[0] in kinds)


def _hypothesis(faults: Iterable[object]) -> Hypothesis:
    return frozenset(map(str, faults))
