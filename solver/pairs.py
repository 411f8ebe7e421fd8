"""What is open among single faults and pairs, held as bits instead of listed.

A pair is an open hypothesis if every clause has one of the two. So the open partners of a variable
are what all clauses without it have in common: one row of bits for each variable. With a new
clause only the rows of the variables outside it change, and a thousand variables take a thousand
rows where a list takes half a million pairs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

from ldfi.solver.bits import members
from ldfi.solver.hypotheses import Hypotheses


class Pairs:
    """The open hypotheses of one and of two variables, at one moment.

    ``singles``: those open by themselves. ``rows``: per variable its open partners, neither being
    open or failing by itself. ``apart``: the same with those that are open by themselves, so all
    partners with which it is still to be survived.
    """

    def __init__(self) -> None:
        self.singles = 0
        self.rows: dict[int, int] = {}
        self.apart: dict[int, int] = {}
        self._common: dict[int, int] = {}
        self._meaning: tuple[int, ...] = ()
        self._clauses: list[int] = []

    def follow(self, now: Hypotheses, attempts: Iterable[int]) -> bool:
        """Bring it up to date, ``attempts`` (tried in vain) left out; False if it says nothing.

        So it is with other bounds on the size, where more faults may help, and before anything is
        known.
        """
        if now.walked or now.max_size not in (1, 2) or not now.sets:
            return False
        self._share(now)
        self._restrict(now)
        for each in attempts:
            if each.bit_count() == 1:
                self.singles &= ~each
            elif each.bit_count() == 2:
                self._close(each)
        return True

    def __len__(self) -> int:
        return self.singles.bit_count() + sum(map(int.bit_count, self.rows.values())) // 2

    def __iter__(self) -> Iterator[int]:
        for each in members(self.singles):
            yield 1 << each
        for variable, row in self.rows.items():
            for other in members(row >> variable << variable):
                yield 1 << variable | 1 << other

    def draw(self, rng: random.Random) -> int | None:
        """Draw one of the smallest at random; None if nothing is open."""
        if self.singles:
            return 1 << rng.choice(list(members(self.singles)))
        variables = [each for each, row in self.rows.items() if row]
        if not variables:
            return None
        weights = [self.rows[each].bit_count() for each in variables]
        one = rng.choices(variables, weights)[0]
        return 1 << one | 1 << rng.choice(list(members(self.rows[one])))

    def weightiest(self, among: int = -1) -> int | None:
        """Choose a pair of which both still have most partners to be tried with; None if there is
        no pair, or a single fault is open. ``among``: both are of these variables."""
        rows = {v: row & among for v, row in self.rows.items() if row & among and among >> v & 1}
        if self.singles or not rows:
            return None
        one = max(rows, key=lambda each: (self.rows[each].bit_count(), each))
        others = members(rows[one])
        return 1 << one | 1 << max(others, key=lambda each: (self.rows[each].bit_count(), each))

    def inside(self, variables: int) -> Part:
        """Look at what is open among these variables only."""
        part = Part(self)
        for each in members(variables):
            part.add(each)
        return part

    def covered_by(self, block: int, variables: Iterable[int]) -> int:
        """Count what surviving this block, which is of these variables, would show of them."""
        apart = self.apart
        return sum((apart[each] & block).bit_count() for each in variables if each in apart)

    def _share(self, now: Hypotheses) -> None:
        """Let the clauses that are new narrow the rows; if old ones have changed, begin anew."""
        clauses, known = now.sets, len(self._clauses)
        meaning = (now.language.version, now.equation.satisfied, now.selectable)
        if meaning != self._meaning or clauses[:known] != self._clauses:
            self._common = dict.fromkeys(members(now.selectable), now.selectable)
            self._meaning, known = meaning, 0
        for clause in clauses[known:]:
            for variable in members(now.selectable & ~clause):
                self._common[variable] &= clause
        self._clauses = list(clauses)

    def _restrict(self, now: Hypotheses) -> None:
        """Leave out what fails, may not be tried, or is not minimal."""
        alone = now.selectable
        for clause in self._clauses:
            alone &= clause
        barred, pairs = _failing(now)
        self.singles = alone & ~barred
        alive = now.selectable & ~alone & ~barred
        if now.max_size == 1:
            self.rows, self.apart = {}, dict.fromkeys(members(self.singles), self.singles)
            return
        usable = ~barred
        known = {
            each: row & (usable ^ 1 << each)
            for each, row in self._common.items()
            if row and usable >> each & 1
        }
        for variable, others in pairs.items():
            if variable in known:
                known[variable] &= ~others
        self.apart = known
        for together in now.language.forbidden():
            if together.bit_count() == 2:
                self._close(together)
        self.rows = {each: row & alive for each, row in known.items() if alive >> each & 1}

    def _close(self, pair: int) -> None:
        for rows in (self.rows, self.apart):
            for each in members(pair):
                if each in rows:
                    rows[each] &= ~pair


class Part:
    """Some variables, and how much is open among them."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self.variables = self.singles = self.pairs = 0

    def adding(self, variable: int) -> tuple[int, int]:
        """Count the singles and the pairs that this variable would bring in."""
        row = self._pairs.rows.get(variable, 0)
        return self._pairs.singles >> variable & 1, (row & self.variables).bit_count()

    def add(self, variable: int) -> None:
        """Take it in."""
        singles, pairs = self.adding(variable)
        self.singles += singles
        self.pairs += pairs
        self.variables |= 1 << variable


def _failing(now: Hypotheses) -> tuple[int, Mapping[int, int]]:
    """Find the variables that fail alone, and per variable those that fail together with it."""
    alone, together = 0, dict[int, int]()
    down, whole = now.equation.down, not now.selectable & ~now.plain
    for failing in now.equation.failing:
        points = failing & ~down
        if whole and points.bit_count() > 2:
            continue  # no two variables bring that about
        for variable in members(now.language.carriers(points) & now.selectable):
            rest = points & ~now.language.expansions[variable]
            if not rest:
                alone |= 1 << variable
                continue
            others = now.selectable
            for point in members(rest):
                others &= now.language.carriers(1 << point)
                if not others:
                    break
            if others:
                together[variable] = together.get(variable, 0) | others
    return alone, together
