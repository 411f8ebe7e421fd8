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

from ldfi.checker.outcome import OutcomeRecord
from ldfi.checker.record import Rested
from ldfi.experiments.domain.campaign.exploration import Exploration, Plan
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult, Hypothesis
from ldfi.experiments.domain.campaign.solver_input import NO_INJECTOR, NO_TIMEOUT
from ldfi.experiments.domain.judging.killed_process import KILLED
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.explore.pytest.evidence import VERSION
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.parallel import Begun, InTurn, Making
from ldfi.explore.pytest.run import Execute, Run
from ldfi.explore.pytest.survived import Basis, SurvivedRuns, same_way
from ldfi.fit.protocol.faults import DOWN, Fault
from ldfi.fit.protocol.kinds import FaultKind
from ldfi.fit.protocol.points import Point
from ldfi.lineage.blame import blame
from ldfi.lineage.digest import digest
from ldfi.lineage.killed_process import Death
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.requested_faults import as_asked
from ldfi.lineage.unseen_calls import NOTHING

ExploredVerdict = Literal["harmful", "tolerated", "inconclusive", "broken"]
"""``broken``: the test fails without any fault. ``inconclusive``: not everything was tried."""

QUIET: Final = 2
"""Runs without faults that must show nothing new before the support is believed."""
MOST_AT_ONCE: Final = 200
"""Faults that one run unites at most: so many fit into a failure context, whatever their kind."""
MOST_GOOD: Final = 10
"""Runs without faults at most: a test may call something else each time."""
NO_CALL: Final = "no call was seen that could fail"
SKIPPED: Final = "the test skips itself in some runs under faults, which say nothing"
FEW: Final = 6
"""Sets of faults up to which they are tried one by one: no union could save anything."""
RECHECKS: Final = 1
"""Sets inferred to be safe that are tried all the same."""
OTHERWISE: Final = "a run that was tried all the same went another way than it did before"
OPEN: Final = 20
"""Open hypotheses that are named at most."""
DRAWS: Final = 3
"""Times that is asked for something that is not under way already: proposals are drawn at
random."""


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
    """Those of them, and of what was ignored, of which no fault has fired in any run: nothing was
    tried there."""
    open: int = 0
    open_sets: list[frozenset[str]] = field(default_factory=list)
    """Some of what is left open."""
    ignored: list[str] = field(default_factory=list)
    """Faults (``kind@point``) that a call has met and that did not fire: nobody injects there."""
    out_of_bounds: dict[str, str] = field(default_factory=dict)
    """These, and points at which none of the kinds asked for is possible, each with its reason."""
    unseen: str = ""
    """What runs did not show, as it came out later."""
    exhaustive: int = 0
    """Runs that trying all sets of faults of at most ``max_size``, and every system that is down as
    a whole, would take; looking at runs without faults and confirming what is found included, as in
    ``runs``."""
    kept: int = 0
    """Runs that were not made again: the same was survived in an earlier exploration."""
    not_kept: str = ""
    """Why no run could be taken from an earlier exploration, where somebody asked for that."""
    unexplained: int = 0
    """Runs that failed although no fault had fired."""
    killed: dict[frozenset[str], str] = field(default_factory=dict)
    """What has killed a process, with its service: each was tried once."""
    points: list[str] = field(default_factory=list)
    good: Run | None = None
    records: list[OutcomeRecord] = field(default_factory=list)
    """Every run under faults, as what the certificate rests on."""
    certificate: dict[str, Any] | None = None
    """None where there was nothing to explore."""


def explore(
    name: str,
    execute: Execute,
    bounds: Bounds,
    hurry: Callable[[], bool] = lambda: False,
    doubt: Callable[[], str] = lambda: "",
    survived: SurvivedRuns | None = None,
    making: Making | None = None,
) -> Explored:
    """Find the minimal failing sets of a test. ``hurry`` says when the time is over, ``doubt`` why
    runs may have shown less than there was, where that came out later. ``survived``: runs that need
    not be made again, if somebody keeps them. ``making``: makes the runs under faults, by default
    one after the other; what is under way counts as neither survived nor failed."""
    kept = survived or SurvivedRuns(Basis)
    explored = _Search(name, execute, bounds, kept, making or InTurn(execute)).go(hurry)
    if survived is None:
        explored.not_kept = ""  # nobody asked
    because = doubt()
    if because:
        kept.forget()  # what went well may have called more than its spans said
        explored.unseen = because
    elif explored.certificate is not None:  # else nobody knows what share of calls that is
        explored.certificate["unseen"] = {"bound": None, **NOTHING.to_json()}
    if explored.verdict == "tolerated" and because:
        explored.verdict, explored.reason = "inconclusive", because
    return explored


