"""One experiment: a hypothesis, tried on one request class, beside a control group, for seconds.

    proposed ──arm──▶ armed ──decide──▶ decided (harmful, tolerated, inconclusive)
        └───────────────┴────abort────▶ aborted (with a reason)

Treated requests in which a fault fired are compared with control requests in which one *would
have* fired, never with all: filtering one arm alone would break the randomisation. Each device
counts once, with its first such request. Requests that come in after the decision change no
verdict, but every exposed device is still counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from experiments.domain.observation import Observation
from experiments.domain.request_class import RequestClass
from experiments.domain.settings import Settings
from experiments.domain.verdict import SequentialTests, Verdict
from fit.context import Arm
from fit.faults import Fault
from fit.rules import Rule

State = Literal["proposed", "armed", "decided", "aborted"]

GUARDRAIL_SAMPLES = 10
GUARDRAIL_FAILURES = 0.3
"""More than this share of failures among control devices: something else is wrong; stop."""


@dataclass(slots=True)
class ArmCount:
    """Devices that counted in one arm, and how many of them saw a failure."""

    devices: set[str] = field(default_factory=set)
    failures: int = 0

    def rate(self) -> float:
        """Share of devices that saw a failure; 0 where there are none."""
        return self.failures / len(self.devices) if self.devices else 0.0


@dataclass(slots=True)
class Experiment:
    """``hypothesis`` holds the solver's variables, ``faults`` what is injected for them."""

    id: str
    request_class: RequestClass
    hypothesis: frozenset[str]
    faults: tuple[Fault, ...]
    settings: Settings
    state: State = "proposed"
    armed_at: float | None = None
    ended_at: float | None = None
    verdict: Verdict | None = None
    reason: str = ""
    arms: dict[Arm, ArmCount] = field(
        default_factory=lambda: {"treatment": ArmCount(), "control": ArmCount()}
    )
    exposed: set[str] = field(default_factory=set)
    hurt: set[str] = field(default_factory=set)
    passed_by: set[str] = field(default_factory=set)
    good: list[Observation] = field(default_factory=list)
    bad: list[Observation] = field(default_factory=list)
    tests: SequentialTests = field(init=False)

    def __post_init__(self) -> None:
        self.tests = SequentialTests(self.settings.thresholds)

    def arm(self, now: float) -> Rule:
        """Arm it; the rule is for the edge."""
        self.state = "armed"
        self.armed_at = now
        return Rule(
            experiment=self.id,
            salt=self.id,
            predicate=self.request_class.predicate,
            treatment=self.settings.treatment,
            control=self.settings.control,
            faults=self.faults,
            delay_ms=int(self.settings.delay * 1000),
        )

    def observe(self, observation: Observation) -> None:
        """Take in one request that carried this experiment's failure context."""
        lineage, outcome = observation.lineage, observation.outcome
        treated = lineage.arm == "treatment"
        if treated and lineage.fired:
            self.exposed.add(outcome.device)
            if not outcome.success:
                self.hurt.add(outcome.device)
        if self.state != "armed":
            return
        if not (lineage.fired if treated else lineage.would_fire):
            if treated:
                self.passed_by.add(outcome.device)
            return
        if treated:
            (self.good if outcome.success else self.bad).append(observation)
        count = self.arms["treatment" if treated else "control"]
        if outcome.device in count.devices:
            return
        count.devices.add(outcome.device)
        count.failures += not outcome.success
        self.tests.add(treated=treated, failed=not outcome.success)

    def review(self, now: float) -> bool:
        """Decide when there is something to decide; True when the experiment has just ended."""
        if self.state != "armed" or self.armed_at is None:
            return False
        control = self.arms["control"]
        if len(control.devices) >= GUARDRAIL_SAMPLES and control.rate() > GUARDRAIL_FAILURES:
            self.abort(f"{control.rate():.0%} of control devices saw failures", now)
            return True
        verdict = self.tests.verdict()
        if verdict is not None:
            return self._decide(verdict, "evidence", now)
        if now >= self.armed_at + self.settings.window:
            why = "window over" if self.arms["treatment"].devices else "no fault fired"
            return self._decide("inconclusive", why, now)
        return False

    def abort(self, reason: str, now: float) -> None:
        """Stop without a verdict."""
        self.state, self.reason, self.ended_at = "aborted", reason, now

    def _decide(self, verdict: Verdict, reason: str, now: float) -> bool:
        self.state, self.verdict, self.reason, self.ended_at = "decided", verdict, reason, now
        return True
