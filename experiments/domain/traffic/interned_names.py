"""Names written once: in what is stored, sets of names become lists of numbers.

A class's evidence names the same few points over and over. So they stand in one list, and
everything else refers to their places in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence


class Interned:
    """Gives each name its place in the list, in the order in which they are first asked for."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The list so far."""
        return list(self._places)

    def place(self, name: str) -> int:
        """Return the place of one name."""
        return self._places.setdefault(name, len(self._places))

    def places(self, names: Iterable[str]) -> list[int]:
        """Return the places of a set of names; equal sets give equal lists."""
        return sorted(self.place(name) for name in sorted(names))

    def faults(self, faults: Iterable[str]) -> dict[str, list[int]]:
        """Write a set of faults (``kind@point``): kind → the places of its points."""
        kinds: defaultdict[str, list[str]] = defaultdict(list)
        for fault in faults:
            kind, _, point = fault.partition("@")
            kinds[kind].append(point)
        return {kind: self.places(points) for kind, points in sorted(kinds.items())}


def names_at(names: Sequence[str], places: Iterable[int]) -> frozenset[str]:
    """Read the set that :meth:`Interned.places` wrote."""
    return frozenset(names[place] for place in places)


def faults_at(names: Sequence[str], faults: Mapping[str, Iterable[int]]) -> frozenset[str]:
    """Read the set that :meth:`Interned.faults` wrote."""
    return frozenset(f"{kind}@{names[place]}" for kind, at in faults.items() for place in at)
