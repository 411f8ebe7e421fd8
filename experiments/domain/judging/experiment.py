"""One experiment: a hypothesis, tried on one request class, beside a control group, for seconds.

    proposed ─▶ waiting ─▶ armed ─▶ observing ─▶ settling ─▶ decided  (harmful, tolerated,
                   │         │          │            │                  inconclusive)
                   └─────────┴──abort───┴────────────┴─────▶ aborted  (with a reason)

*Waiting*: for a gate to open or for an approval. *Armed*: the rule is out, no edge has fetched it
yet. *Observing*: an edge has. *Settling*: disarmed, but edges have to confirm that and devices may
report late; only then is it known how many members were exposed. Whatever was armed passes through
settling, aborted or not.

Treated requests in which a fault fired are compared with control requests in which one *would
have* fired, never with all: filtering one arm alone would break the randomisation. Each device
counts once, with its first such request, whichever it reports first; beside that, with all that it
did while it took part (:mod:`.stays`). What comes in while it settles still counts; what comes
later changes no verdict.

**The order.** A failure may be quicker to report than a success, or slower, and only outcomes that
are exchangeable may be fed to the tests. So the tests are always fed in the order in which the
requests began (``Ordered``), whoever was first to report. *When to stop* goes by those who have
reported so far; *the verdict* is given when everybody who began has reported or has had ``settle``
seconds to do so since the last edge stopped. What was admitted is all that counts; and that
admission stopped is decided by requests that began earlier, so the e-value is one at a stopping
time all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from ldfi.checker.record import BothReports, Overruled
from ldfi.experiments.domain.judging import two_slots
from ldfi.experiments.domain.judging.admission import (
    Stages,
    first,
    following,
    least_lacking,
    still_lacking,
)
from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.judging.comparison import (
    ArmSample,
    Comparison,
    compare,
    exceeds,
)
from ldfi.experiments.domain.judging.counted_outcomes import CountedTests
from ldfi.experiments.domain.judging.edge_shares import EdgeShare
from ldfi.experiments.domain.judging.judgement import (
    JudgingContext,
    Unproved,
    asking_seldom,
    judge,
    seldom_unshown,
)
from ldfi.experiments.domain.judging.killed_process import KILLED, Instances, in_words
from ldfi.experiments.domain.judging.missing_reports import (
    RollCall,
    hopeless,
    missing_reports,
    part_shown,
    reports,
    shown,
)
from ldfi.experiments.domain.judging.ordered_outcomes import Ordered
from ldfi.experiments.domain.judging.participation import Stays
from ldfi.experiments.domain.judging.reachability import Reachability
from ldfi.experiments.domain.judging.sequential_tests import Counts, Tests, Verdict, tests_for
from ldfi.experiments.domain.judging.two_slots import Opening
from ldfi.experiments.domain.judging.verdict_inputs import VerdictInputs
from ldfi.experiments.domain.settings import LONGEST_WINDOW, Settings
from ldfi.experiments.domain.traffic.cut_traces import cut
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.request_frequency import Frequency
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.killed_process import Death, deaths
from ldfi.lineage.requested_faults import as_asked

ExperimentState = Literal[
    "proposed", "waiting", "armed", "observing", "settling", "decided", "aborted"
]
Purpose = Literal["explore", "confirm", "verify", "repeat", "recheck"]

ACTIVE: frozenset[ExperimentState] = frozenset({"armed", "observing", "settling"})
"""The states in which something may still be injected somewhere."""

LONGER = 2
"""An experiment observes for longer by so many stays of a device."""

MAX_DURATIONS = 1_000
"""Durations kept of each arm, for its percentiles: an arm is far smaller."""


@dataclass(slots=True)
class ArmCount:
    """Devices that counted in one arm, and how many of them saw a failure while they took part."""

    devices: set[str] = field(default_factory=set)
    failures: int = 0
    durations: list[float] = field(default_factory=list)
    elsewhere: int = 0
    """Requests that somebody else has counted (PromQL), instead of devices."""

    def add(self, observation: Observation) -> None:
        """Count a device once."""
        outcome = observation.outcome
        if outcome.device in self.devices:
            return
        self.devices.add(outcome.device)
        if outcome.duration > 0 and len(self.durations) < MAX_DURATIONS:
            self.durations.append(outcome.duration)

    def rate(self) -> float:
        """Share of devices that saw a failure; 0 where there are none."""
        return self.failures / self.total if self.total else 0.0

    @property
    def total(self) -> int:
        """Return how many counted."""
        return len(self.devices) + self.elsewhere

    def sample(self) -> ArmSample:
        """Return the same for a comparison."""
        return ArmSample(self.total, self.failures, tuple(self.durations))


@dataclass(slots=True)
class Experiment:
    """``hypothesis`` holds the solver's variables, ``faults`` what is injected for them.

    ``level``: the chance of a false ``harmful`` that it may run (e-LOND; see ``online_fdr``).
    ``risk``: how many members it may hurt, as far as one can tell beforehand.
    ``version``: of its class when it was proposed; ``open_before``: its campaign's hypotheses then.
    """

    id: str
    request_class: str
    predicate: Predicate
    hypothesis: frozenset[str]
    faults: tuple[Fault, ...]
    settings: Settings
    purpose: Purpose = "explore"
    level: float | None = None
    unsure: bool = False
    """Whether a fault may kill the process, as far as anybody knows: then one device goes first."""
    opening: Opening | None = None
    """Of one that confirms: what the first slot left."""
    lead: frozenset[str] = frozenset()
    """Faults to which the first failure of a union points: it was stopped to try them alone."""
    risk: float = 0.0
    version: int = 1
    open_before: int | None = None
    state: ExperimentState = "proposed"
    created_at: float = 0.0
    armed_at: float | None = None
    disarmed_at: float | None = None
    ended_at: float | None = None
    verdict: Verdict | None = None
    reason: str = ""
    approved_by: str | None = None
    used: int = 0
    """Devices that the edges have treated."""
    controls: int = 0
    """Devices that the edges have enrolled in control, as far as they have said."""
    enrolled: int | None = None
    """The same when it is over; None where some of them do not say."""
    shares: tuple[EdgeShare, ...] = ()
    """What each of them was given and has used, the largest first."""
    arms: dict[Arm, ArmCount] = field(
        default_factory=lambda: {"treatment": ArmCount(), "control": ArmCount()}
    )
    exposed: set[str] = field(default_factory=set)
    hurt: set[str] = field(default_factory=set)
    passed_by: set[str] = field(default_factory=set)
    """Treated devices in whose requests no fault fired."""
    spared: set[str] = field(default_factory=set)
    """Control devices in whose requests none would have."""
    reach: Reachability = field(default_factory=Reachability)
    bystanders: Bystanders = field(default_factory=Bystanders)
    instances: Instances = field(default_factory=Instances)
    good: list[Observation] = field(default_factory=list)
    bad: list[Observation] = field(default_factory=list)
    undisturbed: Observation | None = None
    """A control request that went right although a fault would have fired: what to compare with."""
    elsewhere: Counts = field(default_factory=Counts)
    """What somebody else has counted so far (PromQL), instead of devices."""
    kept: VerdictInputs = field(default_factory=VerdictInputs)
    """What its verdict came from, for the record."""
    overruled: Overruled | None = None
    """Why its verdict is not what the tests say, where it is not."""
    holds: float = math.inf
    """Seconds for which its failure contexts are sure to hold, from the request's arrival."""
    frequency: Frequency = field(default_factory=Frequency)
    """How often the devices of its class ask."""
    asked: dict[str, int] = field(default_factory=dict)
    """Device → how many of its requests were known of when it was heard of first."""
    heard: BothReports | None = None
    """Who was heard of when its verdict was given, of those by whom it was judged."""
    rare: list[bool] | None = None
    """Which of those that counted then ask seldom; None where they do not matter."""
    stay: float = 0.0
    """Seconds for which a device takes part, from its first request that counts; 0: its later
    requests are not looked at."""
    unproved: Unproved = field(default_factory=Unproved)
    cut: int = 0
    """Treated requests whose trace had a hole: they count only where it shows what has fired."""
    _torn: list[Observation] = field(default_factory=list)
    """Those of them that failed."""
    _treated: int = 0
    _aborting: bool = False
    _quiet_since: float | None = None
    """When the last edge had stopped for sure."""
    _admitted: tuple[int, float] = 0, -math.inf
    """How many devices were let in, and when the last of them was."""
    follows: bool = False
    """Whether it is all over but for the devices that still take part."""
    _stages: Stages = field(default_factory=Stages)
    _roll: RollCall = field(default_factory=RollCall)

    order: Ordered = field(init=False)
    """What devices count with, their first requests."""
    stays: Stays = field(init=False)

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.order, own = (Ordered(self._fresh_tests(), self.settings.settle) for _ in range(2))
        self.stays = Stays(self.order, own, self.stay)

    @property
    def tests(self) -> Tests:
        """Return the tests of first requests, fed with all outcomes counted so far."""
        return self.order.tests

    @property
    def active(self) -> bool:
        """Return whether it may still be injected somewhere."""
        return self.state in ACTIVE

    @property
    def over(self) -> bool:
        """Return whether it is decided or aborted."""
        return self.state in {"decided", "aborted"}

    def wait(self, reason: str) -> None:
        """Have it wait, for it may not start now; ``reason`` says why."""
        self.state, self.reason = "waiting", reason

    def arm(
        self, now: float, level: float = 1.0, holds: float = math.inf, stay: float = 0.0
    ) -> None:
        """Note that it is armed: a false ``harmful`` has a chance of at most ``level``. ``holds``:
        seconds that its failure contexts are sure to; ``stay``: that each device takes part."""
        self.holds, self.stay = holds, stay
        self.state, self.reason, self.armed_at, self.level = "armed", "", now, level
        self._begin()

    def taken(self) -> None:
        """Note that an edge has fetched its rule."""
        if self.state == "armed":
            self.state = "observing"

    def observe(self, observation: Observation) -> None:
        """Take in one request that carried this experiment's failure context."""
        self.instances.settle(observation.lineage.trace_id, deaths(observation.lineage.trace.spans))
        lineage, outcome = as_asked(observation.lineage, self.faults), observation.outcome
        observation = replace(observation, lineage=lineage)
        treated, torn = lineage.arm == "treatment", cut(lineage)
        known = self.frequency.add(outcome.device, lineage.start / 1e9)
        self.asked.setdefault(outcome.device, known)
        if lineage.trace_id in self.kept:  # its device has contradicted itself, for the worse
            self._forget(lineage.trace_id)
        else:
            self._treated += treated and not torn
        met = bool(lineage.fired)
        # who met a fault that was meant for another is no control
        reached = met if treated else bool(lineage.would_fire) and not met
        self._look_around(observation, treated, reached)
        if not self.active:
            return
        arm: Arm = "treatment" if treated else "control"
        request = (arm, outcome.device, lineage.start, lineage.trace_id)
        self.reach.add(*request, reached=reached, again=lineage.again)
        if not reached:
            (self.passed_by if treated else self.spared).add(outcome.device)
            return
        self.kept.add(observation)
        self._learn(observation, treated, torn)
        if self.settings.promql is not None:
            return
        counted = (lineage.start, lineage.trace_id, treated, not outcome.success)
        if self.stays.take(outcome.device, counted, again=lineage.again):
            self.arms[arm].add(observation)
        self._recount(outcome.device)

    def _look_around(self, observation: Observation, treated: bool, reached: bool) -> None:
        """See who was hurt by it, drawn or not."""
        outcome, fired = observation.outcome, bool(observation.lineage.fired)
        if treated and fired:
            self.exposed.add(outcome.device)
            self.bystanders.treat(observation)
            if not outcome.success:
                self.hurt.add(outcome.device)
        elif not treated:
            self.bystanders.look(observation, self.points)
        if treated or not fired:
            self.follow(observation)
        apart = not (treated and reached) and not self.stays.follows(outcome.device)
        if apart and self.bystanders.knows(self.request_class):
            self.bystanders.add(
                self.request_class, outcome.device, success=outcome.success, reached=reached
            )

    def _learn(self, observation: Observation, treated: bool, torn: bool) -> None:
        """Take the evidence of a request in which a fault fired, or would have."""
        success = observation.outcome.success
        if treated:
            self.unproved.look(observation, self.holds, followed=self.stay > 0)
        if treated and torn and success:
            self.stays.doubt(observation.lineage.trace_id)
        elif treated:
            (self.good if success else self._torn if torn else self.bad).append(observation)
        elif success and self.undisturbed is None and not torn:
            self.undisturbed = observation

    def follow(self, observation: Observation) -> None:
        """Take in a request of any class, for the sake of its device, which may take part. Not one
        that is treated under another experiment."""
        outcome = observation.outcome
        if self.stay and self.active and not outcome.success:
            self.stays.fail(outcome.device, observation.lineage.start)
            self._recount(outcome.device)

    def _recount(self, device: str) -> None:
        for arm, count in self.arms.items():
            count.failures = self.stays.own.failures[arm == "treatment"]
        if device in self.exposed and self.stays.lost(device):
            self.hurt.add(device)

    def _forget(self, trace_id: str) -> None:
        """Drop the evidence of a request whose worse outcome comes now."""
        self.good = [each for each in self.good if each.lineage.trace_id != trace_id]
        self.bad = [each for each in self.bad if each.lineage.trace_id != trace_id]
        self._torn = [each for each in self._torn if each.lineage.trace_id != trace_id]
        self.unproved.forget(trace_id)
        if self.undisturbed is not None and self.undisturbed.lineage.trace_id == trace_id:
            self.undisturbed = None

    def lose(self, arm: str, trace_id: str = "", died: Iterable[Death] = ()) -> None:
        """Note that the trace of one request under this experiment had a hole. ``died``: processes,
        as far as it tells."""
        self.cut += arm == "treatment"
        self.instances.settle(trace_id, died)

    def count(self, totals: Counts) -> None:
        """Take counts of both arms that were made elsewhere (``settings.promql``).

        A counter that falls was reset; what it says now cannot be compared and is left out.
        """
        more = totals.since(self.elsewhere)
        if not self.active or more is None:
            return
        self.tests.look(more)
        self.kept.look(more)
        self.elsewhere += more
        _count_elsewhere(self.arms, self.elsewhere)

    def outstanding(self) -> int:
        """Treated devices that have not reported yet, as far as the edges' counts are known."""
        return max(0, self.used - len((self.exposed | self.passed_by) - self.order.owed))

    def awaited(self) -> int | None:
        """Return how many control devices have not reported yet; None if unknown."""
        heard = len(self.arms["control"].devices | self.spared)
        return None if self.enrolled is None else max(0, self.enrolled - heard)

    def admission(self, now: float, *, traces: float = 0.0) -> int:
        """Return how many devices may be treated in all, given how those so far have fared.

        Who has not reported ``settle`` seconds after the last was let in, or ``traces`` if that is
        longer, is not waited for.
        """
        settings, stages, treated = self.settings, self._stages, self.arms["treatment"]
        if settings.admission == "all" or settings.promql is not None:
            return settings.members
        alone = 1 if self.unsure else first(len(self.hypothesis), settings.max_size)
        stages.allowed = stages.allowed or alone
        if self.instances.awaited(now):
            return min(stages.allowed, settings.members)
        full = self.used >= stages.allowed and not self.order.calm
        if full and stages.over(now, self.outstanding(), max(settings.settle, traces)):
            # none where it is as many as in control, of which there has to be one to compare with
            compared = bool(self.arms["control"].total)
            failed = 0 if compared and self.stays.calm else treated.failures
            known, count = self.stays.not_worse, treated.total
            lacking = least_lacking(known, count, settings)
            stages.allowed = following(self.used, count, failed, lacking)
        return min(stages.allowed, settings.members)

    def review(self, now: float, *, exhausted: bool = False) -> bool:
        """Return whether it has to be disarmed now: True once, when it goes from observing to
        settling.

        ``exhausted``: every device that it may treat has been treated.
        """
        if self.state not in {"armed", "observing"} or self.armed_at is None:
            return False
        control, failed = self.arms["control"], self.order.failures[False]
        self._release(now)
        self._note_admitted(now)
        if self.instances.killed():
            return self.stop(KILLED, now)
        if exceeds(failed, max(control.total, self.controls), self.settings.guardrail):
            share = failed / max(1, control.total)
            return self.abort(f"{share:.0%} of control devices saw failures", now)
        if self._has_evidence(now):
            return self.stop("evidence", now)
        if exhausted and not self.outstanding():
            return self.stop("members used up", now)
        if now >= self.armed_at + _window(self):
            return self.stop("window over", now)
        return False

    def abort(self, reason: str, now: float) -> bool:
        """Stop without a verdict; True when it has to be disarmed for that."""
        if self.over:
            return False
        self.reason = reason
        if self.state in {"armed", "observing"}:
            self.state, self.disarmed_at, self._aborting = "settling", now, True
            return True
        if self.state == "settling":
            self._aborting = True
        else:
            self.state, self.ended_at = "aborted", now
        return False

    def stop(self, reason: str, now: float) -> bool:
        """Disarm it; the verdict on what was seen follows as soon as it is settled."""
        self.state, self.reason, self.disarmed_at = "settling", reason, now
        return True

    def fail(self, reason: str, now: float) -> None:
        """Withdraw the verdict: what was seen cannot be judged."""
        self.state, self.verdict, self.reason, self.ended_at = "aborted", None, reason, now

    def settle(self, now: float, *, disarmed: bool, traces: float = 0.0) -> bool:
        """End it when nothing is outstanding; True once, when it has just ended.

        ``disarmed``: every edge has confirmed, or its lease has run out. ``traces``: seconds that
        a trace may take until it is whole: whoever is awaited has as long.
        """
        if self.state != "settling" or self.disarmed_at is None or not disarmed:
            return False
        self._quiet_since = now if self._quiet_since is None else self._quiet_since
        self._note_admitted(now)
        everybody = not self.outstanding() and (
            self._aborting or (self.awaited() == 0 and self.order.patient)
        )
        if not everybody and now < self._quiet_since + max(self.settings.settle, traces):
            return False
        if self.instances.awaited(now):
            return False
        self.follows = not _certain(self)
        over = self._admitted[1] + self.stay + max(self.settings.settle, traces)
        if self.follows and now < over:
            return False
        self.ended_at = now
        if self._aborting and not self.instances.killed():
            self.state = "aborted"
            return True
        self._release(math.inf)
        self.state, self.verdict = "decided", _verdict(self)
        if self.verdict == "inconclusive":
            self.reason += _missed(self)
        return True

    def _has_evidence(self, now: float) -> bool:
        """Return whether to stop. Silence of the treated asks for more devices."""
        if self.settings.promql is not None:  # who counts elsewhere waits for nobody
            return self.order.enough(now, self.stays.verdict(), everybody=True, patience=0.0)
        heard = len(self.arms["control"].devices | self.spared)
        everybody = not self.outstanding() and heard >= self.controls > 0 and self.order.patient
        everybody, patience = everybody and not self.stay, self.stay + self.settings.settle
        stays_verdict = self.stays.verdict()
        enough = self.order.enough(now, stays_verdict, everybody=everybody, patience=patience)
        self._roll.call(now, self.used, self.controls, calm=self.order.calm)
        if not enough or not self.order.calm or self.used >= self.settings.members:
            return enough
        part = _part_shown(self)
        if part is None:
            return True
        self._roll.doubts = True
        self._stages.allowed = max(self._stages.allowed, still_lacking(self.used, part))
        self.order.doubt()
        return False

    def _note_admitted(self, now: float) -> None:
        if self.used > self._admitted[0]:
            self._admitted = self.used, now

    def _release(self, now: float) -> None:
        """Count the devices that were put off for long enough."""
        for device, treated in self.stays.release(now):
            self.arms["treatment" if treated else "control"].devices.add(device)
            self._recount(device)

    def _fresh_tests(self) -> Tests:
        settings, share = self.settings, 2 if self.stay else 1  # two tests share one α
        thresholds = replace(settings, alpha_harmful=self.alpha / share)
        if settings.promql is not None and settings.rule == "sequential":
            return CountedTests(thresholds)
        return tests_for(settings.rule, thresholds, settings.control / settings.treatment)

    @property
    def points(self) -> frozenset[str]:
        """Return where it injects."""
        return frozenset(fault.point for fault in self.faults)

    @property
    def alpha(self) -> float:
        """The chance of a false ``harmful`` that this experiment runs."""
        return two_slots.risked(self.purpose, self.settings, self.level, self.opening)


