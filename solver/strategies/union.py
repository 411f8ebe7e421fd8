"""A hypothesis united with as many other open candidates as contain no known failing set.

If the requests survive it, their support is small and closes hundreds of hypotheses at once. If
they do not, blame or bisection reduces the union to a minimal failing set. The relative is MARCO's
growing and shrinking of seeds (Liffiton, Previti, Malik, Marques-Silva, 2016).
"""

from __future__ import annotations

from ldfi.solver.bits import members
from ldfi.solver.search import SOME, Search


class Union:
    """See the module."""

    def choose(self, search: Search) -> int | None:
        """Choose the union, or a smaller part of it if it was tried in vain before."""
        found = search.smallest()
        if not found:
            return None
        seed = search.rng.choice(found)
        pool = search.sample(steps=SOME) if search.max_union != 1 else []
        cap = search.max_union
        # A union that was survived without closing this hypothesis kept it from happening.
        in_vain = [each.bit_count() for each in search.attempts if each & seed == seed]
        if in_vain:
            cap = max(min(in_vain) // 2, seed.bit_count())
        while True:
            union = _grow(seed, pool, search, cap)
            if union not in search.attempts or union == seed:
                return union
            cap = max(union.bit_count() // 2, 1)


def _grow(seed: int, pool: list[int], search: Search, cap: int | None) -> int:
    """Add variables while no known failing set comes about, greedily (as covering arrays are made:
    Cohen, Dalal, Fredman and Patton, "The AETG system", 1997): first what completes the most open
    hypotheses together with what is in already, among equals the stronger fault (a delay that
    times out is an error too), then what is in the most hypotheses at all.
    """
    union, left = seed, _Left(pool, search)
    left.take(seed)
    while cap is None or union.bit_count() < cap:
        variable = left.best()
        if variable is None:
            break
        left.drop(variable)
        if search.now.language.expansions[variable] & ~search.now.expand(union):
            grown = union | 1 << variable
            if search.now.allowed(grown) and not _suspicious(grown, seed, search):
                union = grown
                left.take(1 << variable)
    return union


class _Left:
    """The candidates that are left, and what each would complete."""

    def __init__(self, pool: list[int], search: Search) -> None:
        language = search.now.language
        self._with: dict[int, list[int]] = {each: [] for each in members(search.now.selectable)}
        for hypothesis in pool:
            for variable in members(hypothesis):
                self._with[variable].append(hypothesis)
        self._completes = dict.fromkeys(self._with, 0)
        self._union = 0
        # What is in no open hypothesis comes last: it only makes a surviving support smaller.
        self._rank = {
            each: (
                not found,
                each in language.domains,
                -language.expansions[each].bit_count(),
                -len(found),
                search.rng.random(),
            )
            for each, found in self._with.items()
        }

    def best(self) -> int | None:
        """Return the candidate to add next."""
        return min(self._completes, key=self._key, default=None)

    def _key(self, variable: int) -> tuple[bool, int, tuple[object, ...]]:
        return (not self._with[variable], -self._completes[variable], self._rank[variable])

    def drop(self, variable: int) -> None:
        """Drop a variable that was added, or cannot be."""
        self._completes.pop(variable, None)

    def take(self, variables: int) -> None:
        """Take these variables into the union."""
        self._union |= variables
        for variable in members(variables):
            self.drop(variable)
            for hypothesis in self._with.get(variable, ()):
                missing = hypothesis & ~self._union
                if missing.bit_count() == 1:
                    last = missing.bit_length() - 1
                    if last in self._completes:
                        self._completes[last] += 1


def _suspicious(union: int, seed: int, search: Search) -> bool:
    return any(each & union == each and each & seed != each for each in search.suspected)
