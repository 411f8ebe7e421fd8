"""Listing minimal hitting sets by branching.

The search of MMCS (Murakami and Uno, "Efficient algorithms for dualizing large-scale hypergraphs",
2014): take a set that is not hit yet, branch on its elements, and keep for every chosen element the
sets that it alone hits; an element without such a set can never become needed again, so the branch
is dropped. Each minimal hitting set is met exactly once, none is remembered, and below a bound on
the size the last element comes from intersecting what is not hit yet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldfi.solver.bits import members

LOOKAHEAD = 12
"""How many sets are compared when choosing the one to branch on."""


def never() -> bool:
    """Never stop: the condition of a search that runs to its end."""
    return False


@dataclass(slots=True)
class HittingSets:
    """A search for the minimal hitting sets of ``sets`` (masks of elements).

    ``hits``: per element, the mask of the sets (by position) that contain it. ``allowed`` is asked
    about every partial choice and must be inherited by subsets: if a choice is not allowed, no
    superset of it is. ``rng``: shuffle the branches, so that the first answers are a sample.
    """

    sets: Sequence[int]
    hits: Mapping[int, int]
    max_size: int | None = None
    allowed: Callable[[int], bool] | None = None
    rng: random.Random | None = None
    stop: Callable[[], bool] = never
    stopped: bool = field(default=False, init=False)

    def __iter__(self) -> Iterator[int]:
        candidates = 0
        for each in self.sets:
            candidates |= each
        limit = len(self.sets) if self.max_size is None else self.max_size
        yield from self._extend(0, [], (1 << len(self.sets)) - 1, candidates, limit)

    def _extend(
        self, chosen: int, critical: list[int], missed: int, candidates: int, left: int
    ) -> Iterator[int]:
        if not missed:
            yield chosen
            return
        if left <= 0 or self.stopped:
            return
        if self.stop():
            self.stopped = True
            return
        if left == 1:
            branch = self._common(missed, candidates)
        else:
            branch = self._smallest(missed, candidates)
        candidates &= ~branch
        for element in self._order(branch):
            bit = 1 << element
            hit = self.hits[element]
            still = [mask & ~hit for mask in critical]
            if all(still) and (self.allowed is None or self.allowed(chosen | bit)):
                if left == 1:
                    yield chosen | bit
                else:
                    still.append(missed & hit)
                    yield from self._extend(
                        chosen | bit, still, missed & ~hit, candidates, left - 1
                    )
                candidates |= bit

    def _common(self, missed: int, candidates: int) -> int:
        common = candidates
        while missed and common:
            low = missed & -missed
            common &= self.sets[low.bit_length() - 1]
            missed ^= low
        return common

    def _smallest(self, missed: int, candidates: int) -> int:
        best, size = 0, -1
        for _, position in zip(range(LOOKAHEAD), members(missed), strict=False):
            here = self.sets[position] & candidates
            count = here.bit_count()
            if size < 0 or count < size:
                best, size = here, count
                if count == 0:
                    break
        return best

    def _order(self, branch: int) -> list[int]:
        elements = list(members(branch))
        if self.rng is not None:
            self.rng.shuffle(elements)
        return elements
