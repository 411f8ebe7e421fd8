"""From one test to its minimal failing sets: the pure part, which knows no pytest and no clock.

``explore`` is given a function that runs the test once under some faults. It looks at runs without
faults first; then the exploration of a request class goes on as in a campaign, with one run for
what a campaign needs a hundred devices for. A failure is tried once more by itself before it is
called a finding, since a test may fail by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ldfi.experiments.domain.campaign.exploration import Exploration, Plan
from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.pytest_plugin.bounds import Bounds
from ldfi.experiments.pytest_plugin.evidence import VERSION
from ldfi.fit.faults import Fault
from ldfi.kinds import FaultKind
from ldfi.lineage.blame import blame
from ldfi.lineage.digest import digest
from ldfi.lineage.lineage import Lineage
from ldfi.proof.outcome import OutcomeRecord
from ldfi.proof.record import Rested

Passed = bool | None
"""None: the run says nothing (it was skipped, say)."""
ExploredVerdict = Literal["harmful", "tolerated", "inconclusive", "broken"]
"""``broken``: the test fails without any fault. ``inconclusive``: not everything was tried."""

QUIET: Final = 2
"""Runs without faults that must show nothing new before the support is believed."""
MOST_AT_ONCE: Final = 200
"""Faults that one run unites at most: so many fit into a failure context, whatever their kind."""
MOST_GOOD: Final = 10
"""Runs without faults at most: a test may call something else each time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request by which the test entered the application, as it was sent."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Run:
    """The test, run once. ``error``: how it failed, in one line. ``asked``: its last request.
    ``degraded``: it said that it accepts an answer from which something is missing. ``began``,
    ``ended``: Unix seconds."""

    passed: Passed
    lineage: Lineage
    error: str = ""
    asked: Asked | None = None
    degraded: bool = False
    began: float = 0.0
    ended: float = 0.0


Execute = Callable[[tuple[Fault, ...]], Run]
"""Runs the test once, with these faults injected."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A minimal failing set: ``faults`` as variables, ``injected`` as what was injected for it.

    ``confirmed`` is False where every further try by itself said nothing.
    """

    faults: frozenset[str]
    injected: tuple[Fault, ...]
    run: Run
    confirmed: bool


@dataclass(slots=True)
class Explored:
    """What came of exploring one test. ``reason`` says why where the verdict needs it."""

    verdict: ExploredVerdict
    reason: str = ""
    runs: int = 0
    findings: list[Finding] = field(default_factory=list)
    refuted: list[frozenset[str]] = field(default_factory=list)
    """Failed once, and passed when tried again."""
    never_fired: list[frozenset[str]] = field(default_factory=list)
    unfired: list[frozenset[str]] = field(default_factory=list)
    """Those of them of which no fault has fired in any run: nothing was tried there."""
    open: int = 0
    exhaustive: int = 0
    """Runs that trying all sets of faults of at most ``max_size`` would take."""
    unexplained: int = 0
    """Runs that failed although no fault had fired."""
    points: list[str] = field(default_factory=list)
    good: Run | None = None
    records: list[OutcomeRecord] = field(default_factory=list)
    """Every run under faults, as what the certificate rests on."""
    certificate: dict[str, Any] | None = None
    """None where there was nothing to explore."""


def explore(
    name: str, execute: Execute, bounds: Bounds, hurry: Callable[[], bool] = lambda: False
) -> Explored:
    """Find the minimal failing sets of a test. ``hurry`` says when the time is over."""
    return _Search(name, execute, bounds).go(hurry)


