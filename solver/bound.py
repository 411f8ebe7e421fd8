"""How few experiments could have done: a lower bound for any strategy, even one that knows all.

Failing side: to prove that t is a minimal failing set, an experiment must fail within t; proper
subsets of t survive, so it is t itself. That makes |T_k| failed experiments.

Safe side: every other set of size up to k must be disjoint from some revealed support. One support
cannot serve two sets whose union fails: whatever is disjoint from a support is safe. So safe sets
that no uninjected run shows to be safe, and whose unions pairwise fail, need as many good
experiments. Such a packing bounds c_k - 1 from below, where c_k counts the failure-free run, which
is given. (Not so where more faults may help; there the failing side is all.) The largest packing is
a largest clique; a good one is enough, for it stays a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from ldfi.solver.bits import members, without_supersets
from ldfi.solver.hypotheses import Hypotheses

ELEMENTS = 24
"""Faults of findings from which safe sets are formed."""
STARTS = 40
"""Greedy cliques tried."""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """At least ``failing`` + ``len(packing)`` experiments. Masks are of variables."""

    failing: int
    packing: tuple[int, ...]

    @property
    def total(self) -> int:
        """The experiments that any strategy needs."""
        return self.failing + len(self.packing)


def lower_bound(now: Hypotheses, minimal: list[int]) -> LowerBound:
    """Compute the lower bound for these minimal failing sets (masks of variables)."""
    exact = without_supersets(now.expand(each) | now.equation.down for each in minimal)
    candidates = list(_safe_sets(now, minimal)) if now.equation.monotone else []
    expanded = {each: now.expand(each) | now.equation.down for each in candidates}
    conflicts = {
        one: {
            other
            for other in candidates
            if other != one
            and any(failing & ~(expanded[one] | expanded[other]) == 0 for failing in exact)
        }
        for one in candidates
    }
    best: list[int] = []
    for start in sorted(candidates, key=lambda each: (-len(conflicts[each]), each))[:STARTS]:
        clique, left = [start], set(conflicts[start])
        while left:
            more = max(left, key=lambda each: (len(conflicts[each] & left), -each))
            clique.append(more)
            left &= conflicts[more]
        if len(clique) > len(best):
            best = clique
    return LowerBound(len(exact), tuple(sorted(best)))


def _safe_sets(now: Hypotheses, minimal: list[int]) -> Iterator[int]:
    """Fill safe sets of faults of findings up, until no uninjected run shows them safe."""
    elements = 0
    for each in minimal:
        if each.bit_count() > 1:
            elements |= each
    chosen = list(members(elements))[:ELEMENTS]
    bound = len(chosen) if now.max_size is None else now.max_size
    natural = now.equation.natural_clauses()
    fillers = list(members(now.selectable & ~elements))
    seen: set[int] = set()
    for size in range(1, min(bound, len(chosen)) + 1):
        for some in combinations(chosen, size):
            base = sum(1 << each for each in some)
            for filled in (base, *(base | 1 << each for each in fillers)):
                if filled.bit_count() <= bound and _needed(filled, now, natural):
                    if filled not in seen:
                        seen.add(filled)
                        yield filled
                    break


def _needed(variables: int, now: Hypotheses, natural: list[int]) -> bool:
    expansion = now.expand(variables)
    touched = expansion | now.equation.down
    return (
        all(clause & touched for clause in natural)
        and now.equation.is_safe(expansion)
        and now.allowed(variables)
    )
