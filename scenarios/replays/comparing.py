"""Two versions compared, class by class: success and the quantiles of latency. Pure.

A quantile is compared by *exceedances*: of all latencies of both versions together the quantile is
taken, and it is counted how many of each version's are beyond it. If the versions are alike, the
one's count is that of a draw without choosing, whatever shape latencies have: the hypergeometric
distribution is exact for that, as long as requests are independent. They are not: what stands still
for a second delays hundreds in a row. So the time of the run is cut into :data:`BLOCKS`, and the
difference must also stand out from how it varies from block to block (Student's t; of the
differences within blocks where both versions were asked in turns, else of each version's own). The
larger of both chances counts.

Two versions that were asked in turns shared the noise. There the quantiles of each class in each
short turn are asked as well (:mod:`ldfi.scenarios.replays.latency_test`), and the smaller of the
two chances counts, doubled: a standstill shows in the whole run, a heavier tail turn by turn.

Any difference at all is claimed falsely with at most 5 %, over all classes and metrics together:
Holm's procedure, half of the level for all classes as one, half for each by itself.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, Literal

from ldfi.scenarios.replays.distributions import holm, hypergeometric, student
from ldfi.scenarios.replays.intervals import (
    Interval,
    difference_interval,
    quantile,
    quantile_interval,
    ratio_interval,
    share_interval,
)
from ldfi.scenarios.replays.latency_test import SideBySide, Surplus, surplus
from ldfi.scenarios.replays.latency_test import together as all_turns
from ldfi.scenarios.replays.series import Series, together

LEVEL: Final = 0.05
BLOCKS: Final = 30
FEWEST: Final = 20
"""Latencies of both versions that must lie beyond a quantile, or nothing is said of it."""
FEWEST_REQUESTS: Final = 100
"""Requests of both versions below which nothing is said of success."""
TOLERANCE: Final = 0.1
"""The same: a quantile has provably grown by no more than this share of it."""
IGNORED: Final = 0.3
"""Worse: it has provably grown, and by more than this part of the tolerance. Two processes of one
version differ by a percent or two, and with requests enough that is proved as well."""
TOLERATED_FAILURES: Final = 0.005
"""By how much the share of failures may grow for success to be called the same."""
EVERYTHING: Final = "all requests"
SAME_MIX: Final = 0.02
"""By how much the share of a class may differ for all classes to be compared as one."""

QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
SUCCESS: Final = "success"
RARE: Final = "p99.9"
"""What a run is rarely long enough to settle: the verdict does not wait for it."""

_LONGEST: Final = sys.float_info.max

CellVerdict = Literal["same", "worse", "better", "cannot tell"]


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric of one class. ``old``, ``new``: its values; seconds, or the share of good answers.

    ``change``: of a quantile by which share the new one exceeds the old one, of success the share
    of failures that came on top. None where an interval cannot be had. ``chance``: of such a
    difference, if there is none; None where there were too few requests to say. ``claimed``:
    whether that is too small for chance, with everything else that was looked at.
    """

    metric: str
    old: Interval
    new: Interval
    change: Interval | None
    chance: float | None
    claimed: bool = False
    verdict: CellVerdict = "cannot tell"


@dataclass(frozen=True, slots=True)
class ClassDifference:
    """All metrics of one request class, or of all of them together."""

    name: str
    requests: tuple[int, int]
    metrics: tuple[MetricDifference, ...]

    @property
    def weighty(self) -> Iterator[MetricDifference]:
        """Return the metrics for which the verdict waits until they are known."""
        return (each for each in self.metrics if each.metric != RARE)