def comparison_of(experiment: Experiment) -> Comparison:
    """Control against treatment."""
    return compare(experiment.arms["control"].sample(), experiment.arms["treatment"].sample())


def killed_by(experiment: Experiment) -> frozenset[str]:
    """Return what of an experiment's hypothesis killed a process, as far as one can tell; empty
    where nothing did. Where a system was down as a whole, the faults instead."""
    points = experiment.instances.points()
    named = {each for each in experiment.hypothesis if each.partition("@")[2] in points}
    rest = points - {each.partition("@")[2] for each in named}
    return frozenset({*named, *(str(each) for each in experiment.faults if each.point in rest)})


def _later(experiment: Experiment) -> str:
    """Return a message that devices failed later than with their first requests."""
    control, treated = experiment.arms["control"], experiment.arms["treatment"]
    return (
        f"with their first requests or within {experiment.stay:.0f} s after them "
        f"{treated.failures} of {treated.total} treated devices failed, {control.failures} of "
        f"{control.total} in control"
    )


def _verdict(experiment: Experiment) -> Verdict:
    """Return the verdict: see *the order*, above."""
    told, counted = experiment.stays.final(), experiment.settings.promql is not None
    unproved = experiment.unproved.words(experiment.stays, experiment.holds, counted=counted)
    if told == "harmful" and experiment.tests.final() != told:
        experiment.reason = _later(experiment)
    experiment.rare = _seldom(experiment)
    silent, known = None, experiment.enrolled is not None
    if not counted:
        everybody, settings = _reports(experiment), experiment.settings
        reach, own = experiment.reach, experiment.stays.own
        by = experiment._roll.enough(reach, own, everybody, settings)
        experiment.heard = by if told == "tolerated" else everybody
        silent = missing_reports(everybody, settings, told, by, known=known)
    experiment.bad = experiment.bad or experiment._torn  # what failed may be in none of the others
    context = JudgingContext(
        fired=bool(experiment.arms["treatment"].total and experiment.exposed),
        hurt=experiment.bystanders.hurt,
        silent=silent,
        fallen=experiment.reach.fallen() if told == "tolerated" else None,
        killed=in_words(experiment.instances.killed()),
        seldom=seldom_unshown(experiment.stays, experiment.rare) if told == "tolerated" else None,
        **unproved,
    )
    verdict, experiment.reason, experiment.overruled = judge(told, experiment.reason, context)
    return verdict


