"""Open hypotheses: which sets of variables may still be harmful, and may be proposed.

A set of variables is a *hypothesis* if its expansion hits every clause. It is *open* if besides it
contains no known failing set, is admissible (nothing protected, nothing excluded) and was not
survived itself. What is minimal among the open ones are the minimal hitting sets of the clauses,
written in variables.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ldfi.solver.bits import members
from ldfi.solver.branch import HittingSets, never
from ldfi.solver.equation import Equation
from ldfi.solver.language import Language


@dataclass(frozen=True)
class Hypotheses:
    """What is open at one moment. Sets of variables are masks throughout."""

    language: Language
    equation: Equation
    max_size: int | None

    @cached_property
    def selectable(self) -> int:
        """Return the variables that may be proposed and would change something."""
        language, down = self.language, self.equation.down
        banned = 0
        for exclusion in (*language.exclusions, *language.presumed):
            if len(exclusion) == 1:
                banned |= language.variables(exclusion)
        mask = self.plain & ~(language.protected | banned | down)
        for variable in members((1 << len(language.expansions)) - 1 & ~self.plain):
            expansion = language.expansions[variable]
            if (
                not (expansion | 1 << variable) & language.protected
                and not banned >> variable & 1
                and expansion & ~down
            ):
                mask |= 1 << variable
        return mask

    @cached_property
    def _forbidden_with(self) -> dict[int, list[int]]:
        index: dict[int, list[int]] = {}
        for together in self.language.forbidden():
            for variable in members(together):
                index.setdefault(variable, []).append(together)
        return index

    @cached_property
    def plain(self) -> int:
        """Return the variables that stand for themselves alone."""
        return self.language.plain

    def expand(self, variables: int) -> int:
        """Return the point faults that a mask of variables brings about."""
        special = variables & ~self.plain
        mask = variables & self.plain
        return mask | self.language.expand_numbers(special) if special else mask

    def admissible(self, variables: int) -> bool:
        """Return whether these variables may be proposed together."""
        if variables & ~self.selectable:
            return False
        index = self._forbidden_with
        if not index:
            return True
        return not any(
            together & variables == together
            for variable in members(variables)
            for together in index.get(variable, ())
        )

    def allowed(self, variables: int) -> bool:
        """Return whether these may be proposed and are not known to fail; inherited by subsets."""
        return not self.equation.is_failing(self.expand(variables)) and self.admissible(variables)

    def is_open(self, variables: int) -> bool:
        """Return whether this set of variables is an open hypothesis, of any size."""
        return self.admissible(variables) and self.equation.is_open(self.expand(variables))

    @cached_property
    def sets(self) -> list[int]:
        """Return the clauses not hit by what is down, in selectable variables."""
        special = [
            (1 << variable, self.language.expansions[variable])
            for variable in members(self.selectable & ~self.plain)
        ]
        plain = self.selectable & self.plain
        result = []
        for position, clause in enumerate(self.equation.clauses):
            if not self.equation.satisfied >> position & 1:
                mask = clause & plain
                for bit, expansion in special:
                    if expansion & clause:
                        mask |= bit
                result.append(mask)
        return result

    @cached_property
    def hits(self) -> dict[int, int]:
        """Return, per selectable variable, the mask of the :attr:`sets` it hits."""
        if not self.equation.satisfied and not self.selectable & ~self.plain:
            return self.equation.hits
        hits: dict[int, int] = {}
        for position, each in enumerate(self.sets):
            for variable in members(each):
                hits[variable] = hits.get(variable, 0) | 1 << position
        return hits

    def minimal(
        self,
        *,
        within: int | None = None,
        max_size: int | None = None,
        rng: random.Random | None = None,
        stop: Callable[[], bool] = never,
        allowed: Callable[[int], bool] | None = None,
    ) -> Iterator[int]:
        """Return the minimal open hypotheses, in the order of the search.

        ``within``: only such as consist of these variables. ``max_size``: a tighter bound.
        ``allowed``: prune where this says no; asked while searching, so it may become stricter.
        """
        bound = self.max_size if max_size is None else max_size
        if self.walked:
            yield from self._walk(bound, self.selectable if within is None else within, stop)
            return
        sets = self.sets if within is None else [each & within for each in self.sets]
        permitted = self.allowed
        if allowed is not None:
            further = allowed

            def permitted(variables: int) -> bool:
                return further(variables) and self.allowed(variables)

        if sets or self.allowed(0):
            yield from HittingSets(sets, self.hits, bound, permitted, rng, stop)

    @property
    def walked(self) -> bool:
        """Return whether the open sets are no plain hitting sets, and have to be walked to."""
        return bool(self.equation.closed) or not self.equation.monotone

    def _walk(self, bound: int | None, pool: int, stop: Callable[[], bool]) -> Iterator[int]:
        """Walk through the minimal open hypotheses by size: from a safe set to what its clause
        offers.

        A set closed by itself offers nothing, so every variable is tried.
        """
        minimal: list[int] = []
        level = {0}
        while level:
            following: set[int] = set()
            for each in sorted(level):
                if stop():
                    return
                if not self.allowed(each) or any(small & each == small for small in minimal):
                    continue
                expansion = self.expand(each)
                if not self.equation.is_safe(expansion):
                    minimal.append(each)
                    yield each
                elif bound is None or each.bit_count() < bound:
                    missed = self.equation.missed(expansion | self.equation.down)
                    offered = min(
                        (self._carrying(self.equation.clauses[one]) for one in members(missed)),
                        key=int.bit_count,
                        default=self.selectable,
                    )
                    following.update(each | 1 << more for more in members(offered & pool & ~each))
            level = following

    def _carrying(self, points: int) -> int:
        return self.language.carriers(points) & self.selectable
