"""How the requests of one entry are divided into classes, held against a complete sample of them.

:mod:`ldfi.lineage.classes` finds classes in a sample. Here is what speaks for taking them in place
of those that are known, or for dividing one of these further.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.lineage.classes import CONSISTENT, RequestClass, describe, refined, teaching
from ldfi.lineage.drift import JUDGED, SETTLED
from ldfi.lineage.shapes import Shape

MUCH = 0.2
"""By how much more of a class's requests its parts must explain for it to be divided further."""

CLEARLY = 0.05
"""By how much more of its requests a new division of an entry must explain to be taken."""


def further(
    classes: Sequence[KnownClass], shapes: Sequence[Shape]
) -> tuple[bool, list[tuple[KnownClass, list[RequestClass]]]]:
    """Return classes to divide further, with their parts; and whether some had too few requests
    to tell."""
    few, divided = False, []
    for known in classes:
        for whole in described([known], shapes):
            if whole.consistency >= CONSISTENT or not whole.sample:
                continue
            few = few or (len(classes) > 1 and whole.sample < SETTLED)
            parts = refined(whole) if whole.sample >= JUDGED else []
            if parts and explained(parts, whole.shapes) > whole.consistency + MUCH:
                divided.append((known, parts))
    return few, divided


def too_narrow(classes: Iterable[KnownClass], shapes: Iterable[Shape]) -> bool:
    """Return whether requests fit the template of a class whose predicate an edge takes word by
    word."""
    wide = any("route" in shape.features for shape in shapes)
    return wide and any(c.feature == "path" for each in classes for c in each.predicate.conditions)


def described(classes: Iterable[KnownClass], shapes: Sequence[Shape]) -> list[RequestClass]:
    """Return what a sample says of the known classes that have a request in it."""
    return [
        describe(known.predicate, matching)
        for known in classes
        if (matching := [shape for shape in shapes if known.predicate.holds(shape.features)])
    ]


def explained(found: Iterable[RequestClass], shapes: Iterable[Shape]) -> float:
    """Return the share of good, unperturbed requests that rely on exactly what their class is
    expected to."""
    total = sum(shape.count for shape in teaching(shapes))
    return sum(each.consistency * each.sample for each in found) / total if total else 1.0
