"""The next hypothesis by SAT: one incremental solver per request class.

Every clause of the failure equation sits behind a selector, so that a clause that widens is retired
and replaced while everything learnt meanwhile is kept. A totalizer counts the chosen variables; its
outputs are assumptions, so one solver answers for every bound. A time limit interrupts the search;
what is returned then is a minimal hypothesis, but not proved to be a smallest one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pysat.card import ITotalizer
from pysat.solvers import Glucose4

from ldfi.solver.bits import members
from ldfi.solver.deadline import Deadline
from ldfi.solver.hypotheses import Hypotheses


@dataclass(frozen=True, slots=True)
class Answer:
    """A hypothesis (mask of variables) or None, and whether that is proved.

    ``optimal``: no smaller hypothesis exists; with None: none exists within the bound at all.
    """

    hypothesis: int | None
    optimal: bool


class SatSolver:
    """Finds smallest hypotheses; follows the :class:`Hypotheses` it is shown."""

    def __init__(self) -> None:
        self._translated = -1
        self._floor: int
        """No hypothesis is smaller than this."""
        self._reset()

    def smallest(self, now: Hypotheses, deadline: Deadline, avoid: Iterable[int] = ()) -> Answer:
        """Find a smallest open hypothesis that contains none of ``avoid`` (masks of variables)."""
        self._follow(now)
        avoiding = [self._avoid(each) for each in avoid]
        assumptions = [*self._selectors.values(), *avoiding]
        bound = now.max_size
        best: int | None = None
        while True:
            found = self._solve(assumptions, bound, deadline)
            if found is None:
                return Answer(best, optimal=False)
            if not found:
                if bound is not None and not avoiding:
                    self._floor = max(self._floor, bound + 1)
                return Answer(best, optimal=True)
            best = _shrink(self._model(), now)
            if best.bit_count() <= max(self._floor, 0 if not now.sets else 1):
                return Answer(best, optimal=True)
            bound = best.bit_count() - 1

    def _reset(self) -> None:
        self._solver = Glucose4(incr=False)
        self._top = 0
        self._variable: list[int] = []
        self._touched: dict[int, int] = {}
        self._selectors: dict[int, int] = {}
        self._masks: dict[int, int] = {}
        self._blocked: set[int] = set()
        self._banned = 0
        self._avoided: dict[int, int] = {}
        self._together: set[int] = set()
        self._totalizer: ITotalizer | None = None
        self._counted = 0
        self._floor = 0

    def _fresh(self) -> int:
        self._top += 1
        return self._top

    def _follow(self, now: Hypotheses) -> None:
        if self._translated != now.language.version:
            self._solver.delete()
            self._reset()
            self._translated = now.language.version
        while len(self._variable) < len(now.language.names):
            self._variable.append(self._fresh())
        banned = ~now.selectable & ((1 << len(self._variable)) - 1)
        for variable in members(banned & ~self._banned):
            self._solver.add_clause([-self._variable[variable]])
        self._banned |= banned
        for together in now.language.forbidden():
            if together not in self._together:
                self._together.add(together)
                self._solver.add_clause([-self._variable[each] for each in members(together)])
        self._follow_clauses(now)
        down = now.equation.down
        for failing in now.equation.failing:
            if failing not in self._blocked:
                self._blocked.add(failing)
                points = members(failing & ~down)
                self._solver.add_clause([-self._touch(point, now) for point in points])

    def _follow_clauses(self, now: Hypotheses) -> None:
        position = -1
        for number in range(len(now.equation.clauses)):
            if now.equation.satisfied >> number & 1:
                old = self._selectors.pop(number, None)
                if old is not None:
                    self._solver.add_clause([-old])
                    self._floor = 0
                continue
            position += 1
            mask = now.sets[position]
            if self._masks.get(number) == mask:
                continue
            if number in self._selectors:
                self._solver.add_clause([-self._selectors[number]])
                self._floor = 0
            self._masks[number] = mask
            selector = self._selectors[number] = self._fresh()
            self._solver.add_clause([-selector, *(self._variable[each] for each in members(mask))])

    def _touch(self, point: int, now: Hypotheses) -> int:
        """Return the SAT variable that says "this point fault happens"."""
        known = self._touched.get(point)
        if known is None:
            carriers = now.language.carriers(1 << point)
            if carriers == 1 << point:
                known = self._variable[point]
            else:
                known = self._fresh()
                for carrier in members(carriers):
                    self._solver.add_clause([-self._variable[carrier], known])
            self._touched[point] = known
        return known

    def _avoid(self, variables: int) -> int:
        known = self._avoided.get(variables)
        if known is None:
            known = self._avoided[variables] = self._fresh()
            self._solver.add_clause(
                [-known, *(-self._variable[each] for each in members(variables))]
            )
        return known

    def _at_most(self, bound: int) -> list[int]:
        """Make assumptions that bound the number of variables chosen."""
        if bound >= len(self._variable):
            return []
        if bound == 0:
            return [-variable for variable in self._variable]
        if self._totalizer is None:
            self._totalizer = ITotalizer(self._variable, bound, self._top)
            clauses = self._totalizer.cnf.clauses
        elif self._counted < len(self._variable):
            fresh = self._variable[self._counted :]
            bound_now = max(bound, self._totalizer.ubound)
            self._totalizer.extend(lits=fresh, ubound=bound_now, top_id=self._top)
            clauses = self._totalizer.cnf.clauses[-self._totalizer.nof_new :]
        elif bound > self._totalizer.ubound:
            self._totalizer.increase(ubound=bound, top_id=self._top)
            new = self._totalizer.nof_new
            clauses = self._totalizer.cnf.clauses[-new:] if new else []
        else:
            clauses = []
        self._counted = len(self._variable)
        self._top = max(self._top, self._totalizer.top_id)
        for clause in clauses:
            self._solver.add_clause(clause)
        return [-self._totalizer.rhs[bound]]

    def _solve(self, assumptions: list[int], bound: int | None, deadline: Deadline) -> bool | None:
        """Return whether there is a model; None if time ran out."""
        if bound is not None:
            assumptions = [*assumptions, *self._at_most(bound)]
        self._solver.clear_interrupt()
        deadline.on_pass(self._solver.interrupt)
        try:
            answer = self._solver.solve_limited(assumptions=assumptions, expect_interrupt=True)
        finally:
            deadline.forget(self._solver.interrupt)
        return None if answer is None else bool(answer)

    def _model(self) -> int:
        model = self._solver.get_model()
        mask = 0
        for number, variable in enumerate(self._variable):
            # A variable that no clause mentions is not in the model.
            if variable <= len(model) and model[variable - 1] > 0:
                mask |= 1 << number
        return mask


def _shrink(variables: int, now: Hypotheses) -> int:
    """Leave out what is not needed to hit every clause; what is left is minimal."""
    everything = (1 << len(now.sets)) - 1
    chosen = sorted(members(variables), key=lambda v: (now.hits.get(v, 0).bit_count(), v))
    for variable in chosen:
        hit = 0
        for other in members(variables & ~(1 << variable)):
            hit |= now.hits.get(other, 0)
        if hit == everything:
            variables &= ~(1 << variable)
    return variables
