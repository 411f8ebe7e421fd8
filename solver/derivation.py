"""Why every set within the bounds is decided, step by step: what a checker replays.

A walk over sets of variables, from the empty set. At a set that a good run shows to be survived it
goes on by the variables that the run's clause offers, one after the other: whoever contains none of
them is survived as well. Beside a variable, those that were gone on by before it are left out, so
no set is met twice. Where only one more variable fits, several runs are named together: only by
what all of their clauses offer is there anything to go on to.

The steps stand in the order in which the walk meets its sets, so that they need not name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ldfi.solver.bits import members
from ldfi.solver.hypotheses import Hypotheses

Step: TypeAlias = int | str | list[int]
"""The number of a run, or of several; ``f3``: contains the fourth minimal failing set; ``o2``: the
third open one; ``b7``: run 7 failed of less; ``?``: nothing is known, and it is not listed."""

LOOKS = 2_000_000
"""Clauses looked at, over all sets: about a second. What takes more is left out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one good run proves: every set that does not touch ``clause`` is survived.

    ``condition``: what has to fail as well. ``exactly``: these point faults alone, where nothing
    follows for less.
    """

    run: int
    clause: int
    offers: int
    condition: int = 0
    exactly: int | None = None


@dataclass(slots=True)
class Derivation:
    """One walk. ``labels``: sets of variables with the step that decides all that contain them.
    ``failing``: points that were seen to fail together, with the step."""

    now: Hypotheses
    shown: Sequence[Shown]
    labels: Iterable[tuple[int, str]]
    failing: Sequence[tuple[int, str]] = ()
    steps: list[Step] = field(default_factory=list, init=False)
    complete: bool = field(default=True, init=False)
    _looks: int = field(default=0, init=False)
    _hits: dict[int, int] = field(default_factory=dict, init=False)
    _about: dict[int, list[tuple[int, str]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for position, each in enumerate(self.shown):
            for point in members(each.clause):
                self._hits[point] = self._hits.get(point, 0) | 1 << position
        for variables, label in self.labels:
            for variable in members(variables):
                self._about.setdefault(variable, []).append((variables, label))
        self._walk(next((label for variables, label in self.labels if not variables), None))

    def _walk(self, root: str | None) -> None:
        todo: list[tuple[int, int, int]] = [(0, 0, -1)]
        while todo:
            variables, left_out, newest = todo.pop()
            label = root or self._label(variables, newest)
            if label is not None:
                self.steps.append(label)
                continue
            step, offers = self._survived(variables, left_out)
            self.steps.append(step)
            if self._looks > LOOKS:
                self.complete = False
                return
            following = []
            for variable in members(offers):
                more = variables | 1 << variable
                if self.now.admissible(more):
                    following.append((more, left_out, variable))
                left_out |= 1 << variable
            self._looks += offers.bit_count()
            todo += reversed(following)

    def _label(self, variables: int, newest: int) -> str | None:
        for part, label in self._about.get(newest, ()):
            if not part & ~variables:
                return label
        if self.failing:
            touched = self.now.expand(variables) | self.now.equation.down
            self._looks += len(self.failing)
            return next((label for part, label in self.failing if not part & ~touched), None)
        return None

    def _survived(self, variables: int, left_out: int) -> tuple[Step, int]:
        """Return the runs that prove this to be survived, and the variables that are left to branch
        on."""
        positions = self._showing(self.now.expand(variables) | self.now.equation.down)
        if not positions:
            self.complete = False
            return "?", 0
        bound = self.now.max_size
        left = None if bound is None else bound - variables.bit_count()
        if left == 0:
            return self.shown[positions[0]].run, 0
        offers = self.now.selectable & ~left_out & ~variables
        chosen: list[int] = []
        while offers:
            self._looks += len(positions)
            best = min(positions, key=lambda each: (self.shown[each].offers & offers).bit_count())
            fewer = offers & self.shown[best].offers
            if chosen and fewer == offers:
                break
            chosen.append(self.shown[best].run)
            offers = fewer
            if left != 1:
                break
        if len(chosen) > 1:
            return chosen, offers
        return (chosen[0] if chosen else self.shown[positions[0]].run), offers

    def _showing(self, touched: int) -> list[int]:
        """Return the runs' clauses that prove these points to be survived."""
        hit = 0
        for point in members(touched):
            hit |= self._hits.get(point, 0)
        missed = (1 << len(self.shown)) - 1 & ~hit
        self._looks += 1
        if self.now.equation.monotone:
            return list(members(missed))
        alone = touched & ~self.now.equation.down
        return [
            each
            for each in members(missed)
            if not self.shown[each].condition & ~touched
            and self.shown[each].exactly in (None, alone)
        ]


def shown_by(now: Hypotheses, clauses: Sequence[int], closed: Callable[[int], int]) -> list[Shown]:
    """Return what the good runs prove. ``clauses``: per clause the number of a run; ``closed``:
    that of the run whose support is not known."""
    equation, found = now.equation, []
    offered = iter(now.sets)  # of those that what is down does not hit, in their order
    for position, clause in enumerate(equation.clauses):
        if not equation.satisfied >> position & 1:
            offers = next(offered)
            found.append(Shown(clauses[position], clause, offers, equation.conditions[position]))
    everything = (1 << len(now.language.names)) - 1
    for each in sorted(equation.closed):
        if equation.monotone:
            clause = everything & ~each & ~equation.down
            found.append(Shown(closed(each), clause, _offers(now, clause)))
        else:
            found.append(Shown(closed(each), 0, now.selectable, exactly=each))
    return found


def _offers(now: Hypotheses, clause: int) -> int:
    return now.language.carriers(clause) & now.selectable
