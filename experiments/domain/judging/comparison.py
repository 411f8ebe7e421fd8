"""Control against treatment, side by side, for people.

The intervals say how well a rate is known from so many devices, at 95 % and for a number of
devices fixed beforehand. They decide nothing: an experiment stops as soon as its evidence is
enough, and for that only the tests of :mod:`ldfi.experiments.domain.judging.sequential_tests` are
valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Standard deviations that a normal variable stays within with that confidence."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ArmSample:
    """What one arm saw: ``devices`` that counted, ``failures`` among them, and how long requests
    took, in seconds. Raises ValueError when more failed than there were."""

    devices: int
    failures: int
    durations: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.failures <= self.devices:
            raise ValueError(f"{self.failures} failures in {self.devices} devices")


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds that half, 95 % and 99 % of the requests took at most."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm. Rate and interval are None without devices, ``latency`` without durations."""

    devices: int
    failures: int
    failure_rate: float | None
    failure_rate_interval: Interval | None
    latency: Latency | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both arms; ``difference`` is treatment's failure rate less control's, None where an arm has
    no devices."""

    control: ArmSummary
    treatment: ArmSummary
    difference: float | None
    difference_interval: Interval | None
    confidence: float = field(default=CONFIDENCE)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and None; durations in seconds."""
        document: dict[str, Any] = _plain(asdict(self))
        return document


def compare(control: ArmSample, treatment: ArmSample) -> Comparison:
    """Put the two arms of an experiment beside each other."""
    left, right = _summary(control), _summary(treatment)
    if left.failure_rate is None or right.failure_rate is None:
        return Comparison(left, right, None, None)
    difference = right.failure_rate - left.failure_rate
    return Comparison(left, right, difference, newcombe(control, treatment))


def wilson(arm: ArmSample) -> Interval:
    """Return Wilson's score interval of a failure rate; it stays sensible at 0 and at all of a few.

    Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22 (1927). Raises ValueError without devices.
    """
    if not arm.devices:
        raise ValueError("a rate needs devices")
    good = arm.devices - arm.failures
    middle = arm.failures + Z * Z / 2
    half = Z * math.sqrt(arm.failures * good / arm.devices + Z * Z / 4)
    whole = arm.devices + Z * Z
    low = (middle - half) / whole if arm.failures else 0.0  # exactly, not but for rounding
    return low, (middle + half) / whole if good else 1.0


def newcombe(control: ArmSample, treatment: ArmSample) -> Interval:
    """Of the difference of two failure rates: the hybrid of their score intervals, method 10 in
    Newcombe, "Interval estimation for the difference between independent proportions: comparison of
    eleven methods", Statistics in Medicine 17 (1998)."""
    p0, (low0, high0) = control.failures / control.devices, wilson(control)
    p1, (low1, high1) = treatment.failures / treatment.devices, wilson(treatment)
    return (
        p1 - p0 - math.hypot(p1 - low1, high0 - p0),
        p1 - p0 + math.hypot(high1 - p1, p0 - low0),
    )


def _summary(arm: ArmSample) -> ArmSummary:
    latency = _latency(arm.durations)
    if not arm.devices:
        return ArmSummary(0, 0, None, None, latency)
    rate = arm.failures / arm.devices
    return ArmSummary(arm.devices, arm.failures, rate, wilson(arm), latency)


def _latency(durations: Sequence[float]) -> Latency | None:
    if not durations:
        return None
    ordered = sorted(durations)
    return Latency(*(_quantile(ordered, percent) for percent in (50, 95, 99)))


def _quantile(ordered: Sequence[float], percent: int) -> float:
    """Find the smallest measured duration that this share of requests did not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, tuple) else value


def differ(some: int, total: int, others: int, of: int, level: float) -> bool:
    """Return whether ``some`` of ``total`` is another share than ``others`` of ``of``.

    Fisher's exact test, two-sided: as unlikely, or less so, are tables whose probability, both
    margins given, is at most that of this one (Fisher, "The logic of inductive inference", 1935).
    """
    ways = _ways(some + others, total, of)
    here = ways[some]
    return sum(each for each in ways.values() if each <= here) / sum(ways.values()) < level


def more(some: int, total: int, others: int, of: int, level: float) -> bool:
    """Return whether ``some`` of ``total`` is a larger share: the same test, one-sided."""
    ways = _ways(some + others, total, of)
    as_many = sum(each for k, each in ways.items() if k >= some)
    return as_many / sum(ways.values()) < level


def _ways(drawn: int, total: int, of: int) -> dict[int, int]:
    """Return, for each count from the first group, the number of ways to draw so many from both."""
    return {
        k: math.comb(total, k) * math.comb(of, drawn - k)
        for k in range(max(0, drawn - of), min(total, drawn) + 1)
    }


def exceeds(some: int, total: int, limit: float, level: float = 0.01) -> bool:
    """Return whether ``some`` of ``total`` is significantly above a share of ``limit`` (exact
    binomial test, one-sided)."""
    return some > limit * total and level > sum(
        math.exp(_log_comb(total, k) + k * math.log(limit) + (total - k) * math.log1p(-limit))
        for k in range(some, total + 1)
    )


def _log_comb(total: int, k: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1)
