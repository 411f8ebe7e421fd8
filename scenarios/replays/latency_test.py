"""Latencies beyond the quantile of their own turn: whether two versions differ under any noise.

Where load comes and goes, the latencies beyond the quantile of a whole run are those of its worst
seconds, and of all other seconds nothing is learned. Two versions that are asked in turns share the
noise of the moment. So the run is cut into short turns, of each class by itself; the quantile is
that of the turn, of both versions together, and it is counted how many of the new version's are
beyond it. Within a turn that is a draw without choosing, if the versions are alike, and turns and
classes add up (Cochran, Mantel and Haenszel).

What stands still for a moment counts little here: a turn has so many beyond its quantile and no
more. :mod:`ldfi.scenarios.replays.comparing` therefore asks both, this and the whole run.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter
from typing import Final

from ldfi.scenarios.replays.distributions import student
from ldfi.scenarios.replays.series import Series

BEYOND: Final = 4
"""Latencies of a turn that are beyond its quantile: so short are turns."""
MOST: Final = 100
"""Turns of a run."""


@dataclass(frozen=True, slots=True)
class Surplus:
    """How many more of the new version's latencies are beyond than their share, by block of time;
    and the variance of all of them, if it were chance alone."""

    blocks: tuple[float, ...]
    varies: float

    @property
    def total(self) -> float:
        """Return how many more, over the whole run."""
        return sum(self.blocks)

    @property
    def chance(self) -> float:
        """Return how likely so many more or fewer are, if the versions are alike: the larger of
        what chance alone and what the variation from block to block says."""
        if self.varies <= 0:
            return 1.0
        apart = max(0.0, abs(self.total) - 0.5) / math.sqrt(self.varies)
        by_draw = math.erfc(apart / math.sqrt(2))
        count, middle = len(self.blocks), self.total / len(self.blocks)
        spread = count / (count - 1) * sum((each - middle) ** 2 for each in self.blocks)
        return (
            by_draw if spread <= 0 else max(by_draw, student(self.total / spread**0.5, count - 1))
        )


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The requests of one class to both versions, in the order in which they were due.

    ``at``: when, as a share of the run. ``cells``: twice the block of time, and one more for the
    new version.
    """

    at: list[float]
    seconds: list[float]
    cells: list[int]
    blocks: int

    @classmethod
    def of(cls, old: Series, new: Series, blocks: int) -> SideBySide:
        """Lay both in one row."""
        begin, end = _ends((old, new))
        length = end - begin
        rows = [
            ((due - begin) / length if length > 0 else 0.0, seconds, version)
            for version, side in enumerate((old, new))
            for due, seconds in zip(side.due, side.seconds, strict=True)
        ]
        rows.sort(key=itemgetter(0))
        cells = [2 * min(blocks - 1, int(at * blocks)) + version for at, _, version in rows]
        return cls([row[0] for row in rows], [row[1] for row in rows], cells, blocks)


def surplus(both: SideBySide, share: float) -> Surplus:
    """Count one class, turn by turn."""
    total = len(both.at)
    turns = max(1, min(MOST, int(total * (1 - share) / BEYOND)))
    found, varies, begin = [0.0] * both.blocks, 0.0, 0
    for turn in range(1, turns + 1):
        end = total if turn == turns else bisect_left(both.at, turn, key=lambda at: int(at * turns))
        varies += _count(both.seconds[begin:end], both.cells[begin:end], share, found)
        begin = end
    return Surplus(tuple(found), varies)


def together(parts: Sequence[Surplus]) -> Surplus:
    """Add up classes."""
    blocks = tuple(map(sum, zip(*(each.blocks for each in parts), strict=True)))
    return Surplus(blocks, sum(each.varies for each in parts))


def _count(
    seconds: Sequence[float], cells: Sequence[int], share: float, blocks: list[float]
) -> float:
    """Add one turn to the blocks; returns the variance by chance."""
    size, beyond = len(seconds), round(len(seconds) * (1 - share))
    all_of = Counter(cells)
    new = sum(count for cell, count in all_of.items() if cell % 2)
    if not beyond or not 0 < new < size:
        return 0.0
    limit = sorted(seconds)[size - beyond - 1] if beyond < size else -math.inf
    marks = Counter(compress(cells, map(limit.__lt__, seconds)))
    expected = marks.total() / size
    weights = -new / size, (size - new) / size
    for cell, count in all_of.items():
        blocks[cell // 2] += weights[cell % 2] * (marks[cell] - count * expected)
    return new * (size - new) * expected * (1 - expected) / (size - 1)


def _ends(sides: Sequence[Series]) -> tuple[float, float]:
    return min(min(each.due) for each in sides), max(max(each.due) for each in sides)
