"""The faults of a certificate, and what each of them brings about, as sets of bits."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ldfi.checker.solving.effort import Effort


class Vocabulary:
    """Numbers the faults in the order in which the certificate lists them.

    ``whole``: per variable the point faults that it stands for: itself, the weaker faults that it
    causes, and for a domain its members in its place. ``offered``: the variables that may be tried.
    """

    def __init__(self, axioms: dict[str, Any], effort: Effort) -> None:
        self.effort = effort
        self.names: list[str] = axioms["language"]["faults"]
        self.index = {name: number for number, name in enumerate(self.names)}
        inside = {name: many for name, many in axioms["language"]["domains"].items() if many}
        causes: dict[str, list[str]] = {}
        for each in axioms["language"]["implications"]:
            causes.setdefault(each["stronger"], []).append(each["weaker"])
        self.whole = [1 << number for number in range(len(self.names))]
        for name in {*inside, *causes}:
            self.whole[self.index[name]] = self._expansion(name, inside, causes)
        self.special = [n for n, whole in enumerate(self.whole) if whole != 1 << n]
        bounds = axioms["bounds"]
        self.down = self.expand(bounds["down"])
        self.protected = self.bits(bounds["protected"])
        presumed = [each["faults"] for each in bounds.get("presumed", ())]
        self.exclusions = [
            self.bits(each) for each in (*bounds["exclusions"], *axioms["impossible"], *presumed)
        ]
        self._singles = frozenset(each for each in self.exclusions if each.bit_count() == 1)
        self._excluding = self._index_exclusions()
        self.offered = 0
        for number in range(len(self.names)):
            if self._offered(number):
                self.offered |= 1 << number
        self._plain = self.offered
        for number in self.special:
            self._plain &= ~(1 << number)

    def _expansion(
        self, name: str, inside: dict[str, list[str]], causes: dict[str, list[str]]
    ) -> int:
        seen, todo, points = {name}, [name], 0
        while todo:
            here = todo.pop()
            if here not in inside:
                points |= 1 << self.index[here]
            further = [*inside.get(here, ()), *causes.get(here, ())]
            self.effort.spend(3 + len(further))  # a step of this takes as long as three operations
            todo += [each for each in dict.fromkeys(further) if each not in seen]
            seen.update(further)
        return points or 1 << self.index[name]

    def _index_exclusions(self) -> dict[int, list[int]]:
        """List per variable the exclusions of several faults that it brings a part of about."""
        index: dict[int, list[int]] = {}
        for exclusion in self.exclusions:
            if exclusion.bit_count() > 1:
                self.effort.spend(len(self.special))
                touching = set(members(exclusion))
                touching.update(n for n in self.special if self.reach(n) & exclusion)
                for number in touching:
                    index.setdefault(number, []).append(exclusion)
                self.effort.spend(len(touching))
        return index

    def _offered(self, number: int) -> bool:
        return bool(
            not self.reach(number) & self.protected
            and 1 << number not in self._singles
            and self.whole[number] & ~self.down
        )

    def reach(self, number: int) -> int:
        """Return the variable and what it brings about."""
        return self.whole[number] | 1 << number

    def bits(self, names: Collection[str]) -> int:
        """Make the set of these variables themselves."""
        mask = 0
        self.effort.spend(1 + len(names))
        for name in names:
            mask |= 1 << self.index[name]
        return mask

    def expand(self, names: Collection[str]) -> int:
        """Make the set of point faults that these bring about."""
        mask = 0
        self.effort.spend(1 + len(names))
        for name in names:
            mask |= self.whole[self.index[name]]
        return mask

    def touched(self, variables: int) -> int:
        """Return all that these variables bring about, and what is down."""
        mask = self.down
        for number in members(variables):
            mask |= self.whole[number]
        return mask

    def meeting(self, points: int) -> int:
        """Return the variables that may be tried and bring some of these about."""
        self.effort.spend(1 + len(self.special))
        mask = points & self._plain
        for number in self.special:
            if self.offered >> number & 1 and self.whole[number] & points:
                mask |= 1 << number
        return mask

    def excluded(self, variables: int, newest: int) -> bool:
        """Return whether the newest of these variables completes an exclusion."""
        exclusions = self._excluding.get(newest, ())
        if not exclusions:
            return False
        reaches = [self.reach(number) for number in members(variables)]
        self.effort.spend(len(exclusions) * len(reaches))
        return any(
            _completes(reaches, exclusion) or not exclusion & ~variables for exclusion in exclusions
        )

    def admissible(self, variables: int) -> bool:
        """Return whether these may be tried together."""
        return not variables & ~self.offered and not any(
            self.excluded(variables, each) for each in members(variables)
        )


def _completes(reaches: list[int], exclusion: int) -> bool:
    """Return whether these bring all of it about; one that does so alone was named as a whole."""
    covered = 0
    for reach in reaches:
        if exclusion & ~reach:
            covered |= reach
    return not exclusion & ~covered


def members(mask: int) -> Iterator[int]:
    """List the numbers in a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