def _window(experiment: Experiment) -> float:
    """Return how long it observes, in seconds: as long as any may where the tests have said
    *tolerated* and only what they do not see is still to be shown."""
    window = experiment.settings.window + LONGER * experiment.stay
    return max(window, LONGEST_WINDOW) if experiment._roll.doubts else window


def _part_shown(experiment: Experiment) -> float | None:
    """Return what part there is of the evidence for *tolerated* that the tests do not see, of
    silence or of devices that ask seldom; None where it is enough, or never will be."""
    settings, stays = experiment.settings, experiment.stays
    both = experiment._roll.read(experiment.reach, stays.own, settings)
    if not shown(both, settings):
        return None if hopeless(both, settings) else part_shown(both, settings)
    seldom = _seldom(experiment)
    alone = stays if seldom is None else stays.only(seldom)
    if alone.final() == "tolerated":
        return None
    return alone.not_worse / -math.log(settings.alpha_tolerated)


def _seldom(experiment: Experiment) -> list[bool] | None:
    if experiment.settings.promql is not None:
        return None
    delta = experiment.settings.delta
    return asking_seldom(experiment.frequency, experiment.asked, experiment.order, delta)


def _reports(experiment: Experiment) -> BothReports:
    """Return how many devices reported, of those that edges enrolled."""
    control = experiment.enrolled if experiment.state == "settling" else experiment.controls
    return reports(experiment.reach, experiment.stays.own, experiment.used, control)


def _certain(experiment: Experiment) -> bool:
    """Return whether further reports can no longer change the verdict."""
    decided = experiment._aborting or experiment.lead or experiment.instances.killed()
    return not experiment.stay or bool(decided) or experiment.order.verdict() == "harmful"


def _missed(experiment: Experiment) -> str:
    """Return what an inconclusive experiment could not see, beyond its reason."""
    missed = ""
    exposed = len(experiment.exposed)
    past = len(experiment.passed_by - experiment.exposed)
    if past > exposed > 0 and experiment.overruled is None:
        missed += f"; {past} of {past + exposed} treated devices never reached the point"
    if experiment.cut:
        of = experiment.cut + experiment._treated
        missed += f"; {experiment.cut} of {of} treated traces were cut: spans are missing"
    return missed


Arms = dict[Arm, ArmCount]


def _count_elsewhere(arms: Arms, counts: Counts) -> None:
    control, treatment = arms["control"], arms["treatment"]
    control.elsewhere, control.failures = counts.control, counts.control_failed
    treatment.elsewhere, treatment.failures = counts.treated, counts.treated_failed
