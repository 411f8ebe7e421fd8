"""How few good runs can show that all small sets of faults are survived: covering designs.

A good run shows safe what it left alone, and nothing of that fails together. So where every
``size`` of ``points`` faults is survived, and no more than ``largest`` of them ever are at once,
the good runs are the blocks of a covering design, and Schönheim's bound ("On coverings", 1964)
counts them from below. It needs nothing small that fails: quorums, whose failing sets are all
larger than the bound, still take many runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldfi.solver.bits import members

SPLIT = 2_000
"""Branches in which the largest surviving set is looked for, before a cruder answer does."""


@dataclass(frozen=True, slots=True)
class Covering:
    """At least ``runs`` good runs show that any ``size`` of ``points`` faults are survived, of
    which at most ``largest`` are at once."""

    points: int = 0
    largest: int = 0
    size: int = 0
    runs: int = 0


def schoenheim(points: int, largest: int, size: int) -> int:
    """Return the Schönheim bound: the least number of blocks of ``largest`` points that cover every
    ``size`` of them.

    0 where that cannot be: a block is smaller than what it has to cover.
    """
    if not 0 < size <= largest:
        return 0
    if largest >= points:
        return 1
    blocks = 1
    for left in reversed(range(size)):
        blocks = -(-blocks * (points - left) // (largest - left))
    return blocks


def most_at_once(points: int, failing: list[int]) -> int:
    """Return an upper bound on how many of these points can be together with no failing set among
    them.

    Exact for each group of sets that hang together, unless that takes too long; then one point less
    for each of some sets that have nothing in common.
    """
    most, inside = points.bit_count(), [each for each in failing if not each & ~points]
    while inside:
        group, inside = _together(inside)
        most -= _fewest_hits(group)
    return most


def _together(sets: list[int]) -> tuple[list[int], list[int]]:
    """Return the connected component of the first set, and the other sets."""
    reach, group, rest = sets[0], [sets[0]], sets[1:]
    while True:
        joined = [each for each in rest if each & reach]
        if not joined:
            return group, rest
        group += joined
        rest = [each for each in rest if not each & reach]
        for each in joined:
            reach |= each


def _fewest_hits(sets: list[int]) -> int:
    """Return a lower bound on the number of points that hit all of these sets."""
    apart = _apart(sets)
    best, steps = len(sets), SPLIT
    todo = [(sets, 0)]
    while todo:
        left, hit = todo.pop()
        if not left:
            best = min(best, hit)
            continue
        steps -= 1
        if steps < 0:
            return apart
        if hit + _apart(left) < best:
            branch = members(min(left, key=lambda each: (each.bit_count(), each)))
            todo += [([each for each in left if not each >> p & 1], hit + 1) for p in branch]
    return best


def _apart(sets: list[int]) -> int:
    """Return the number of pairwise disjoint sets that a greedy search finds."""
    taken = count = 0
    for each in sorted(sets, key=lambda one: (one.bit_count(), one)):
        if not each & taken:
            taken |= each
            count += 1
    return count
