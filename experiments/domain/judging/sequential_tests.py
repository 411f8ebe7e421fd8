"""Did the faults hurt? Two sequential tests, side by side, each valid at every peek.

One-sided two-sample e-process over blocks of one treated outcome and k of control (Turner, Ly and
Grünwald, "Generic E-variables for exact sequential k-sample tests that allow for optional
stopping", arXiv 2106.02693). Bet on rates, p₀ in control and p₁ in treatment; each block multiplies
the evidence by its likelihood under the bet divided by its likelihood under the nearest point of
the null:

- *worse*: the null is p₁ ≤ p₀, its nearest point p₀ = p₁ = (k·p₀ + p₁)/(k + 1). We bet while
  p₁ > p₀.
- *not worse by δ*: the null is p₁ ≥ p₀ + δ, its nearest point the projection of the bet, in
  Kullback-Leibler divergence, on the line p₁ = p₀ + δ. We bet while p₁ - p₀ < δ.

Under its null each product is a supermartingale that starts at one, so by Ville's inequality it
ever reaches 1/α with a chance of at most α, however often one looks.

**The bets** are what one expects before anything was seen, and move with what is: control fails
rarely, p₀ = (0.1 + f)/(10 + n); where a fault hurts it hurts nearly always, so *worse* bets on
p₁ = (0.9 + f)/(1 + n), and where it does not, hardly ever: *not worse* bets on
p₁ = (0.05 + f)/(1 + n).

**The blocks**: a treated outcome and the controls *nearest in time*, which are those since the
treated one before, the newest :data:`REACH` times as many as there usually are at most. Controls
are not hurt, so many of them are cheap, and a failure beside k good ones is worth up to e·(k + 1).
Near in time, or trouble that comes and goes in both arms would look like an effect: outcomes that
wait in a queue for a partner drift apart. Where there is no control since the last treated outcome
the next one that comes completes the block; a treated outcome still waiting then gives way.

Outcomes come in the order in which their requests began, whoever reported first
(:mod:`.experiment` sees to that): else failures that are quicker than successes would be an effect.

*Harmful* takes two failures, *tolerated* ``min_samples`` treated outcomes, besides the evidence.
Once it is *harmful* the evidence stands still. *Tolerated* never stands by itself: it is said of
all who came, those included who came after it could have been said first, so that a release in
mid-experiment is not slept through. Either way what is left is an e-process stopped at a stopping
time: an e-value, which is what :mod:`.online_fdr` needs.

:class:`ThresholdRule` is the rule that Netflix published, for those who want to compare.
"""

from __future__ import annotations

import math
from collections import deque
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self

from ldfi.experiments.domain.settings import Thresholds, VerdictRule

Verdict = Literal["harmful", "tolerated", "inconclusive"]
CurvePoint = tuple[int, float, float]

MIN_FAILURES = 2
"""Treated failures without which nothing is harmful: one may have a cause of its own."""
REACH = 3
"""A block holds at most so many times the controls that there usually are for a treated device."""
FAILED_SHARE = 0.75
"""Share of treated devices that must have failed, and more, for :class:`ThresholdRule`."""
CURVE_POINTS = 200
"""How many points of the evidence are kept for people to look at."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of both arms, and how many of them failed. Raises ValueError where more failed than
    there were."""

    control: int = 0
    control_failed: int = 0
    treated: int = 0
    treated_failed: int = 0

    def __post_init__(self) -> None:
        for failed, total in (
            (self.control_failed, self.control),
            (self.treated_failed, self.treated),
        ):
            if not 0 <= failed <= total:
                raise ValueError(f"{failed} of {total} requests failed: that cannot be")

    def since(self, before: Counts) -> Counts | None:
        """Return what was counted since ``before``; None if a counter has fallen.

        A failure may be counted a moment later than its request, but no failure without one: what
        is too many is left for the next look.
        """
        control, treated = self.control - before.control, self.treated - before.treated
        failed0 = self.control_failed - before.control_failed
        failed1 = self.treated_failed - before.treated_failed
        if min(control, treated, failed0, failed1) < 0:
            return None
        return Counts(control, min(failed0, control), treated, min(failed1, treated))

    def __add__(self, other: Counts) -> Counts:
        """Return what both count together."""
        return Counts(
            self.control + other.control,
            self.control_failed + other.control_failed,
            self.treated + other.treated,
            self.treated_failed + other.treated_failed,
        )


class Tests(Protocol):
    """What decides one experiment: feed it outcomes as they arrive, one for each device."""

    @property
    def log_worse(self) -> float:
        """Natural logarithm of the evidence that treatment is worse than control."""

    @property
    def log_not_worse(self) -> float:
        """Natural logarithm of the evidence that treatment is not worse by δ."""

    @property
    def curve(self) -> list[CurvePoint]:
        """Return how the evidence went: (treated outcomes paired so far, log₁₀ of the evidence of
        worse, log₁₀ of the evidence of not worse). Thinned out evenly, the last point always
        there."""

    def add(self, *, treated: bool, failed: bool, proved: bool = True) -> None:
        """Add one device's outcome; ignored once it is harmful. ``proved``: whether a treated
        device that went well counts for *tolerated*."""

    def look(self, more: Counts) -> None:
        """Take what somebody else has counted since the last look. Ignored once it is harmful. Of
        the order within a look nothing is known."""

    def copy(self) -> Self:
        """Make tests that know the same, and from here on go their own way."""

    def verdict(self) -> Verdict | None:
        """Return the verdict so far, if there is one. Harmful never changes."""

    def final(self) -> Verdict:
        """Return the verdict now that the window is over."""


