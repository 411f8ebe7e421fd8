"""The language of faults: variables, and what each of them brings about.

A variable is a fault or a fault domain. Its *expansion* is the set of point faults it stands for:
a fault stands for itself and for the weaker faults it was seen to cause, a domain for its members.
What a set of variables does to the system depends on its expansion alone, so all knowledge is kept
about expansions; variables are only how a fault set is written, and what its size counts.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Collection, Iterable, Mapping

from ldfi.solver.bits import mask_of, members
from ldfi.solver.errors import InvalidRecord
from ldfi.solver.order import Fault, Faults, ordered


class Language:
    """Numbers every fault and domain, in the order in which they became known."""

    def __init__(self) -> None:
        self.names: list[Fault] = []
        self.index: dict[Fault, int] = {}
        self.domains: dict[int, set[int]] = {}
        self.weaker: dict[int, set[int]] = {}
        self.protected = 0
        self.exclusions: set[Faults] = set()
        self.impossible: set[Faults] = set()
        """Those of the exclusions that cannot happen, as opposed to what somebody left out."""
        self.presumed: dict[Faults, Faults] = {}
        """What is presumed harmful, and of which failing set: excluded as well."""
        self.unreached: dict[Fault, str] = {}
        """Those of the protected faults that nobody can bring about, and what would change that."""
        self.expansions: list[int] = []
        self.version = 0
        """Changes with the expansions: what was translated before is stale."""
        self.restrictions = 0
        """Changes with what is protected or excluded."""
        self._carriers: list[int] = []
        self._special = 0
        self._forbidden: tuple[tuple[int, int], list[int]] = (-1, -1), []

    @property
    def state(self) -> tuple[int, int, int]:
        """Return what changes whenever anything here does."""
        return self.version, self.restrictions, len(self.names)

    def copy(self) -> Language:
        """Make one that knows the same, and learns nothing of what this one learns from now on."""
        other = Language()
        other.names, other.index = list(self.names), dict(self.index)
        other.domains = {name: set(many) for name, many in self.domains.items()}
        other.weaker = {name: set(many) for name, many in self.weaker.items()}
        other.protected, other.exclusions = self.protected, set(self.exclusions)
        other.impossible, other.presumed = set(self.impossible), dict(self.presumed)
        other.unreached = dict(self.unreached)
        other.expansions, other._carriers = list(self.expansions), list(self._carriers)
        other._special = self._special
        other.version, other.restrictions = self.version, self.restrictions
        return other

    def number(self, fault: Fault) -> int:
        """Return the number of this fault, which is given on first sight."""
        known = self.index.get(fault)
        if known is not None:
            return known
        number = len(self.names)
        self.names.append(fault)
        self.index[fault] = number
        self.expansions.append(1 << number)
        self._carriers.append(1 << number)
        return number

    def learn(self, faults: Iterable[Fault]) -> None:
        """Give a number to each of the faults that is new, in stable order."""
        for fault in ordered(fault for fault in faults if fault not in self.index):
            self.number(fault)

    def add_domain(self, name: Fault, faults: Collection[Fault]) -> None:
        """Let ``name`` stand for these faults (too); domains may contain domains."""
        self.learn([name])
        self.learn(faults)
        inside = self.domains.setdefault(self.index[name], set())
        inside.update(self.index[fault] for fault in faults)
        self._expand()

    def imply(self, stronger: Fault, weaker: Fault) -> bool:
        """Record that ``stronger`` brings ``weaker`` about. Returns whether that was news."""
        self.learn([stronger, weaker])
        seen = self.weaker.setdefault(self.index[stronger], set())
        if self.index[weaker] in seen:
            return False
        seen.add(self.index[weaker])
        self._expand()
        return True

    def protect(self, faults: Iterable[Fault] | Mapping[Fault, str]) -> None:
        """Never propose these, nor a domain that contains one of them. A mapping: nobody can bring
        them about, and what would change that."""
        if isinstance(faults, Mapping):
            self.unreached.update(faults)
        for fault in ordered(faults):
            self.protected |= 1 << self.number(fault)
        self.restrictions += 1

    def exclude(self, faults: Iterable[Fault], *, impossible: bool = False) -> None:
        """Never propose these together; a single fault is never proposed by itself.

        Raises InvalidRecord for an empty exclusion, which would forbid everything.
        """
        together = frozenset(faults)
        if not together:
            raise InvalidRecord("an empty exclusion forbids every proposal; name the faults")
        self.learn(together)
        if impossible and together not in self.exclusions:
            self.impossible.add(together)
        elif not impossible:
            self.impossible.discard(together)
        if together not in self.exclusions:
            self.exclusions.add(together)
            self.restrictions += 1

    def presume(self, harmful: Mapping[Faults, Faults]) -> None:
        """Presume these to be harmful, and nothing else: never propose them."""
        if harmful != self.presumed:
            self.presumed = dict(harmful)
            self.restrictions += 1

    @property
    def plain(self) -> int:
        """The variables that stand for themselves alone."""
        return (1 << len(self.names)) - 1 & ~self._special

    def expand(self, faults: Iterable[Fault]) -> int:
        """Expand a set of variables to a mask; new faults are numbered."""
        known = faults if isinstance(faults, (frozenset, set)) else frozenset(faults)
        self.learn(known)
        mask = 0
        for fault in known:
            mask |= self.expansions[self.index[fault]]
        return mask

    def expand_numbers(self, variables: int) -> int:
        """Expand a mask of variables to the point faults that they bring about."""
        mask = 0
        for variable in members(variables):
            mask |= self.expansions[variable]
        return mask

    def variables(self, faults: Iterable[Fault]) -> int:
        """Make the mask of the variables themselves, unexpanded."""
        mask = 0
        for fault in faults:
            mask |= 1 << self.index[fault]
        return mask

    def faults(self, mask: int) -> Faults:
        """List the faults a mask stands for."""
        return frozenset(self.names[number] for number in members(mask))

    def carriers(self, points: int) -> int:
        """Find the variables whose expansion meets these points."""
        mask = 0
        for point in members(points):
            mask |= self._carriers[point]
        return mask

    def forbidden(self) -> list[int]:
        """List masks of variables that are never proposed together.

        An excluded fault is meant wherever it comes from: domains that contain it count, and
        stronger faults that cause it. A variable that by itself brings a whole exclusion about is
        exempt: it was named as a whole; but several of these are not proposed together, where each
        is one of the exclusion.
        """
        key = self.version, self.restrictions
        if self._forbidden[0] != key:
            together: set[int] = set()
            for exclusion in {*self.exclusions, *self.presumed}:
                sources = [
                    1 << self.index[fault] | self._carriers[self.index[fault]]
                    for fault in exclusion
                ]
                whole = functools.reduce(operator.and_, sources)
                if len(exclusion) > 1:  # by name it is out, though one may bring the others about
                    together.add(self.variables(exclusion))
                parts = [list(members(source & ~whole)) for source in sources]
                if len(parts) > 1:
                    together.update(map(mask_of, itertools.product(*parts)))
            self._forbidden = key, sorted(together)
        return self._forbidden[1]

    def _expand(self) -> None:
        self.version += 1
        self._special = 0
        for number in range(len(self.names)):
            self.expansions[number] = 1 << number
        pending = {*self.domains, *self.weaker}
        for number in pending:
            seen, todo, mask = {number}, [number], 0
            while todo:
                here = todo.pop()
                inside = self.domains.get(here, set())
                if not inside:
                    mask |= 1 << here
                for further in inside | self.weaker.get(here, set()):
                    if further not in seen:
                        seen.add(further)
                        todo.append(further)
            self.expansions[number] = mask or 1 << number
            if self.expansions[number] != 1 << number:
                self._special |= 1 << number
        self._carriers = [1 << n if e >> n & 1 else 0 for n, e in enumerate(self.expansions)]
        for number in pending:
            for point in members(self.expansions[number]):
                self._carriers[point] |= 1 << number
