"""The list of all small open hypotheses, kept up to date instead of computed anew.

When a clause is added, the hypotheses that hit it stay; each of the others grows by one variable of
the clause, unless a hypothesis that stayed is inside (Berge's multiplication). When a set is found
to fail or is excluded, what contains it leaves. Only where a clause has widened, or meanings have
changed, the list is made anew by branching.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, islice

from ldfi.solver.bits import mask_of, members
from ldfi.solver.branch import never
from ldfi.solver.hypotheses import Hypotheses

LARGEST = 3
"""The largest hypotheses kept in a list; there are too many beyond."""
LONGEST = 20_000
"""The longest list kept."""
STEPS = 30_000
"""Branches looked at before the list is given up as too long to make."""
CATCH_UP = 25
"""With more new clauses than this the list is made anew."""


class Steps:
    """A stop condition: so many branches, or an outer condition."""

    def __init__(self, limit: int, stop: Callable[[], bool] = never) -> None:
        self.left = limit
        self.stop = stop
        self.used_up = False

    def __call__(self) -> bool:
        """Count one branch, and tell whether to stop."""
        self.left -= 1
        self.used_up = self.used_up or self.left < 0 or self.stop()
        return self.used_up


class Listing:
    """All minimal open hypotheses, for bounds up to :data:`LARGEST`."""

    def __init__(self) -> None:
        self._meaning: tuple[int, int] = (-1, -1)
        self._clauses: list[int] = []
        self._state = -1, -1
        self._list: list[int] | None = None
        self._given_up = 0

    def follow(self, now: Hypotheses, stop: Callable[[], bool]) -> list[int] | None:
        """Keep the list up to date and return it; None if too long, out of time, or sizes are
        unbounded."""
        if now.walked or now.max_size is None or now.max_size > LARGEST:
            return None
        meaning = now.language.version, now.equation.satisfied
        state = now.equation.version, now.language.restrictions
        known, clauses = len(self._clauses), now.sets
        if self._list is None and meaning == self._meaning and len(clauses) < self._given_up:
            return None
        if (
            self._list is None
            or meaning != self._meaning
            or len(clauses) - known > CATCH_UP
            or clauses[:known] != self._clauses
        ):
            enough = Steps(STEPS, stop)
            everything = list(islice(now.minimal(stop=enough), LONGEST + 1))
            self._list = None if enough.used_up or len(everything) > LONGEST else everything
            self._given_up = len(clauses) + CATCH_UP
        elif state != self._state:
            self._list = [each for each in self._list if now.allowed(each)]
            for clause in clauses[known:]:
                self._list = _multiply(self._list, clause, now)
                if len(self._list) > LONGEST:
                    self._list = None
                    break
        self._meaning, self._clauses, self._state = meaning, list(clauses), state
        return self._list


def _multiply(old: list[int], clause: int, now: Hypotheses) -> list[int]:
    staying = [each for each in old if each & clause]
    inside = set(staying)
    result = staying
    for each in old:
        if not each & clause and each.bit_count() < (now.max_size or 0):
            parts = [
                mask_of(part)
                for size in range(each.bit_count() + 1)
                for part in combinations(tuple(members(each)), size)
            ]
            for variable in members(clause):
                bit = 1 << variable
                if not any(part | bit in inside for part in parts) and now.allowed(each | bit):
                    result.append(each | bit)
    return result
