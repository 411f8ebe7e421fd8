"""Quantiles of latencies with confidence intervals: order statistics, by the binomial.

No shape of the distribution is assumed. The interval of a quantile is between two of the values
that were seen: that fewer than so many lie below the true quantile is a matter of coin tossing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

LEVEL: Final = 0.95
_Z: Final = 1.959963984540054
_EXACT_BELOW: Final = 20_000
"""Values up to which the binomial is summed; beyond, its normal limit does, two ranks wider."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, and between what the true one lies with 95 %."""

    value: float
    low: float
    high: float


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of all do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def quantile_interval(ordered: Sequence[float], share: float, spread: float = 1.0) -> Interval:
    """Return a quantile of sorted values with its interval; an end is infinite, or nothing, where
    there are too few values for one. ``spread``: how much wider than by chance counts vary."""
    low, high = _ranks(len(ordered), share, spread)
    return Interval(
        quantile(ordered, share),
        ordered[low - 1] if low >= 1 else 0.0,
        ordered[high - 1] if high <= len(ordered) else math.inf,
    )


@lru_cache(maxsize=4096)
def _ranks(count: int, share: float, spread: float) -> tuple[int, int]:
    """Find the ranks (from 1) of the ends: P(B < low) and P(B >= high) are 2.5 % at most."""
    if count > _EXACT_BELOW or spread > 1.0:
        half = _Z * math.sqrt(count * share * (1 - share) * spread) + 2
        return math.floor(count * share - half), math.ceil(count * share + half) + 1
    tail = (1 - LEVEL) / 2
    summed, low, high = 0.0, 0, count + 1
    logs = math.log(share), math.log1p(-share)
    for k in range(count + 1):
        before, summed = summed, summed + _binomial(count, k, logs)
        if summed <= tail:
            low = k + 1
        if before >= 1 - tail:
            high = k
            break
    return low, high


def _binomial(count: int, k: int, logs: tuple[float, float]) -> float:
    choices = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
    return math.exp(choices + k * logs[0] + (count - k) * logs[1])


def share_interval(found: int, count: int) -> Interval:
    """Return a share with Wilson's interval."""
    if not count:
        return Interval(math.nan, 0.0, 1.0)
    share, square = found / count, _Z**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = _Z * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    half /= 1 + square / count
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def ratio_interval(new: Interval, old: Interval) -> Interval | None:
    """Return by what the quantile of one exceeds that of the other, as a share of it (0.1: a tenth
    more), from both intervals: MOVER (Donner and Zou, 2012) on logarithms. None where one is
    nothing or without end."""
    if min(new.value, old.value) <= 0 or math.inf in {new.value, old.value}:
        return None
    logs = math.log(new.value) - math.log(old.value)
    down = math.hypot(_log(new.value, new.low), _log(old.high, old.value))
    up = math.hypot(_log(new.high, new.value), _log(old.value, old.low))
    return Interval(math.expm1(logs), math.expm1(logs - down), _expm1(logs + up))


def _log(larger: float, smaller: float) -> float:
    return math.inf if smaller <= 0 or math.isinf(larger) else math.log(larger / smaller)


def _expm1(value: float) -> float:
    return math.inf if value > 700 else math.expm1(value)


def difference_interval(new: Interval, old: Interval) -> Interval:
    """Return by how much one share exceeds the other, from both intervals (Newcombe, 1998)."""
    apart = new.value - old.value
    down = math.hypot(new.value - new.low, old.high - old.value)
    up = math.hypot(new.high - new.value, old.value - old.low)
    return Interval(apart, apart - down, apart + up)
