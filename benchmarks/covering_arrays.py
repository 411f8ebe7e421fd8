"""Covering arrays of strength 2: so many rows that every two columns show every pair of values.

What no exploration can beat that shows all pairs of kinds at all pairs of points to be survived,
with one kind at each point in a run. The best of what is built here is a bound from above on the
smallest array; the published tables know somewhat smaller ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate, combinations, pairwise

from ldfi.solver.bits import members

Row = tuple[int, ...]
CANDIDATES = 40
"""Rows that the greedy construction chooses each row from."""


def best(levels: Sequence[int], seed: int = 0) -> list[Row]:
    """Build the smallest of the arrays that are known here. ``levels``: per column how many values
    it has; where all have as many, that is a prime."""
    rng = random.Random(seed)
    built = [greedy(levels, rng)]
    if len(set(levels)) == 1:
        built.append(product(len(levels), levels[0]))
    return min(built, key=len)


def greedy(levels: Sequence[int], rng: random.Random) -> list[Row]:
    """Take row by row the one of some candidates that shows most (Cohen, Dalal, Fredman and Patton,
    "The AETG system", 1997)."""
    starts = [0, *accumulate(levels)]
    cells = [range(start, end) for start, end in pairwise(starts)]
    every, rows = (1 << starts[-1]) - 1, list[Row]()
    missing: list[int] = []
    for own in cells:
        others = every & ~sum(1 << cell for cell in own)
        missing += [others] * len(own)
    while any(missing):
        filled = (_row(cells, missing, rng) for _ in range(CANDIDATES))
        row = max(filled, key=_worth)[1]
        mask = sum(1 << cell for cell in row)
        for cell in row:
            missing[cell] &= ~mask
        rows.append(tuple(cell - own.start for cell, own in zip(sorted(row), cells, strict=True)))
    return rows


def _row(
    cells: Sequence[range], missing: Sequence[int], rng: random.Random
) -> tuple[int, list[int]]:
    """Fill a row, beginning where most is missing; return what it shows as well."""
    most = [max(missing[cell].bit_count() for cell in own) for own in cells]
    order = sorted(range(len(cells)), key=lambda column: (-most[column], rng.random()))
    row, mask, shown = list[int](), 0, 0
    for column in order:
        gains = {
            cell: ((missing[cell] & mask).bit_count(), missing[cell].bit_count())
            for cell in cells[column]
        }
        top = max(gains.values())
        cell = rng.choice([each for each, gain in gains.items() if gain == top])
        row.append(cell)
        mask |= 1 << cell
        shown += top[0]
    return shown, row


def _worth(candidate: tuple[int, list[int]]) -> int:
    return candidate[0]


def product(columns: int, values: int) -> list[Row]:
    """Lay blocks of an orthogonal array one beneath the other (Stevens and Mendelsohn, "New
    recursive methods for transversal covers", 1999).

    Columns are numbered in the base of the array's columns; each digit has a block of its own.
    """
    array = orthogonal(values)
    base, blocks, reach = len(array[0]), 0, 1
    while reach < columns:
        blocks, reach = blocks + 1, reach * base
    rows = [
        tuple(row[column // base**digit % base] for column in range(columns))
        for digit in range(blocks)
        for row in array
    ]
    return _without_needless(rows, columns, values)


def orthogonal(values: int) -> list[Row]:
    """Make the array of all lines over a prime field: every pair in exactly one row."""
    return [
        (*((b + a * column) % values for column in range(values)), a)
        for a in range(values)
        for b in range(values)
    ]


def _without_needless(rows: list[Row], columns: int, values: int) -> list[Row]:
    """Leave out rows of which every pair is shown by others."""
    kept = list(rows)
    for row in rows:
        rest = [each for each in kept if each is not row]
        if covers(rest, columns, values):
            kept = rest
    return kept


def covers(rows: list[Row], columns: int, values: int) -> bool:
    """Return whether every two columns show every pair of values."""
    shown = [0] * (columns * values)
    for row in rows:
        mask = sum(1 << (column * values + value) for column, value in enumerate(row))
        for cell in members(mask):
            shown[cell] |= mask
    whole = (1 << values) - 1
    return all(
        shown[one * values + value] >> other * values & whole == whole
        for one, other in combinations(range(columns), 2)
        for value in range(values)
    )
