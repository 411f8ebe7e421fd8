"""The two tests of :mod:`.verdict` for outcomes that somebody else counts: totals at each look.

A look says how many requests of either arm there were since the last one, and how many failed. Of
the order within a look nothing is known, so none is made up: the n₀ and n₁ requests of a look are
one block, and multiply the evidence by one factor that depends on the four counts alone.

For a bet (p₀, p₁) the factor is the likelihood of the counts under the bet divided by that under
the nearest point of the null (Turner, Ly and Grünwald, arXiv 2106.02693, for blocks of any sizes):

- *worse* (p₁ > p₀): p₀ = p₁ = (n₀p₀ + n₁p₁)/(n₀ + n₁);
- *not worse by δ* (p₁ < p₀ + δ): the projection on p₁ = p₀ + δ in Kullback-Leibler divergence,
  weighted by n₀ and n₁.

Its mean is at most one wherever in the null the rates are during that look, so rates may drift
from look to look. A first look may hold a thousand requests, and no single bet made beforehand
would be a good one; so many bets are made at once, on a grid, and the factor is their mean. They
are weighted by how well they told the looks before, and a part of the weight is always spread
evenly, for what was learned may cease to hold. A mean of e-variables whose weights come from the
past is an e-variable.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Final, Self

from ldfi.experiments.domain.judging.sequential_tests import (
    Counts,
    CurvePoint,
    EvidenceGained,
    Verdict,
    project,
)
from ldfi.experiments.domain.settings import Thresholds

_RATES: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
_BETS: Final = tuple((p0, p1) for p0 in _RATES for p1 in _RATES)
_SPREAD: Final = 0.05
"""The part of the weight that is spread evenly over all bets."""


@dataclass(slots=True)
class CountedTests:
    """Give it each look's counts, then read the verdict. It is one for any order within a look."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    seen: Counts = field(default_factory=Counts)
    _evidence: EvidenceGained = field(init=False)
    _waiting: Counts = field(default_factory=Counts)
    _logs: list[float] = field(default_factory=lambda: [0.0] * len(_BETS))
    """Of each bet, the log-likelihood of all looks before."""

    def __post_init__(self) -> None:
        self._evidence = EvidenceGained(self.thresholds)

    @property
    def log_worse(self) -> float:
        """See :class:`.verdict.Tests`."""
        return self._evidence.log_worse

    @property
    def log_not_worse(self) -> float:
        """See :class:`.verdict.Tests`."""
        return self._evidence.log_not_worse

    @property
    def curve(self) -> list[CurvePoint]:
        """See :class:`.verdict.Tests`."""
        return self._evidence.curve

    def copy(self) -> Self:
        """See :class:`.verdict.Tests`."""
        other = copy(self)
        other._evidence = self._evidence.copy()
        return other

    def verdict(self) -> Verdict | None:
        """See :class:`.verdict.Tests`."""
        return self._evidence.verdict()

    def final(self) -> Verdict:
        """See :class:`.verdict.Tests`."""
        return self.verdict() or "inconclusive"

    def add(self, *, treated: bool, failed: bool, proved: bool = True) -> None:
        """Take one device's outcome, as a look of its own."""
        if proved or failed or not treated:
            self.look(Counts(not treated, failed and not treated, treated, failed and treated))

    def look(self, more: Counts) -> None:
        """Add what was counted since the last look; ignored once it is harmful.

        Until both arms have requests there is nothing to compare: those of one arm alone wait.
        """
        if self.verdict() == "harmful":
            return
        block = self._waiting + more
        if not (block.control and block.treated):
            self._waiting = block
            return
        self._waiting = Counts()
        self.seen += block
        weights = self._weights()
        told = [_log_likelihood(block, p0, p1) for p0, p1 in _BETS]
        delta = self.thresholds.delta
        worse, not_worse = [], []
        for weight, likelihood, (p0, p1) in zip(weights, told, _BETS, strict=True):
            if p1 > p0:
                q = (block.control * p0 + block.treated * p1) / (block.control + block.treated)
                worse.append((weight, likelihood - _log_likelihood(block, q, q)))
            if p1 < p0 + delta:
                a = project(p0, p1, delta, block.control / block.treated)
                not_worse.append((weight, likelihood - _log_likelihood(block, a, a + delta)))
        self._evidence.gain(
            block.treated, block.treated_failed, _log_mean(worse), _log_mean(not_worse)
        )
        self._logs = [before + now for before, now in zip(self._logs, told, strict=True)]

    def _weights(self) -> list[float]:
        best = max(self._logs)
        likelihoods = [math.exp(log - best) for log in self._logs]
        total, even = sum(likelihoods), _SPREAD / len(_BETS)
        return [(1 - _SPREAD) * each / total + even for each in likelihoods]


def _log_likelihood(block: Counts, p0: float, p1: float) -> float:
    return (
        block.control_failed * math.log(p0)
        + (block.control - block.control_failed) * math.log1p(-p0)
        + block.treated_failed * math.log(p1)
        + (block.treated - block.treated_failed) * math.log1p(-p1)
    )


def _log_mean(terms: list[tuple[float, float]]) -> float:
    """Return the logarithm of a weighted mean, given logarithms."""
    best = max(log for _, log in terms)
    return best + math.log(
        sum(weight * math.exp(log - best) for weight, log in terms) / sum(w for w, _ in terms)
    )