class _Search:
    def __init__(
        self, name: str, execute: Execute, bounds: Bounds, survived: SurvivedRuns, making: Making
    ) -> None:
        self._name = name
        self._making = making
        self._under_way: set[Hypothesis] = set()
        self._execute = execute
        self._bounds = bounds
        self._traffic = Traffic()
        self._failed: dict[frozenset[str], Run] = {}
        self._fired: set[str] = set()
        self._result = Explored("tolerated")
        self._looks = 0
        self._rechecked = 0
        self._errors = 0
        self._unseen = ""
        self._survived = survived
        self._good: list[Run] = []
        self._kept_are_good = False

    def go(self, hurry: Callable[[], bool]) -> Explored:
        result = self._result
        if not self._look():
            return result
        self._looks = result.runs
        self._survived.begin(self._good)
        result.not_kept = self._survived.reason
        self._exploration = self._begun()
        hurried = False
        while True:
            learned = not hurried and self._begin_more()
            if not learned and not self._under_way:
                break
            if not learned:
                self._end_one()
            hurried = hurried or hurry()
        self._conclude(hurried)
        return result

    def _begin_more(self) -> bool:
        """Begin as many runs as may be under way; return whether something was learned at once,
        as it was survived before."""
        while len(self._under_way) < self._making.most and (plan := self._next()) is not None:
            if self._begin(plan):
                return True
        return False

    def _next(self) -> Plan | None:
        """Return the next plan beside what is under way."""
        if not self._under_way:
            return self._exploration.plan() or self._recheck()
        plans = (self._exploration.plan(under_way=self._under_way) for _ in range(DRAWS))
        return next(filter(None, plans), None)

    def _recheck(self) -> Plan | None:
        """Choose what was inferred to be safe and is tried all the same, when nothing else is left;
        never more than trying everything would take. What one run has shown is not repeated, as in
        a campaign: a test says the same each time, or it is flaky."""
        if self._rechecked >= RECHECKS or self._result.runs >= self._exhaustive():
            return None
        drawn = self._exploration.knowledge.recheck()
        self._rechecked += 1
        return None if drawn is None else Plan(drawn, "recheck")

    def _begun(self) -> Exploration:
        """Begin with what runs without faults have shown. Where few sets are possible, each is
        tried by itself: that never costs more than trying everything."""
        bounds = self._bounds
        settings = Settings(
            max_size=bounds.max_size,
            kinds=bounds.kinds,
            each_kind=bounds.each_kind,
            max_union=MOST_AT_ONCE,
            seed=bounds.seed,
            rechecks=0,
        )
        knowledge = Knowledge(self._name, settings, self._traffic, bounds.protected)
        if exhaustive(self._at(knowledge), bounds) <= FEW:
            settings = replace(settings, strategy="smallest")
            knowledge = Knowledge(self._name, settings, self._traffic, bounds.protected)
        return Exploration(knowledge)

    def _points(self, known: Knowledge) -> list[str]:
        protected = self._bounds.protected
        return sorted(point for point in known.points if matching(protected, [point]) is None)

    def _exhaustive(self) -> int:
        known = self._exploration.knowledge
        points = self._points(known)
        shared = self._traffic.topology.shared().values()
        larger = sum(len(each.intersection(points)) > self._bounds.max_size for each in shared)
        again = 2 * len(self._result.refuted) + len(known.findings())
        return self._looks + exhaustive(self._at(known), self._bounds) + larger + again

    def _at(self, known: Knowledge) -> list[int]:
        """Count the faults that are tried at each point."""
        return [len(known.solver_input.kinds.at(point)) for point in self._points(known)]

    def _look(self) -> bool:
        """Run the test without faults until it shows nothing new; whether it can be explored."""
        result, seen, quiet = self._result, frozenset[str](), 0
        while quiet < QUIET and result.runs < MOST_GOOD:
            run = self._run_good()
            if run.passed is not True:
                result.verdict = "broken" if run.passed is False else "inconclusive"
                result.good = run
                result.reason = run.error
                return False
            if run.unseen:
                result.verdict, result.reason = "inconclusive", run.unseen
                return False
            result.good = result.good or run
            self._good.append(run)
            self._errors = max(self._errors, run.errors)
            self._observe(run.lineage)
            quiet = quiet + 1 if run.lineage.called <= seen else 1
            seen |= run.lineage.called
        if not seen:
            result.verdict, result.reason = "inconclusive", NO_CALL
        return bool(seen)

    def _observe(self, lineage: Lineage) -> None:
        """Learn from a good run in which nothing was injected.

        What failed by itself is not put apart as nature's experiment: fakes answer every time as
        they do this time, and the test is about just that.
        """
        undisturbed = replace(lineage, failed=frozenset(), survived=frozenset())
        outcome = Outcome(lineage.trace_id, "test", "", success=True)
        self._traffic.observe(Observation(undisturbed, outcome), lineage.start / 1e9)

    def _begin(self, plan: Plan) -> bool:
        """Begin a run, or find it among those that were survived before; whether it was found.

        The first that is found is made all the same: where it goes another way, something has
        changed that nobody declared.
        """
        injected = self._exploration.knowledge.expand(plan.hypothesis)
        found = self._survived.find(injected) if plan.purpose == "explore" else None
        if found is not None and self._kept_are_good:
            self._result.kept += 1
            self._traffic.topology.learn(found.lineage)
            self._learn_of(plan, injected, found, kept=True)
            return True
        self._result.runs += 1
        self._under_way.add(plan.hypothesis)
        self._making.begin(Begun(plan, injected, found))
        return False

    def _end_one(self) -> None:
        """Learn of the first run that ends."""
        begun, made = self._making.ended()
        made = replace(made, lineage=as_asked(made.lineage, begun.faults))
        self._under_way.remove(begun.plan.hypothesis)
        self._traffic.topology.learn(made.lineage)
        if begun.before is not None:
            self._kept_are_good = same_way(begun.before, made)
            if not self._kept_are_good:
                self._survived.forget()
                self._result.not_kept = OTHERWISE
        self._learn_of(begun.plan, begun.faults, made, kept=False)

    def _learn_of(self, plan: Plan, injected: tuple[Fault, ...], run: Run, *, kept: bool) -> None:
        if run.died:
            run = replace(run, passed=None, error=self._lost(plan, injected, run.died))
        elif run.unseen:
            self._unseen = run.unseen
            run = replace(run, passed=None)
        else:
            if run.passed is None:
                self._unseen = self._unseen or SKIPPED
            if ignored := _ignored(injected, run.lineage) - self._fired:
                self._leave_out(plan, ignored)
        lineage = run.lineage
        self._fired |= lineage.fired
        if not lineage.fired and run.passed:
            self._observe(lineage)
        if not lineage.fired and run.passed is False:
            self._result.unexplained += 1
        self._survived.keep(injected, run)
        result, records = self._result_of(plan, run), self._result.records
        record = _record(self._name, len(records) + 1, injected, run, result)
        records.append(replace(record, kept=kept))
        self._exploration.learn(replace(result, proof=records[-1].proof()))

    def _lost(self, plan: Plan, injected: tuple[Fault, ...], died: tuple[Death, ...]) -> str:
        """Try nothing more where a process was killed; say which one was."""
        points = {each.mark.point for each in died}
        named = {each for each in plan.hypothesis if _point(each) in points}
        faults = named or {str(each) for each in injected if each.point in points}
        services = ", ".join(sorted({each.service for each in died}))
        self._result.killed[frozenset(faults)] = services
        self._exploration.shut_off(self._exploration.knowledge.shut | points)
        return f"{KILLED}: {services}"

    def _leave_out(self, plan: Plan, ignored: frozenset[str]) -> None:
        """Exclude a fault that a call has met and that was not injected: there is no injector."""
        known = self._exploration.knowledge
        down = {each for each in plan.hypothesis if each.startswith(DOWN)}
        known.leave_out(
            ignored | {each for each in down if ignored & {*map(str, known.expand([each]))}}
        )
        self._result.ignored = sorted({*self._result.ignored, *ignored})

    def _result_of(self, plan: Plan, run: Run) -> ExperimentResult:
        lineage = run.lineage
        implications = frozenset(
            (f"delay@{point}", f"error@{point}") for point in lineage.timed_out
        )
        if run.passed is None or not lineage.fired:
            killed = frozenset[str]() if not run.died else plan.hypothesis
            return ExperimentResult(
                plan.hypothesis,
                None,
                implications=implications,
                purpose=plan.purpose,
                killed=killed,
            )
        if run.passed:
            return ExperimentResult(
                plan.hypothesis,
                True,
                fired=lineage.fired,
                relied_on=lineage.relied_on,
                called=lineage.called,
                survived=lineage.survived,
                implications=implications,
                purpose=plan.purpose,
                degraded=run.degraded or run.errors > self._errors,
            )
        self._failed[lineage.fired] = run
        return ExperimentResult(
            plan.hypothesis,
            False,
            fired=lineage.fired,
            suspects=frozenset(
                blame(lineage.tree, self._traffic.usual_support(), self._traffic.record())
            ),
            implications=implications,
            purpose=plan.purpose,
        )

    def _run_good(self) -> Run:
        self._result.runs += 1
        run = self._execute(())
        self._traffic.topology.learn(run.lineage)
        return run

    def _conclude(self, hurried: bool) -> None:
        result, exploration = self._result, self._exploration
        known = exploration.knowledge
        found = [faults for faults, _ in known.findings()]
        result.findings = [self._finding(faults) for faults in sorted(found, key=sorted)]
        result.refuted = [each for each, is_ in exploration.states.items() if is_ == "refuted"]
        result.certificate = known.solver_input.explorer.certificate().data
        result.never_fired = [
            frozenset(each["faults"]) for each in result.certificate["inconclusive"]
        ]
        result.out_of_bounds = self._out_of_bounds(known)
        late = {each for each, why in result.out_of_bounds.items() if why == NO_TIMEOUT}
        tried = {*result.never_fired, *(frozenset({each}) for each in result.ignored)}
        tried -= {frozenset({each}) for each in late}
        result.unfired = sorted((f for f in tried if not self._has_fired(f)), key=sorted)
        result.open = known.solver_input.explorer.open_count()
        result.open_sets = [
            frozenset(map(str, each)) for each in known.solver_input.explorer.open_hypotheses(OPEN)
        ]
        result.points = self._points(known)
        result.exhaustive = self._exhaustive()
        if result.findings or result.killed:
            result.verdict = "harmful"
        elif result.unfired or result.open or result.never_fired:
            result.verdict, result.reason = "inconclusive", self._left(hurried)

    def _left(self, hurried: bool) -> str:
        """Return why it cannot be said that nothing hurts."""
        result = self._result
        if result.unfired:
            reason = f"no fault has fired at {points_of(result.unfired, self._bounds.kinds)}"
            callers = self._without_injector()
            if not callers:
                return reason
            return (
                f"{reason}: no injector in {', '.join(callers)}, for calls there met faults that"
                " were meant for them"
            )
        if result.open > len(result.never_fired):
            when = "when the time was over" if hurried else "that the solver did not get to"
            return f"{result.open} hypotheses are left open {when}"
        if self._unseen:
            return self._unseen
        return "what was to fail in some runs was never called in them"

    def _out_of_bounds(self, known: Knowledge) -> dict[str, str]:
        """Return why faults that calls have met did not fire, and at which points no kind is
        possible. A caller without a timeout cannot see one: where something else has fired, that is
        why."""
        told = known.solver_input.out_of_bounds()
        obeyed = {_point(each) for each in self._fired}
        for each in self._result.ignored:
            waits = each.startswith("timeout@") and _point(each) in obeyed
            told[each] = NO_TIMEOUT if waits else NO_INJECTOR
        return dict(sorted(told.items()))

    def _without_injector(self) -> list[str]:
        """Return the services in which calls met faults and none was injected."""
        obeyed = {_point(each) for each in self._fired}
        # A caller without a timeout cannot have one, whoever injects
        ignored = [each for each in self._result.ignored if not each.startswith("timeout@")]
        return sorted({Point.parse(_point(f)).caller for f in ignored if _point(f) not in obeyed})

    def _has_fired(self, faults: frozenset[str]) -> bool:
        injected = self._exploration.knowledge.expand(faults)
        return not self._fired.isdisjoint(map(str, injected))

    def _finding(self, faults: frozenset[str]) -> Finding:
        injected = self._exploration.knowledge.expand(faults)
        fired = frozenset(map(str, injected))
        likest = min(self._failed, key=lambda each: (len(each ^ fired), sorted(each)))
        run = self._failed[likest]
        return Finding(faults, injected, run, self._exploration.states.get(faults) == "open")


def _ignored(faults: tuple[Fault, ...], lineage: Lineage) -> frozenset[str]:
    """Return the faults whose point was called in a run, and that were not injected."""
    fired = {_point(each) for each in lineage.fired}
    met = lineage.called - fired
    return frozenset(str(each) for each in faults if each.point in met and not each.first)


def _point(fault: str) -> str:
    return fault.partition("@")[2]


def _record(
    test: str, number: int, injected: Iterable[Fault], run: Run, result: ExperimentResult
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
        purpose=result.purpose,
        hypothesis=tuple(sorted(result.injected)),
        faults=tuple(map(str, injected)),
        outcome=outcome,
        verdict={True: "tolerated", False: "harmful", None: "inconclusive"}[result.succeeded],
        reason=run.error or run.unseen,
        began=run.began,
        ended=max(run.began, run.ended),
        fired=tuple(sorted(run.lineage.fired)),
        relied_on=tuple(sorted(result.relied_on)),
        degraded=result.degraded,
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
