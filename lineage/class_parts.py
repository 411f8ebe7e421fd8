"""The parts of a class whose requests vary: what only some of them call, and how many do.

A cache that is hit, a token that one request in eight has to fetch, a batch that some bring along:
such requests are of one class, and what only some of them call is a part of it with its share.
Points that always come together are one part.

Parts **contradict** each other where each request has just one of them: they are common, hardly any
request has two, and hardly any has none. Then several things are asked for here under one name, and
none of them is a part of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

COMMON: Final = 0.05
"""Share of a class's requests from which on a part is common, and up to which none has neither."""

APART: Final = 0.1
"""Requests that have both of two parts, as a share of those that would by chance, up to which the
parts exclude each other."""

TELLS: Final = 3
"""Requests that would have both by chance, below which nothing is said."""

MOST: Final = 50
"""Common parts above which there is no structure to be found: no class has as many."""


@dataclass(frozen=True, slots=True)
class ClassPart:
    """Points that come together, and the share of a class's requests that have them."""

    points: frozenset[str]
    share: float


def parts(supports: Mapping[frozenset[str], int]) -> tuple[ClassPart, ...]:
    """Find the parts that only some requests have, the commonest first. ``supports``: how often
    each was seen. What is rare, or nearly always there, is none."""
    total = sum(supports.values())
    found = [
        ClassPart(frozenset(points), _count(supports, places) / total)
        for places, points in _together(supports).items()
    ]
    varying = [part for part in found if COMMON <= part.share <= 1 - COMMON]
    return tuple(sorted(varying, key=lambda part: (-part.share, sorted(part.points))))


def contradiction(supports: Mapping[frozenset[str], int]) -> tuple[ClassPart, ...]:
    """Find parts of which each request has just one; none where requests merely vary."""
    varying = parts(supports)
    if len(varying) > MOST:
        return varying[:2]
    exclude = {
        frozenset({one, other})
        for one, other in combinations(varying, 2)
        if _exclude(one, other, supports)
    }
    for first in varying:
        group = [first]
        for other in varying:
            if other is not first and all(frozenset({each, other}) in exclude for each in group):
                group.append(other)
        if len(group) > 1 and sum(part.share for part in group) >= 1 - COMMON:
            return tuple(group)
    return ()


def _exclude(one: ClassPart, other: ClassPart, supports: Mapping[frozenset[str], int]) -> bool:
    """Return whether hardly any request has both of two parts, and that is no chance."""
    by_chance = one.share * other.share * sum(supports.values())
    return by_chance >= TELLS and _having(supports, one.points | other.points) <= APART * by_chance


def _together(supports: Mapping[frozenset[str], int]) -> dict[tuple[int, ...], set[str]]:
    """Group points by the places of the supports that they are in."""
    places: dict[str, list[int]] = {}
    for place, support in enumerate(supports):
        for point in support:
            places.setdefault(point, []).append(place)
    groups: dict[tuple[int, ...], set[str]] = {}
    for point, found in places.items():
        groups.setdefault(tuple(found), set()).add(point)
    return groups


def _count(supports: Mapping[frozenset[str], int], places: Sequence[int]) -> int:
    counts = list(supports.values())
    return sum(counts[place] for place in places)


def _having(supports: Mapping[frozenset[str], int], points: frozenset[str]) -> int:
    return sum(count for support, count in supports.items() if points <= support)
