"""Growing a union: which variable next, with the counts of all of them at once.

What each variable would complete is counted in planes of bits: plane i holds bit i of everybody's
count. One more partner for a thousand variables is then an addition with carry over a few planes,
and the best variable is found from the highest plane down, without looking at each.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ldfi.solver.bits import members
from ldfi.solver.hypotheses import Hypotheses


class BitCounts:
    """A count for each variable, in planes of bits."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._planes: list[int] = []
        if counts:
            # All counts in binary side by side: every so-manieth digit is a plane.
            width = max(counts.values()).bit_length()
            highest = max(counts)
            text = "".join(f"{counts.get(each, 0):0{width}b}" for each in range(highest, -1, -1))
            self._planes = [int(text[width - 1 - plane :: width], 2) for plane in range(width)]

    def add(self, variables: int) -> None:
        """Add one to the count of each of these variables."""
        for plane, bits in enumerate(self._planes):
            self._planes[plane] = bits ^ variables
            variables &= bits
            if not variables:
                return
        if variables:
            self._planes.append(variables)

    def any(self) -> int:
        """Return the variables that were counted at least once."""
        return functools.reduce(operator.or_, self._planes, 0)

    def most(self, among: int) -> int:
        """Return those of these variables that have the highest count."""
        for plane in reversed(self._planes):
            among = among & plane or among
        return among


class Ranking:
    """What is taken first among equals: what is in some hypothesis, no domain, the stronger fault
    (a delay that times out is an error too), what is in the most hypotheses; then at random."""

    def __init__(self, now: Hypotheses, degrees: Mapping[int, int], rng: random.Random) -> None:
        self._degrees = BitCounts(degrees)
        self._wanted = self._degrees.any()
        self._domains = sum(1 << each for each in now.language.domains)
        expansions = now.language.expansions
        self._strength = BitCounts(
            {each: expansions[each].bit_count() for each in members(now.selectable & ~now.plain)}
        )
        self._rng = rng
        self._length = len(expansions)

    def wanted(self, among: int) -> int:
        """Return those that are in some open hypothesis; all of them if none is."""
        return among & self._wanted or among

    def first(self, among: int) -> int:
        """Return the best of these variables."""
        among = among & ~self._domains or among
        among = self._degrees.most(self._strength.most(among))
        # Whoever comes first from some place on: at random, and not by looking at each.
        place = self._rng.randrange(self._length)
        later = among >> place << place or among
        return (later & -later).bit_length() - 1


def groups(suspected: Iterable[int]) -> list[tuple[int, int]]:
    """Return groups of variables that hurt together, each with how many of it are known to be
    survived together.

    Sets blamed for failures that share a fault are taken to be one group, such as the replicas of a
    quorum: fewer than the smallest of these sets.
    """
    found: list[tuple[int, int]] = []
    for each in suspected:
        mask, limit = each, each.bit_count() - 1
        apart = []
        for other, most in found:
            if other & mask:
                mask, limit = mask | other, min(limit, most)
            else:
                apart.append((other, most))
        found = [*apart, (mask, limit)]
    return found


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits a union: at most ``most`` of these sets of point faults may come about in it, whatever
    brings them about (a domain, or a delay that is an error too)."""

    together: tuple[int, ...]
    most: int

    def crossed(self, before: int, after: int) -> bool:
        """Return whether a union goes over the limit by growing from the point faults ``before`` to
        ``after``."""
        count = self._within(after)
        return count > self.most and count > self._within(before)

    def _within(self, points: int) -> int:
        return sum(not each & ~points for each in self.together)


def limits(suspected: Iterable[int], now: Hypotheses) -> list[Limit]:
    """Return the limits that follow from failures whose blame is larger than the bound."""
    return [
        Limit(tuple(now.expand(1 << each) for each in members(mask)), most)
        for mask, most in groups(suspected)
    ]
