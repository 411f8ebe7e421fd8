"""Two sequential tests, side by side, each valid at every peek: did the faults hurt?

One-sided two-sample e-process over blocks of one control and one treated outcome (Turner, Ly and
Grünwald, "Generic E-variables for exact sequential k-sample tests that allow for optional
stopping", arXiv 2106.02693). Bet on the rates seen so far, p₀ in control and p₁ in treatment,
smoothed by γ; each block multiplies the evidence by its likelihood under the bet divided by its
likelihood under the nearest point of the null:

- *worse*: the null is p₁ ≤ p₀, its nearest point p₀ = p₁ = (p₀ + p₁)/2. We bet while p₁ > p₀.
- *not worse by δ*: the null is p₁ ≥ p₀ + δ, its nearest point the projection of the bet, in
  Kullback-Leibler divergence, on the line p₁ = p₀ + δ. We bet while p₁ - p₀ < δ.

Under its null each product is a supermartingale that starts at one, so by Ville's inequality it
ever reaches 1/α with a chance of at most α, however often one looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["harmful", "tolerated", "inconclusive"]

GAMMA = 0.18
"""Pseudo-count of either outcome: the paper's choice for 2×2 tables."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """``alpha_harmful`` and ``alpha_tolerated`` bound the chance of either wrong verdict;
    ``delta`` is the rise in failure rate that would matter."""

    alpha_harmful: float = 1e-3
    alpha_tolerated: float = 0.05
    delta: float = 0.25


@dataclass(slots=True)
class _Arm:
    """Outcomes of one arm: those that went into a block, and those that wait for a partner."""

    failures: int = 0
    total: int = 0
    waiting: list[bool] = field(default_factory=list)

    def rate(self) -> float:
        return (self.failures + GAMMA) / (self.total + 2 * GAMMA)

    def take(self) -> bool:
        failed = self.waiting.pop(0)
        self.failures += failed
        self.total += 1
        return failed


@dataclass(slots=True)
class SequentialTests:
    """Feed outcomes in the order of their arrival; read the verdict whenever you like."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    log_worse: float = 0.0
    log_not_worse: float = 0.0
    _control: _Arm = field(default_factory=_Arm)
    _treatment: _Arm = field(default_factory=_Arm)

    def add(self, *, treated: bool, failed: bool) -> None:
        """One device's outcome. Evidence moves when both arms have an outcome to pair."""
        arm = self._treatment if treated else self._control
        arm.waiting.append(failed)
        while self.verdict() is None and self._control.waiting and self._treatment.waiting:
            self._block()

    def _block(self) -> None:
        p0, p1 = self._control.rate(), self._treatment.rate()
        failed0, failed1 = self._control.take(), self._treatment.take()
        if p1 > p0:
            q = (p0 + p1) / 2
            self.log_worse += _gain(p0, q, failed0) + _gain(p1, q, failed1)
        delta = self.thresholds.delta
        if p1 - p0 < delta:
            a = project(p0, p1, delta)
            self.log_not_worse += _gain(p0, a, failed0) + _gain(p1, a + delta, failed1)

    def verdict(self) -> Verdict | None:
        """The verdict of whichever test has reached its threshold; None while neither has."""
        if self.log_worse >= -math.log(self.thresholds.alpha_harmful):
            return "harmful"
        if self.log_not_worse >= -math.log(self.thresholds.alpha_tolerated):
            return "tolerated"
        return None


def _gain(bet: float, null: float, failed: bool) -> float:
    return math.log(bet / null) if failed else math.log((1 - bet) / (1 - null))


def project(p0: float, p1: float, delta: float) -> float:
    """The a in (0, 1 - δ) for which (a, a + δ) is nearest to (p₀, p₁) in KL divergence.

    The derivative of KL(p₀ ‖ a) + KL(p₁ ‖ a + δ) rises with a, so its zero is found by halving.
    """
    low, high = 0.0, 1.0 - delta
    for _ in range(50):
        a = (low + high) / 2
        b = a + delta
        slope = (1 - p0) / (1 - a) - p0 / a + (1 - p1) / (1 - b) - p1 / b
        if slope > 0:
            high = a
        else:
            low = a
    return (low + high) / 2
