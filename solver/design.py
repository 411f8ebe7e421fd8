"""Covering designs: blocks of groups, so that any two groups are together in some block.

Where no experiment can hold all faults, pairs have to be covered block by block, and blocks from a
finite plane meet each other far less than blocks grown greedily: 72 against 90 where an experiment
holds an eighth of all. Affine and projective planes over the fields of a prime or a power of two;
for few groups, the best of some greedy covers.
"""

from __future__ import annotations

import functools
import random
from itertools import product

from ldfi.solver.bits import mask_of, members

PRIMES = (2, 3, 5, 7, 11, 13)
POLYNOMIALS = {4: 0b111, 8: 0b1011, 16: 0b10011}
"""Irreducible ones, by which the fields of so many elements multiply."""
FEW = 10
"""Groups for which covers are looked for at random."""
COVERS = 25
"""How many of these are made for each number of groups."""

Design = tuple[int, tuple[int, ...]]
"""How many groups, and the blocks as masks of groups."""


@functools.lru_cache(maxsize=64)
def design(points: int, largest: int) -> Design:
    """Choose groups and blocks of them, so that a block has no more than ``largest`` of the points.

    As few blocks as are known here; none if none is small enough.
    """
    found = [
        each
        for each in _designs(points, largest)
        if max(map(int.bit_count, each[1])) * -(-points // each[0]) <= largest
    ]
    return min(found, key=lambda each: len(each[1]), default=(0, ()))


def _designs(points: int, largest: int) -> list[Design]:
    found: list[Design] = []
    for order in (*PRIMES, *POLYNOMIALS):
        if order * order <= points:
            lines = _affine(order)
            found += [(order * order, lines), _projective(order, lines)]
    for groups in range(3, min(FEW, points) + 1):
        size = largest // -(-points // groups)
        if 1 < size < groups:
            covers = (_greedy(groups, size, random.Random(each)) for each in range(COVERS))
            found.append((groups, min(covers, key=len)))
    return found


@functools.cache
def _affine(order: int) -> tuple[int, ...]:
    """Draw all lines of the affine plane: first those of one direction, which are disjoint."""
    field = range(order)
    lines = [mask_of(x * order + y for y in field) for x in field]
    for slope, start in product(field, field):
        at = (x * order + _plus(_times(slope, x, order), start, order) for x in field)
        lines.append(mask_of(at))
    return tuple(lines)


def _projective(order: int, lines: tuple[int, ...]) -> Design:
    """Let the lines of each direction meet in a point at infinity."""
    square = order * order
    blocks = [line | 1 << square + number // order for number, line in enumerate(lines)]
    return square + order + 1, (*blocks, mask_of(range(square, square + order + 1)))


def _plus(one: int, other: int, order: int) -> int:
    return one ^ other if order in POLYNOMIALS else (one + other) % order


def _times(one: int, other: int, order: int) -> int:
    if order not in POLYNOMIALS:
        return one * other % order
    result = 0
    for place in members(other):
        result ^= one << place
    while result >= order:
        result ^= POLYNOMIALS[order] << result.bit_length() - order.bit_length()
    return result


def _greedy(groups: int, size: int, rng: random.Random) -> tuple[int, ...]:
    """Cover all pairs of groups, each block by what covers most, ties at random."""
    apart = [(1 << groups) - 1 & ~(1 << each) for each in range(groups)]
    blocks = []
    while any(apart):
        block = 0
        for _ in range(size):
            left = [each for each in range(groups) if not block >> each & 1]
            gain = {
                each: ((apart[each] & block).bit_count(), apart[each].bit_count()) for each in left
            }
            best = max(gain.values())
            block |= 1 << rng.choice([each for each in left if gain[each] == best])
        for each in members(block):
            apart[each] &= ~block
        blocks.append(block)
    return tuple(blocks)