def compared(
    old: Mapping[str, Series],
    new: Mapping[str, Series],
    *,
    in_turns: bool,
    tolerance: float = TOLERANCE,
) -> tuple[ClassDifference, ...]:
    """Compare all classes that both versions were asked for; all together come first, where they
    were mixed alike. ``in_turns``: both were asked in one run, at the same times."""
    names = [name for name in old if name in new and old[name].due and new[name].due]
    pairs = [(name, old[name], new[name]) for name in names]
    if len(pairs) > 1 and mixed_alike(old, new):
        parts = [old[name] for name in names], [new[name] for name in names]
        united = (EVERYTHING, together(EVERYTHING, parts[0]), together(EVERYTHING, parts[1]))
        pairs = [united, *pairs]
    by_turn = {name: _by_turn(old[name], new[name]) for name in names} if in_turns else {}
    if by_turn:
        by_turn[EVERYTHING] = {
            metric: all_turns([each[metric] for each in by_turn.values()]) for metric in QUANTILES
        }
    made = tuple(
        _class(name, one, two, in_turns, by_turn.get(name, {})) for name, one, two in pairs
    )
    return _judged(made, tolerance)


def _by_turn(old: Series, new: Series) -> dict[str, Surplus]:
    both = SideBySide.of(old, new, BLOCKS)
    return {metric: surplus(both, share) for metric, share in QUANTILES.items()}


def mixed_alike(old: Mapping[str, Series], new: Mapping[str, Series]) -> bool:
    """Return whether each class has about the same share of both."""
    totals = [sum(len(each.due) for each in side.values()) or 1 for side in (old, new)]
    shares = [
        {name: len(each.due) / total for name, each in side.items()}
        for side, total in zip((old, new), totals, strict=True)
    ]
    names = {*shares[0], *shares[1]}
    return all(abs(shares[0].get(n, 0) - shares[1].get(n, 0)) <= SAME_MIX for n in names)


def _class(
    name: str, old: Series, new: Series, in_turns: bool, by_turn: Mapping[str, Surplus]
) -> ClassDifference:
    blocks = _Blocks.of(old, new, in_turns)
    sides = (sorted(old.seconds), sorted(new.seconds))
    pooled = sorted([*sides[0], *sides[1]])
    metrics = [_success(old, new, blocks)]
    for metric, share in QUANTILES.items():
        found = _quantile(metric, share, (old, new), sides, pooled, blocks)
        if found.chance is not None and metric in by_turn:
            found = replace(found, chance=_of_both(found, by_turn[metric]))
        metrics.append(found)
    return ClassDifference(name, (len(old.due), len(new.due)), tuple(metrics))


def _success(old: Series, new: Series, blocks: _Blocks) -> MetricDifference:
    counts = len(old.due), len(new.due)
    failures = [
        share_interval(len(old.failed), counts[0]),
        share_interval(len(new.failed), counts[1]),
    ]
    chance = None
    if sum(counts) >= FEWEST_REQUESTS:
        marked = [bytearray(count) for count in counts]
        for flags, side in zip(marked, (old, new), strict=True):
            for place in side.failed:
                flags[place] = 1
        chance = blocks.chance(marked[0], marked[1])
    good = [Interval(1 - each.value, 1 - each.high, 1 - each.low) for each in failures]
    change = difference_interval(failures[1], failures[0])
    return MetricDifference(SUCCESS, good[0], good[1], change, chance)


def _quantile(
    metric: str,
    share: float,
    series: tuple[Series, Series],
    sides: tuple[list[float], list[float]],
    pooled: list[float],
    blocks: _Blocks,
) -> MetricDifference:
    limit = quantile(pooled, share)
    chance, spreads = None, (1.0, 1.0)
    if len(pooled) * (1 - share) >= FEWEST:
        limit = min(limit, _LONGEST)  # what was never answered is beyond everything
        marked = [bytearray(map(limit.__lt__, side.seconds)) for side in series]
        chance = blocks.chance(marked[0], marked[1])
        spreads = blocks.spread(0, marked[0]), blocks.spread(1, marked[1])
    intervals = [
        quantile_interval(ordered, share, spread)
        for ordered, spread in zip(sides, spreads, strict=True)
    ]
    change = ratio_interval(intervals[1], intervals[0])
    return MetricDifference(metric, intervals[0], intervals[1], change, chance)


