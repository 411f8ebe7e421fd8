"""Varieties: the ways in which requests of one class go, where nothing known on arrival tells them.

Told by structure alone: which points they rely on. Each support that is not rare is a variety; a
rare one counts with the variety it is most like, for a cache or a retry makes many supports that
differ in a point. No edge can choose one of them, so no live experiment is about one; a replay can,
that sends a request whose variety is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

RARE = 0.05
"""Share of the requests below which a support makes no variety, if it is like another's."""

LIKE = 0.5
"""Share of the points of two supports that they must have in common to be alike."""

MOST = 20
"""Varieties that are listed."""


@dataclass(frozen=True, slots=True)
class Variety:
    """One way to go: what its requests rely on, and how many there were."""

    support: frozenset[str]
    requests: int


def varieties(supports: Mapping[frozenset[str], int]) -> tuple[Variety, ...]:
    """Find the varieties among supports and how often each was seen; the commonest first."""
    total = sum(supports.values())
    counts: Counter[frozenset[str]] = Counter()
    for support, count in sorted(supports.items(), key=lambda each: (-each[1], sorted(each[0]))):
        nearest = max(counts, key=lambda known: _likeness(known, support), default=None)
        rare = nearest is not None and count < RARE * total
        if nearest is not None and rare and _likeness(nearest, support) >= LIKE:
            counts[nearest] += count
        else:
            counts[support] += count
    ordered = sorted(counts.items(), key=lambda each: (-each[1], sorted(each[0])))
    return tuple(Variety(support, count) for support, count in ordered[:MOST])


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