def tests_for(rule: VerdictRule, thresholds: Thresholds, ratio: float = 1.0) -> Tests:
    """Make fresh tests for one experiment by the rule of its campaign.

    ``ratio``: how many control devices there usually are for each treated one.
    """
    sequential = rule == "sequential"
    return SequentialTests(thresholds, ratio) if sequential else ThresholdRule(thresholds)


@dataclass(slots=True)
class _Curve:
    """Every ``stride``-th point; when there are too many, the stride doubles."""

    points: list[CurvePoint] = field(default_factory=lambda: [(0, 0.0, 0.0)])
    stride: int = 1

    def copy(self) -> _Curve:
        return _Curve(self.points[:], self.stride)

    def add(self, point: CurvePoint) -> None:
        if point[0] % self.stride == 0:
            self.points.append(point)
        if len(self.points) > CURVE_POINTS:
            self.stride *= 2
            self.points = [each for each in self.points if each[0] % self.stride == 0]


@dataclass(slots=True)
class EvidenceGained:
    """What has been gained so far, and whether it is enough. ``treated`` outcomes of which
    ``failures`` failed are in it."""

    thresholds: Thresholds
    treated: int = 0
    failures: int = 0
    log_worse: float = 0.0
    log_not_worse: float = 0.0
    _curve: _Curve = field(default_factory=_Curve)

    def copy(self) -> EvidenceGained:
        """Make another that has gained the same."""
        return replace(self, _curve=self._curve.copy())

    def gain(self, treated: int, failures: int, worse: float, not_worse: float) -> None:
        """Take one block: the treated outcomes in it, and by how much either logarithm grows."""
        self.treated += treated
        self.failures += failures
        self.log_worse += worse
        self.log_not_worse += not_worse
        self._curve.add(self._now())

    def verdict(self) -> Verdict | None:
        """Return which test has reached its threshold; None while neither has.

        Both may have, for a rise between 0 and δ is worse and yet not worse by δ. That is called
        harmful: the rise is real.
        """
        if self.failures >= MIN_FAILURES and self.log_worse >= -math.log(
            self.thresholds.alpha_harmful
        ):
            return "harmful"
        enough = self.treated >= self.thresholds.min_samples
        if enough and self.log_not_worse >= -math.log(self.thresholds.alpha_tolerated):
            return "tolerated"
        return None

    @property
    def curve(self) -> list[CurvePoint]:
        """See :class:`Tests`; at most ``CURVE_POINTS`` and the last."""
        points, now = self._curve.points, self._now()
        return points[:] if points[-1][0] == now[0] else [*points, now]

    def _now(self) -> CurvePoint:
        ten = math.log(10)
        return self.treated, self.log_worse / ten, self.log_not_worse / ten


@dataclass(slots=True)
class SequentialTests:
    """The two tests of this module, fed with devices. Read the verdict whenever you like.

    ``ratio``: how many control devices there usually are for each treated one.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    ratio: float = 1.0
    _evidence: EvidenceGained = field(init=False)
    _controls: int = 0
    _control_failures: int = 0
    _since: deque[bool] = field(init=False)
    """Outcomes of control since the last treated one, the newest last."""
    _waiting: tuple[bool, bool] | None = None
    """A treated outcome beside which there was no control yet: whether it failed, and is proved."""

    def __post_init__(self) -> None:
        self._evidence = EvidenceGained(self.thresholds)
        self._since = deque(maxlen=max(1, math.ceil(REACH * self.ratio)))

    @property
    def log_worse(self) -> float:
        """See :class:`Tests`."""
        return self._evidence.log_worse

    @property
    def log_not_worse(self) -> float:
        """See :class:`Tests`."""
        return self._evidence.log_not_worse

    @property
    def curve(self) -> list[CurvePoint]:
        """See :class:`Tests`."""
        return self._evidence.curve

    def add(self, *, treated: bool, failed: bool, proved: bool = True) -> None:
        """Take one device's outcome. Evidence moves when both arms have something to compare."""
        if self.verdict() == "harmful":
            return
        if treated:
            self._waiting = failed, proved or failed
        else:
            self._since.append(failed)
        if self._waiting is not None and self._since:
            (failed, proved), self._waiting = self._waiting, None
            self._block(failed, list(self._since), proved=proved)
            self._since.clear()

    def copy(self) -> Self:
        """See :class:`Tests`."""
        other = copy(self)
        other._evidence, other._since = self._evidence.copy(), self._since.copy()
        return other

    def look(self, more: Counts) -> None:
        """Refuse counts: they have no order, and these tests need one."""
        raise TypeError(f"{more} has no order: counts are for CountedTests")

    def verdict(self) -> Verdict | None:
        """See :class:`Tests`."""
        return self._evidence.verdict()

    def final(self) -> Verdict:
        """Return the verdict, ``inconclusive`` where the window ended before the evidence came."""
        return self.verdict() or "inconclusive"

    def _block(self, failed: bool, controls: list[bool], *, proved: bool) -> None:
        seen, k, bad = self._evidence, len(controls), sum(controls)
        p0 = (0.1 + self._control_failures) / (10 + self._controls)
        worse = not_worse = 0.0
        p1 = (0.9 + seen.failures) / (1 + seen.treated)
        if p1 > p0:
            q = (k * p0 + p1) / (k + 1)
            worse = _gain(p0, q, k, bad) + _gain(p1, q, 1, failed)
        p1, delta = (0.05 + seen.failures) / (1 + seen.treated), self.thresholds.delta
        if p1 - p0 < delta:
            a = project(p0, p1, delta, k)
            not_worse = _gain(p0, a, k, bad) + _gain(p1, a + delta, 1, failed)
        if not proved:  # what proves nothing gains nothing: a smaller factor is as valid
            not_worse = min(not_worse, 0.0)
        self._controls += k
        self._control_failures += bad
        seen.gain(1, failed, worse, not_worse)


