"""From a failing set to a minimal failing set.

A union that failed contains hypotheses that are still open. Blame names a suspect; one experiment
tries it. Without blame, try a part that contains a fifth of the open hypotheses inside. If it
survives, its support closes them; if it fails, it is the smaller failing set. What
is known to be safe is never tried, and when no open hypothesis within the bounds is left inside,
nothing is left to reduce. (The idea of delta debugging, Zeller and Hildebrandt 2002, over
hypotheses instead of elements.)
"""

from __future__ import annotations

from ldfi.solver.bits import members
from ldfi.solver.odds import Odds
from ldfi.solver.pairs import Pairs
from ldfi.solver.search import Search

PART = 0.2
"""The share of them that a part contains. Less than half: a failed request hurts, a survived one
does not; among a hundred points with five planted failures, 0.2 instead of 0.5 saves two failed
experiments of six per finding and costs no more experiments in all."""


def next_part(search: Search) -> int | None:
    """Return the next part to try of a failing set that is not minimal yet; None if none is."""
    for failing in search.now.equation.failing:
        # The empty set and single points have no smaller sets that could be unknown. Where what is
        # to blame is larger than the bound, smaller parts survive. And where a failure of more
        # named just these, they are hardly more than it takes: unions with others, which have to
        # be tried anyway, show that less of them survives.
        if (
            failing.bit_count() > 1
            and not search.explained(failing)
            and not search.convicted(failing)
        ):
            pairs = None if search.costs else search.pairs()
            if pairs is not None:
                part = _likely_part(failing, pairs, search)
                if part and part not in search.attempts:
                    return part
                continue
            left = [each for each in inside(failing, search) if each not in search.attempts]
            if left:
                part = part_of(left, search)
                if part not in search.attempts:
                    return part
    return None


def inside(failing: int, search: Search) -> list[int]:
    """Return the open hypotheses inside a failing set (a mask of point faults)."""
    return search.inside(_within(failing, search))


def _within(failing: int, search: Search) -> int:
    """Find the variables that bring about nothing but these point faults."""
    now = search.now
    reach = failing | now.equation.down
    variables = failing & now.selectable & now.plain
    for variable in members(now.selectable & ~now.plain):
        if not now.language.expansions[variable] & ~reach:
            variables |= 1 << variable
    return variables


def _likely_part(failing: int, pairs: Pairs, search: Search) -> int:
    """Choose a part that survives about as often as not; 0 if nothing open is inside."""
    odds, whole = Odds.of(search, pairs), pairs.inside(_within(failing, search))
    if not whole.singles and not whole.pairs:
        return 0
    return odds.part_of(whole, pairs, search)


def part_of(open_inside: list[int], search: Search) -> int:
    """Choose a set of variables that contains a share of these hypotheses, at least one."""
    now = search.now
    variables = sorted({each for hypothesis in open_inside for each in members(hypothesis)})
    search.rng.shuffle(variables)
    keep = min(open_inside, key=lambda each: (each.bit_count(), each))
    part = keep
    for variable in variables:
        if now.admissible(part | 1 << variable):
            part |= 1 << variable
    left = [each for each in open_inside if each & part == each]
    share = max(len(open_inside) * PART, 1)
    for variable in variables:
        if len(left) <= share:
            break
        if not keep >> variable & 1:
            part &= ~(1 << variable)
            left = [each for each in left if not each >> variable & 1]
    used = 0
    for each in left:
        used |= each
    return used if now.allowed(used) else keep


def extend(suspect: int, failing: int, search: Search) -> int | None:
    """Extend a suspect (mask of variables) within the failing set until it is a hypothesis."""
    now = search.now
    everything = (1 << len(now.sets)) - 1
    hit = 0
    for variable in members(suspect):
        hit |= now.hits.get(variable, 0)
    while hit != everything:
        reach = failing | now.equation.down
        choices = [
            ((now.hits.get(variable, 0) & ~hit).bit_count(), -variable)
            for variable in members(now.selectable & ~suspect)
            if not now.language.expansions[variable] & ~reach
            and now.admissible(suspect | 1 << variable)
        ]
        gain, best = max(choices, default=(0, 0))
        if not gain:
            return None
        suspect |= 1 << -best
        hit |= now.hits[-best]
    return suspect
