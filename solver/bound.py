"""How few experiments could have done: a lower bound for any strategy, even one that knows all.

Failing side: to prove that t is a minimal failing set, an experiment must fail within t; proper
subsets of t survive, so it is t itself. That makes |T_k| failed experiments.

Safe side: every other set of size up to k must be disjoint from some revealed support. One support
cannot serve two sets whose union fails: whatever is disjoint from a support is safe. So safe sets
that no uninjected run shows to be safe, and whose unions pairwise fail, need as many good
experiments. Such a packing bounds c_k - 1 from below, where c_k counts the failure-free run, which
is given. (Not so where more faults may help; there the failing side is all.) The largest packing is
a largest clique; a good one is enough, for it stays a bound. Where what fails is larger than k, a
count does better: :mod:`ldfi.solver.covering`.

The work is counted in steps, so that the same knowledge has the same bound on any machine.
"""

from __future__ import annotations

import functools
import operator
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

from ldfi.solver.bits import members, without_supersets
from ldfi.solver.covering import Covering, most_at_once, schoenheim
from ldfi.solver.hypotheses import Hypotheses

ELEMENTS = 60
"""Faults of failing sets from which safe sets are formed."""
CANDIDATES = 1_200
"""Safe sets among which a packing is looked for."""
TRIES = 6_000
"""Sets looked at to find these."""
STARTS = 40
"""Greedy cliques tried."""
STEPS = 150_000
"""Comparisons made in trying them."""
FILLED = 4
"""Ways of filling a set up that are looked at."""
SIZES = 3
"""The largest size counted as a covering: beyond it there is next to nothing to gain."""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound: no strategy needs fewer than ``failing`` + ``good`` experiments. Masks are of
    variables.

    ``cut_short``: not everything was looked at, for there was too much; it is a bound all the same.
    """

    failing: int
    packing: tuple[int, ...]
    covering: Covering
    cut_short: bool

    @property
    def good(self) -> int:
        """Return the number of good experiments that any strategy needs."""
        return max(len(self.packing), self.covering.runs)

    @property
    def total(self) -> int:
        """Return the number of experiments that any strategy needs."""
        return self.failing + self.good


def lower_bound(
    now: Hypotheses, minimal: list[int], still_open: list[int] | None = None
) -> LowerBound:
    """Compute the lower bound for these minimal failing sets (masks of variables).

    ``still_open``: all minimal open hypotheses; None if they are not known.
    """
    exact = without_supersets(now.expand(each) | now.equation.down for each in minimal)
    if not now.equation.monotone:
        return LowerBound(len(exact), (), Covering(), cut_short=False)
    failing = [each & ~now.equation.down for each in now.equation.failing]
    candidates = _Candidates(now, minimal)
    sets = list(candidates)
    packing, complete = _packing(sets, [now.expand(each) for each in sets], failing)
    cut_short = candidates.cut_short or not complete
    covering = Covering() if still_open is None else _covering(now, failing, still_open)
    return LowerBound(len(exact), packing, covering, cut_short or still_open is None)


def _packing(
    sets: list[int], expanded: list[int], failing: list[int]
) -> tuple[tuple[int, ...], bool]:
    """Return many of the sets whose unions pairwise fail, and whether every start was tried."""
    conflicts = _conflicts(expanded, failing)
    best: list[int] = []
    steps = STEPS
    order = sorted(range(len(sets)), key=lambda each: (-conflicts[each].bit_count(), sets[each]))
    for start in order[:STARTS]:
        clique, left = [start], conflicts[start]
        while left and steps > 0:
            steps -= left.bit_count()
            more = max(members(left), key=lambda each: (conflicts[each] & left).bit_count())
            clique.append(more)
            left &= conflicts[more]
        if len(clique) > len(best):
            best = clique
    return tuple(sorted(sets[each] for each in best)), steps > 0


def _conflicts(expanded: list[int], failing: list[int]) -> list[int]:
    """Return, for every set, which others (by position) contain a failing set together with it."""
    having: dict[int, int] = {}
    for position, points in enumerate(expanded):
        for point in members(points):
            having[point] = having.get(point, 0) | 1 << position
    everyone = (1 << len(expanded)) - 1

    @functools.cache
    def bringing(rest: int) -> int:
        return functools.reduce(operator.and_, (having.get(p, 0) for p in members(rest)), everyone)

    largest = max((each.bit_count() for each in expanded), default=0)
    near = [each for each in failing if each.bit_count() <= 2 * largest]
    conflicts = []
    for points in expanded:
        found = 0
        for each in near:
            if each & points and (rest := each & ~points).bit_count() <= largest:
                found |= bringing(rest)
        conflicts.append(found)
    return conflicts


class _Candidates:
    """Candidates for safe sets: made of what fails, filled up until no uninjected run shows them
    safe."""

    def __init__(self, now: Hypotheses, minimal: list[int]) -> None:
        self._now = now
        self._natural = now.equation.natural_clauses()
        self._tries = TRIES
        together = [each for each in minimal if each.bit_count() > 1]
        together += sorted(now.equation.failing, key=lambda each: (each.bit_count(), each))
        elements: dict[int, None] = {}
        for each in together:
            if each.bit_count() > 1:
                elements.update(dict.fromkeys(members(each & now.selectable)))
        self._elements = list(elements)[:ELEMENTS]
        self.cut_short = len(elements) > ELEMENTS
        inside = functools.reduce(operator.or_, (1 << each for each in elements), 0)
        self._fillers = now.selectable & ~inside

    def __iter__(self) -> Iterator[int]:
        if not self._elements:
            yield from self._one()
            return
        count = len(self._elements)
        bound = min(self._now.max_size or count, count)
        seen: set[int] = set()
        for size in range(1, bound + 1):
            for some in self._some(size, CANDIDATES // min(bound, SIZES + 1)):
                filled = self._filled(sum(1 << each for each in some))
                if filled is not None and filled not in seen:
                    seen.add(filled)
                    yield filled
                if self._tries <= 0 or len(seen) >= CANDIDATES:
                    self.cut_short = True
                    return

    def _some(self, size: int, most: int) -> Iterator[tuple[int, ...]]:
        """Return the subsets of this size; a random sample if there are too many."""
        if comb(len(self._elements), size) <= most:
            yield from combinations(self._elements, size)
            return
        self.cut_short = True
        rng = random.Random(size)
        for _ in range(most):
            yield tuple(rng.sample(self._elements, size))

    def _one(self) -> Iterator[int]:
        """Return a single safe fault that some experiment has to show, if nothing fails
        together."""
        for each in members(self._fillers):
            if self._needed(1 << each):
                yield 1 << each
                return
            if self._tries <= 0:
                self.cut_short = True
                return

    def _filled(self, base: int) -> int | None:
        bound = self._now.max_size
        touched = self._now.expand(base) | self._now.equation.down
        missed = [each for each in self._natural if not each & touched]
        if not missed:
            return base if self._needed(base) else None
        if bound is not None and base.bit_count() >= bound:
            self._tries -= 1
            return None
        common = functools.reduce(operator.and_, map(self._now.language.carriers, missed))
        for _, more in zip(range(FILLED), members(common & self._fillers), strict=False):
            if self._needed(base | 1 << more):
                return base | 1 << more
        return None

    def _needed(self, variables: int) -> bool:
        self._tries -= 1
        now = self._now
        expansion = now.expand(variables)
        touched = expansion | now.equation.down
        return (
            all(clause & touched for clause in self._natural)
            and now.equation.is_safe(expansion)
            and now.allowed(variables)
        )


def _covering(now: Hypotheses, failing: list[int], still_open: list[int]) -> Covering:
    """Return the number of good runs needed to show that all small sets of some faults are
    survived."""
    down = now.equation.down
    natural = [each for each in now.equation.natural_clauses() if not each & down]
    best = Covering()
    for size in range(1, min(now.max_size or SIZES, SIZES) + 1):
        points = _all_survived(now, failing, still_open, size)
        most = most_at_once(points, failing)
        # What happens anyway may cover some; each time it is one run, which covers no more.
        runs = schoenheim(points.bit_count(), most, size) - len(natural)
        found = Covering(points.bit_count(), most, size, max(runs, 0))
        inside = functools.reduce(operator.and_, natural, points)
        most = most_at_once(inside, failing)
        needed = schoenheim(inside.bit_count(), most, size)
        if needed > found.runs:
            found = Covering(inside.bit_count(), most, size, needed)
        best = max(best, found, key=lambda each: each.runs)
    return best


def _all_survived(now: Hypotheses, failing: list[int], still_open: list[int], size: int) -> int:
    """Choose faults of which any ``size`` together are known to be survived, as many as can be.

    What neither fails, nor is open, nor may not be tried, is survived; so of each set that is one
    of these a fault is left out.
    """
    points = now.selectable & now.plain
    barred = [
        each
        for each in (*failing, *still_open, *now.language.forbidden())
        if each.bit_count() <= size and not each & ~points
    ]
    if 0 in barred:
        return 0
    often = Counter(point for each in barred for point in members(each))
    for each in sorted(barred, key=lambda one: (one.bit_count(), one)):
        if not each & ~points:
            points &= ~(1 << max(members(each), key=lambda point: (often[point], point)))
    return points
