"""A hypothesis united with as many other open candidates as contain no known failing set.

If the requests survive it, their support is small and closes hundreds of hypotheses at once. If
they do not, blame or bisection reduces the union to a minimal failing set. The relative is MARCO's
growing and shrinking of seeds (Liffiton, Previti, Malik, Marques-Silva, 2016).
"""

from __future__ import annotations

from solver.bits import members
from solver.search import Search


class Union:
    """See the module."""

    def choose(self, search: Search) -> int | None:
        """The union, or a smaller part of it if it was tried in vain before."""
        found = search.smallest()
        if not found:
            return None
        seed = search.rng.choice(found)
        pool = search.sample() if search.max_union != 1 else []
        cap = search.max_union
        while True:
            union = _grow(seed, pool, search, cap)
            if union not in search.attempts or union == seed:
                return union
            cap = max(union.bit_count() // 2, 1)


def _grow(seed: int, pool: list[int], search: Search, cap: int | None) -> int:
    wanted: dict[int, int] = {}
    for hypothesis in pool:
        for variable in members(hypothesis):
            wanted[variable] = wanted.get(variable, 0) + 1
    domains = search.now.language.domains
    candidates = sorted(wanted)
    search.rng.shuffle(candidates)
    candidates.sort(key=lambda variable: (variable in domains, -wanted[variable]))
    # What is in no open hypothesis comes last: it only makes a surviving support smaller.
    candidates += [each for each in members(search.now.selectable) if each not in wanted]
    union = seed
    for variable in candidates:
        if cap is not None and union.bit_count() >= cap:
            break
        expansion = search.now.expand(union)
        if search.now.language.expansions[variable] & ~expansion:
            grown = union | 1 << variable
            if search.now.allowed(grown) and not _suspicious(grown, seed, search):
                union = grown
    return union


def _suspicious(union: int, seed: int, search: Search) -> bool:
    return any(each & union == each and each & seed != each for each in search.suspected)