@dataclass(slots=True)
class ThresholdRule:
    """The rule published by Netflix: harmful if more than 75 % of the good samples failed.

    Alvaro, Andrus, Sanden, Rosenthal, Basiri and Hochstein, "Automating failure testing research at
    internet scale", SoCC 2016. A good sample is read here as a treated device in whose request a
    fault fired, and there must be ``min_samples`` of them. *Harmful* comes as soon as that holds;
    *tolerated* only when the window is over. The rule knows no control group, so it takes any other
    trouble for the fault's; it has no error rates, so none of ``alpha_harmful``,
    ``alpha_tolerated``, ``delta`` and the false discovery rate means anything to it.
    """

    thresholds: Thresholds = field(default_factory=Thresholds)
    treated: int = 0
    failures: int = 0

    @property
    def log_worse(self) -> float:
        """0: this rule weighs no evidence."""
        return 0.0

    @property
    def log_not_worse(self) -> float:
        """0: this rule weighs no evidence."""
        return 0.0

    @property
    def curve(self) -> list[CurvePoint]:
        """Empty: this rule weighs no evidence."""
        return []

    def add(self, *, treated: bool, failed: bool, proved: bool = True) -> None:
        """Take one device's outcome; those of control devices are ignored, and so is what proves
        nothing."""
        if treated and (proved or failed) and self.verdict() is None:
            self.treated += 1
            self.failures += failed

    def copy(self) -> Self:
        """See :class:`Tests`."""
        return copy(self)

    def look(self, more: Counts) -> None:
        """Take what was counted elsewhere; control is ignored."""
        if self.verdict() is None:
            self.treated += more.treated
            self.failures += more.treated_failed

    def verdict(self) -> Verdict | None:
        """``harmful`` once it is; never anything else before the end."""
        enough = self.treated >= self.thresholds.min_samples
        return "harmful" if enough and self.failures > FAILED_SHARE * self.treated else None

    def final(self) -> Verdict:
        """Return the verdict now that the window is over."""
        if self.treated < self.thresholds.min_samples:
            return "inconclusive"
        return self.verdict() or "tolerated"


def _gain(bet: float, null: float, total: int, failed: int) -> float:
    return failed * math.log(bet / null) + (total - failed) * math.log((1 - bet) / (1 - null))


def project(p0: float, p1: float, delta: float, k: float = 1.0) -> float:
    """Return the a in (0, 1 - δ) for which (a, a + δ) is nearest to (p₀, p₁) in KL divergence.

    ``k``: the weight of control, which is how many controls there are for each treated device. The
    derivative of k·KL(p₀ ‖ a) + KL(p₁ ‖ a + δ) rises with a and changes sign between p₀ and p₁ - δ.
    Newton's steps find where; a step that leaves the bracket is replaced by halving it.
    """
    low = max(0.0, min(p0, p1 - delta))
    high = min(1.0 - delta, max(p0, p1 - delta))
    a = (low + high) / 2
    for _ in range(60):
        b = a + delta
        va, vb = a * (1 - a), b * (1 - b)
        slope = k * (a - p0) / va + (b - p1) / vb
        if slope > 0:
            high = a
        else:
            low = a
        if abs(slope) < 1e-12 or high - low < 1e-15:
            break
        # the curvature of KL(p ‖ x) in x: p/x² + (1 - p)/(1 - x)²
        bend = k * (va - (a - p0) * (1 - 2 * a)) / va**2
        bend += (vb - (b - p1) * (1 - 2 * b)) / vb**2
        step = a - slope / bend
        a = step if low < step < high else (low + high) / 2
    return a
