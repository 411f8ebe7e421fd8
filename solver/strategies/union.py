"""A hypothesis united with as many other open candidates as contain no known failing set.

If the requests survive it, their support is small and closes hundreds of hypotheses at once. If
they do not, blame or bisection reduces the union to a minimal failing set. The relative is MARCO's
growing and shrinking of seeds (Liffiton, Previti, Malik, Marques-Silva, 2016).
"""

from __future__ import annotations

import functools
from collections import Counter

from ldfi.solver.bits import mask_of, members
from ldfi.solver.design import design
from ldfi.solver.odds import Odds
from ldfi.solver.pairs import Pairs
from ldfi.solver.search import SOME, Search
from ldfi.solver.union_growth import BitCounts, Ranking, limits

WORTH = 0.45
"""A block is taken if it shows this share of the pairs that it could hold."""


class Union:
    """See the module."""

    def choose(self, search: Search) -> int | None:
        """Choose the union, or a smaller part of it if it was tried in vain before."""
        pairs = None if search.costs else search.pairs()
        found = search.smallest() if pairs is None else _drawn(pairs, search)
        if not found:
            return None
        seed = search.rng.choice(found)
        if search.max_union == 1 or seed & search.interacting:
            return seed  # of what is known to interact with others, nothing is united
        growing: _Pairwise | _Listed = (
            _Listed(search) if pairs is None else _Pairwise(search, pairs)
        )
        cap = search.max_union
        # A union that was survived without closing this hypothesis kept it from happening.
        in_vain = [each.bit_count() for each in search.attempts if each & seed == seed]
        if in_vain:
            cap = max(min(in_vain) // 2, seed.bit_count())
        block = None if pairs is None or in_vain else _block(pairs, search)
        if block:
            union = _grow(0, growing, search, cap, first=block)
            if union not in search.attempts and search.now.is_open(union):
                return union
        while True:
            union = _grow(seed, growing, search, cap)
            if union not in search.attempts or union == seed:
                return union
            cap = max(union.bit_count() // 2, 1)


def _drawn(pairs: Pairs, search: Search) -> list[int]:
    drawn = None
    if not search.mute and not search.attempts:
        drawn = pairs.weightiest(_contested(search)) or pairs.weightiest()
    drawn = drawn or pairs.draw(search.rng)
    return search.retries() if drawn is None else [drawn]


def _contested(search: Search) -> int:
    """Find the variables that are known to hurt in pairs, of which a union holds one or the other.

    What is open between those of two pairs fits into few unions, and is taken before what fits into
    any: left for later, each of these costs a union of its own.
    """
    now, found = search.now, 0
    for failing in now.equation.failing:
        if failing.bit_count() == 2:
            found |= failing & now.plain & now.selectable
    return found


def _block(pairs: Pairs, search: Search) -> int:
    """Choose the block of a covering design that shows most, where one union cannot hold all.

    0 where that is not so, or where what is left is scattered.
    """
    most = search.most_at_once
    selectable = search.now.selectable
    if search.mute or most is None or most >= selectable.bit_count():
        return 0
    best, shows = 0, 0
    for block, variables in _blocks(selectable, most):
        covered = pairs.covered_by(block, variables)
        if covered > shows:
            best, shows = block, covered
    return best if shows > WORTH * most * most else 0


@functools.lru_cache(maxsize=8)
def _blocks(selectable: int, most: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Write the blocks of a design in these variables, each as a mask and as a list."""
    variables = list(members(selectable))
    groups, blocks = design(len(variables), most)
    if not groups:
        return ()
    each = -(-len(variables) // groups)
    parts = [tuple(variables[at : at + each]) for at in range(0, each * groups, each)]
    lists = [tuple(v for group in members(block) for v in parts[group]) for block in blocks]
    return tuple((mask_of(each), each) for each in lists)


def _grow(
    seed: int,
    growing: _Pairwise | _Listed,
    search: Search,
    cap: int | None,
    first: int | None = None,
) -> int:
    """Add variables while no known failing set comes about, greedily (as covering arrays are made:
    Cohen, Dalal, Fredman and Patton, "The AETG system", 1997): first what completes the most open
    hypotheses together with what is in already, then by :class:`Ranking`. ``first``: before others.
    """
    now, union = search.now, seed
    left = now.selectable & ~seed & ~search.interacting
    crowds, given_up = limits(search.suspected, now), search.given_up
    growing.begin(seed)
    expansion = now.expand(union)
    while left and (cap is None or union.bit_count() < cap) and not search.filled_by(expansion):
        if first is not None:
            first &= left
        variable = growing.best(first or left)
        left &= ~(1 << variable)
        if now.language.expansions[variable] & ~expansion:
            grown = union | 1 << variable
            if any(not each & ~grown for each in given_up):
                continue
            if search.carries(grown) and now.allowed(grown) and growing.likely(variable):
                wider = now.expand(grown)
                if not any(each.crossed(expansion, wider) for each in crowds):
                    union, expansion = grown, wider
                    growing.take(variable)
    return union


class _Pairwise:
    """What each variable would complete, where all open pairs are known."""

    def __init__(self, search: Search, pairs: Pairs) -> None:
        self._pairs = pairs
        self._odds = Odds.of(search, pairs) if search.mute else None
        self._search = search
        degrees = {each: row.bit_count() for each, row in pairs.apart.items() if row}
        degrees |= {each: degrees.get(each, 0) + 1 for each in members(pairs.singles)}
        self._ranking = Ranking(search.now, degrees, search.rng)

    def begin(self, seed: int) -> None:
        """Begin with these variables."""
        self._part = self._pairs.inside(seed)
        self._counts = BitCounts()
        self._counts.add(self._pairs.singles)
        for each in members(seed):
            self.take(each)

    def best(self, left: int) -> int:
        """Choose what to add next."""
        return self._ranking.first(self._counts.most(self._ranking.wanted(left)))

    def take(self, variable: int) -> None:
        """Take a variable in."""
        self._part.add(variable)
        row = self._pairs.apart.get(variable, 0)
        if row:
            self._counts.add(row)

    def likely(self, variable: int) -> bool:
        """Return whether the union, with this one in it too, would survive as often as is wanted.

        Where failures name suspects that is no matter.
        """
        return self._odds is None or self._odds.take(self._part, variable)


class _Listed:
    """What each variable would complete, of a sample of the open hypotheses."""

    def __init__(self, search: Search) -> None:
        self._pool = search.sample(steps=SOME)
        degrees = Counter(each for one in self._pool for each in members(one))
        self._ranking = Ranking(search.now, degrees, search.rng)
        self._with: dict[int, list[int]] = {}
        for hypothesis in self._pool:
            for variable in members(hypothesis):
                self._with.setdefault(variable, []).append(hypothesis)

    def begin(self, seed: int) -> None:
        """Begin with these variables."""
        self._union = seed
        self._counts = BitCounts()
        singles = [each for each in self._pool if each.bit_count() == 1]
        self._counts.add(mask_of(each.bit_length() - 1 for each in singles))
        touched = {one for each in members(seed) for one in self._with.get(each, ())}
        for hypothesis in touched:
            self._complete(hypothesis)

    def best(self, left: int) -> int:
        """Choose what to add next."""
        return self._ranking.first(self._counts.most(self._ranking.wanted(left)))

    def likely(self, _variable: int) -> bool:
        """Take everything: of a sample nobody knows what it is a share of."""
        return True

    def take(self, variable: int) -> None:
        """Take a variable in."""
        self._union |= 1 << variable
        for hypothesis in self._with.get(variable, ()):
            self._complete(hypothesis)

    def _complete(self, hypothesis: int) -> None:
        missing = hypothesis & ~self._union
        if missing.bit_count() == 1:
            self._counts.add(missing)