def _of_both(whole: MetricDifference, turns: Surplus) -> float:
    """Return the smaller of two chances, doubled. Turns that point the other way prove nothing of
    the quantile that is shown."""
    agrees = (turns.total > 0) == (whole.new.value > whole.old.value)
    return min(1.0, 2 * min(whole.chance or 0.0, turns.chance if agrees else 1.0))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The requests of two versions, each in the block of time in which it was due."""

    places: tuple[list[int], list[int]]
    sizes: tuple[list[int], list[int]]
    in_turns: bool

    @classmethod
    def of(cls, old: Series, new: Series, in_turns: bool) -> _Blocks:
        places = []
        ends = [(min(each.due), max(each.due)) for each in (old, new)]
        if in_turns:
            ends = [(min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1]))] * 2
        for (begin, end), side in zip(ends, (old, new), strict=True):
            each = (end - begin) / BLOCKS or 1.0
            places.append([min(BLOCKS - 1, int((due - begin) / each)) for due in side.due])
        sizes = [_counted(side, bytearray(b"\1" * len(side))) for side in places]
        return cls((places[0], places[1]), (sizes[0], sizes[1]), in_turns)

    def chance(self, old: Sequence[int], new: Sequence[int]) -> float:
        """Return how likely marks are shared out as unevenly as this, if the versions are alike."""
        counts, marked = (len(old), len(new)), (sum(old), sum(new))
        by_draw = hypergeometric(marked[1], counts[1], sum(marked), sum(counts))
        share = sum(marked) / sum(counts)
        rest = [self._left(0, old, share), self._left(1, new, share)]
        scale = counts[0] / counts[1]
        apart = [scale * two - one for one, two in zip(*rest, strict=True)]
        varies = _varies(apart) if self.in_turns else _varies(rest[0]) + scale**2 * _varies(rest[1])
        if varies <= 0:
            return by_draw
        return max(by_draw, student(sum(apart) / math.sqrt(varies), BLOCKS - 1))

    def spread(self, side: int, marks: Sequence[int]) -> float:
        """Return how many times more the marks of one version vary than independent ones would."""
        share = sum(marks) / len(marks)
        if not 0 < share < 1:
            return 1.0
        by_chance = len(marks) * share * (1 - share)
        return max(1.0, round(_varies(self._left(side, marks, share)) / by_chance, 2))

    def _left(self, side: int, marks: Sequence[int], share: float) -> list[float]:
        found = _counted(self.places[side], marks)
        return [one - size * share for one, size in zip(found, self.sizes[side], strict=True)]


def _counted(places: Sequence[int], marks: Sequence[int]) -> list[int]:
    found = Counter(compress(places, marks))
    return [found[block] for block in range(BLOCKS)]


def _varies(parts: Sequence[float]) -> float:
    """Estimate the variance of the sum of independent parts."""
    middle = sum(parts) / len(parts)
    return len(parts) / (len(parts) - 1) * sum((each - middle) ** 2 for each in parts)


def _judged(classes: tuple[ClassDifference, ...], tolerance: float) -> tuple[ClassDifference, ...]:
    places, p_values, weights = [], [], []
    for i, each in enumerate(classes):
        rows = len(classes) - 1
        weight = 1.0 if not rows else 0.5 if each.name == EVERYTHING else 0.5 / rows
        for j, metric in enumerate(each.metrics):
            if metric.chance is not None:
                places.append((i, j))
                p_values.append(metric.chance)
                weights.append(weight)
    claimed = {
        place for place, is_so in zip(places, holm(p_values, weights, LEVEL), strict=True) if is_so
    }
    return tuple(
        replace(
            each,
            metrics=tuple(
                _decided(replace(metric, claimed=(i, j) in claimed), tolerance)
                for j, metric in enumerate(each.metrics)
            ),
        )
        for i, each in enumerate(classes)
    )


def _decided(metric: MetricDifference, tolerance: float) -> MetricDifference:
    if metric.chance is None:
        return metric
    ignored, tolerated = tolerance * IGNORED, tolerance
    worse = metric.new.value > metric.old.value
    if metric.metric == SUCCESS:
        ignored, tolerated, worse = 0.0, TOLERATED_FAILURES, metric.new.value < metric.old.value
    change = metric.change
    size = math.inf if change is None else abs(change.value)
    verdict: CellVerdict = "cannot tell"
    if metric.claimed and size > ignored:
        verdict = "worse" if worse else "better"
    elif change is not None and change.high <= tolerated:
        verdict = "same"
    return replace(metric, verdict=verdict)
