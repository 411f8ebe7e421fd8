"""Latencies beyond the quantile of their own turn: whether two versions differ in any weather.

Where load comes and goes, the latencies beyond the quantile of a whole run are those of its worst
seconds, and of all other seconds nothing is learned. Two versions that are asked in turns share the
weather of the moment. So the run is cut into short turns, of each class by itself; the quantile is
that of the turn, of both versions together, and it is counted how many of the new version's are
beyond it. Within a turn that is a draw without choosing, if the versions are alike, and turns and
classes add up (Cochran, Mantel and Haenszel).

What stands still for a moment counts little here: a turn has so many beyond its quantile and no
more. :mod:`ldfi.experiments.replays.comparing` therefore asks both, this and the whole run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldfi.experiments.replays.chances import student
from ldfi.experiments.replays.series import Series

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
        """How many more, over the whole run."""
        return sum(self.blocks)

    @property
    def chance(self) -> float:
        """Say how likely so many more or fewer are, if the versions are alike: the larger of what
        chance alone and what the variation from block to block says."""
        if self.varies <= 0:
            return 1.0
        apart = max(0.0, abs(self.total) - 0.5) / math.sqrt(self.varies)
        by_draw = math.erfc(apart / math.sqrt(2))
        count, middle = len(self.blocks), self.total / len(self.blocks)
        spread = count / (count - 1) * sum((each - middle) ** 2 for each in self.blocks)
        return (
            by_draw if spread <= 0 else max(by_draw, student(self.total / spread**0.5, count - 1))
        )


def surplus(old: Series, new: Series, share: float, blocks: int) -> Surplus:
    """Count one class, turn by turn."""
    begin, end = _ends((old, new))
    turns = max(1, min(MOST, int((len(old.due) + len(new.due)) * (1 - share) / BEYOND)))
    rows: list[list[tuple[float, int, float]]] = [[] for _ in range(turns)]
    for version, side in enumerate((old, new)):
        for due, seconds in zip(side.due, side.seconds, strict=True):
            at = (due - begin) / (end - begin) if end > begin else 0.0
            rows[min(turns - 1, int(at * turns))].append((seconds, version, at))
    found, varies = [0.0] * blocks, 0.0
    for row in rows:
        varies += _count(row, share, found)
    return Surplus(tuple(found), varies)


def together(parts: Sequence[Surplus]) -> Surplus:
    """Add up classes."""
    blocks = tuple(map(sum, zip(*(each.blocks for each in parts), strict=True)))
    return Surplus(blocks, sum(each.varies for each in parts))


def _count(row: list[tuple[float, int, float]], share: float, blocks: list[float]) -> float:
    """Add one turn to the blocks; returns the variance by chance."""
    size, beyond = len(row), round(len(row) * (1 - share))
    new = sum(version for _, version, _ in row)
    if not beyond or not 0 < new < size:
        return 0.0
    row.sort()
    limit = row[size - beyond - 1][0] if beyond < size else -math.inf
    marked = sum(seconds > limit for seconds, _, _ in row)
    expected = marked / size
    weights = -new / size, (size - new) / size
    for seconds, version, at in row:
        block = min(len(blocks) - 1, int(at * len(blocks)))
        blocks[block] += weights[version] * ((seconds > limit) - expected)
    return new * (size - new) * expected * (1 - expected) / (size - 1)


def _ends(sides: Sequence[Series]) -> tuple[float, float]:
    return min(min(each.due) for each in sides), max(max(each.due) for each in sides)