class _Search:
    def __init__(self, name: str, execute: Execute, bounds: Bounds) -> None:
        self._name = name
        self._execute = execute
        self._bounds = bounds
        self._traffic = Traffic()
        settings = Settings(
            max_size=bounds.max_size,
            kinds=bounds.kinds,
            each_kind=bounds.each_kind,
            max_union=MOST_AT_ONCE,
            seed=bounds.seed,
            rechecks=0,
        )
        self._exploration = Exploration(Knowledge(name, settings, self._traffic, bounds.protected))
        self._failed: dict[frozenset[str], Run] = {}
        self._fired: set[str] = set()
        self._result = Explored("tolerated")

    def go(self, hurry: Callable[[], bool]) -> Explored:
        result = self._result
        if not self._look():
            return result
        hurried = False
        while not hurried and (plan := self._exploration.plan()) is not None:
            self._try(plan)
            hurried = hurry()
        self._conclude(hurried)
        return result

    def _look(self) -> bool:
        """Run the test without faults until it shows nothing new; whether it can be explored."""
        result, seen, quiet = self._result, frozenset[str](), 0
        while quiet < QUIET and result.runs < MOST_GOOD:
            run = self._run(())
            if run.passed is not True:
                result.verdict = "broken" if run.passed is False else "inconclusive"
                result.good = run
                result.reason = run.error
                return False
            result.good = result.good or run
            self._observe(run.lineage)
            quiet = quiet + 1 if run.lineage.called <= seen else 1
            seen |= run.lineage.called
        if not seen:
            result.verdict, result.reason = "inconclusive", "no call was seen that could fail"
        return bool(seen)

    def _observe(self, lineage: Lineage) -> None:
        """Learn from a good run in which nothing was injected.

        What failed by itself is not put apart as nature's experiment: fakes answer every time as
        they do this time, and the test is about just that.
        """
        undisturbed = replace(lineage, failed=frozenset(), survived=frozenset())
        outcome = Outcome(lineage.trace_id, "test", "", success=True)
        self._traffic.observe(Observation(undisturbed, outcome), lineage.start / 1e9)

    def _try(self, plan: Plan) -> None:
        injected = self._exploration.knowledge.expand(plan.hypothesis)
        run = self._run(injected)
        lineage = run.lineage
        self._fired |= lineage.fired
        if not lineage.fired and run.passed:
            self._observe(lineage)
        if not lineage.fired and run.passed is False:
            self._result.unexplained += 1
        lesson, records = self._lesson(plan, run), self._result.records
        records.append(_record(self._name, len(records) + 1, injected, run, lesson))
        self._exploration.learn(replace(lesson, proof=records[-1].proof()))

    def _lesson(self, plan: Plan, run: Run) -> Lesson:
        lineage = run.lineage
        implications = frozenset(
            (f"delay@{point}", f"error@{point}") for point in lineage.timed_out
        )
        if run.passed is None or not lineage.fired:
            return Lesson(plan.hypothesis, None, implications=implications, purpose=plan.purpose)
        if run.passed:
            return Lesson(
                plan.hypothesis,
                True,
                fired=lineage.fired,
                relied_on=lineage.relied_on,
                called=lineage.called,
                survived=lineage.survived,
                implications=implications,
                purpose=plan.purpose,
                degraded=run.degraded,
            )
        self._failed[lineage.fired] = run
        return Lesson(
            plan.hypothesis,
            False,
            fired=lineage.fired,
            suspects=blame(lineage.tree, self._traffic.usual_support()),
            implications=implications,
            purpose=plan.purpose,
        )

    def _run(self, faults: tuple[Fault, ...]) -> Run:
        self._result.runs += 1
        run = self._execute(faults)
        self._traffic.topology.learn(run.lineage)
        return run

    def _conclude(self, hurried: bool) -> None:
        result, exploration = self._result, self._exploration
        known = exploration.knowledge
        found = [faults for faults, _ in known.findings()]
        result.findings = [self._finding(faults) for faults in sorted(found, key=sorted)]
        result.refuted = [each for each, is_ in exploration.states.items() if is_ == "refuted"]
        result.certificate = known.explorer.certificate().data
        result.never_fired = [
            frozenset(each["faults"]) for each in result.certificate["inconclusive"]
        ]
        result.unfired = [each for each in result.never_fired if not self._has_fired(each)]
        result.open = known.explorer.open_count()
        result.points = sorted(
            point for point in known.points if matching(self._bounds.protected, [point]) is None
        )
        kinds = Kinds(self._bounds.kinds)
        result.exhaustive = exhaustive(
            [len(kinds.at(point)) for point in result.points], self._bounds
        )
        if result.findings:
            result.verdict = "harmful"
        elif result.unfired:
            result.verdict = "inconclusive"
            result.reason = f"no fault has fired at {points_of(result.unfired, self._bounds.kinds)}"
        elif result.open > len(result.never_fired):
            result.verdict = "inconclusive"
            result.reason = (
                f"{result.open} hypotheses are left open"
                f" {'when the time was over' if hurried else 'that the solver did not get to'}"
            )

    def _has_fired(self, faults: frozenset[str]) -> bool:
        injected = self._exploration.knowledge.expand(faults)
        return not self._fired.isdisjoint(map(str, injected))

    def _finding(self, faults: frozenset[str]) -> Finding:
        injected = self._exploration.knowledge.expand(faults)
        fired = frozenset(map(str, injected))
        likest = min(self._failed, key=lambda each: (len(each ^ fired), sorted(each)))
        run = self._failed[likest]
        return Finding(faults, injected, run, self._exploration.states.get(faults) == "open")


def _record(
    test: str, number: int, injected: Iterable[Fault], run: Run, lesson: Lesson
) -> OutcomeRecord:
    """Write down one run of a test under faults. ``number``: which one it is, from 1 on."""
    trace = run.lineage.trace_id
    outcome = {True: "passed", False: "failed", None: "skipped"}[run.passed]
    letter = "T" if run.passed is False else "t"
    return OutcomeRecord(
        experiment=f"{test} #{number}",
        request_class=test,
        version=VERSION,
        number=number,
        purpose=lesson.purpose,
        hypothesis=tuple(sorted(lesson.injected)),
        faults=tuple(map(str, injected)),
        outcome=outcome,
        verdict={True: "tolerated", False: "harmful", None: "inconclusive"}[lesson.succeeded],
        reason=run.error,
        began=run.began,
        ended=max(run.began, run.ended),
        fired=tuple(sorted(run.lineage.fired)),
        relied_on=tuple(sorted(lesson.relied_on)),
        degraded=lesson.degraded,
        traces=Rested.on([(trace, letter, digest(run.lineage.trace))], (trace,)),
    )


def points_of(hypotheses: Iterable[frozenset[str]], kinds: Collection[FaultKind]) -> str:
    """Name the points of hypotheses, for people; of several kinds, which it was."""
    split = sorted({fault.partition("@")[::2] for each in hypotheses for fault in each})
    several = len(kinds) > 1
    named = {f"{point} ({kind})" if several else point for kind, point in split}
    return ", ".join(sorted(named))


def exhaustive(at_points: Iterable[int], bounds: Bounds) -> int:
    """Count the sets of at most ``max_size`` faults, at most one at each point, given how many
    there are at each."""
    of_size = [1] + [0] * bounds.max_size
    for faults in at_points:
        for size in range(bounds.max_size, 0, -1):
            of_size[size] += of_size[size - 1] * faults
    return sum(of_size[1:])
