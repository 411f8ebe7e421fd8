"""Replaying a derivation: whether its steps decide every set within the bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ldfi.checker.solving.evidence import World
from ldfi.checker.solving.language import members

SAID = 5
"""Wrong steps that are said; what follows a wrong step is most often wrong as well."""


@dataclass
class Walk:
    """What came of it. ``unknown``: whether it leaves out or does not reach anything."""

    problems: list[str] = field(default_factory=list)
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """A set of variables, those that are left out beside it, and how many more may join."""

    variables: int
    left_out: int
    left: int | None


def replay(world: World, data: dict[str, Any], steps: list[Any]) -> Walk:
    """Follow the steps through all sets of variables within the bounds.

    One step belongs to one set. Where the step names runs that show the set to be survived, only
    sets with a variable that their clauses offer are left to decide, one variable after the other.
    """
    replayer = _Replay(world, data)
    walk = Walk()
    todo = [_Place(0, 0, data["axioms"]["bounds"]["max_size"])]
    for position, step in enumerate(steps):
        if not todo:
            walk.problems.append(f"the derivation goes on after its end, at step {position + 1}")
            return walk
        place = todo.pop()
        world.effort.spend(1)
        if step == "?":
            walk.unknown = True
            continue
        more = replayer.follow(place, step)
        if isinstance(more, str):
            said = ", ".join(world.language.names[each] for each in members(place.variables))
            walk.problems.append(f"step {position + 1} does not decide {{{said}}}: {more}")
            if len(walk.problems) == SAID:
                return walk
        else:
            todo += reversed(more)
    walk.unknown = walk.unknown or bool(todo)
    return walk


class _Replay:
    """Single steps."""

    def __init__(self, world: World, data: dict[str, Any]) -> None:
        self.world, self.language = world, world.language
        self.minimal = [self.language.bits(each) for each in data["minimal_failing_sets"]]
        self.open = [self.language.bits(each) for each in data["open"]]
        self._offers: dict[int, int] = {}

    def follow(self, place: _Place, step: Any) -> list[_Place] | str:
        """Return what is left to decide after this step; or why it decides nothing."""
        if isinstance(step, str):
            return self._leaf(place, step)
        runs = step if isinstance(step, list) else [step]
        if not runs or not set(map(type, runs)) <= {int}:
            return "it names no runs"
        if len(runs) > 1 and place.left != 1:
            return "several runs decide only where one more fault fits"
        touched = self.language.touched(place.variables)
        self.world.effort.spend(place.variables.bit_count())
        for run in runs:
            if not self.world.shows(run, touched):
                return f"run {run} does not show that it is survived"
        return [] if place.left == 0 else self._further(place, runs)

    def _leaf(self, place: _Place, step: str) -> list[_Place] | str:
        kind, number = step[:1], step[1:]
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            return f"no step is written {step[:20]!r}"
        position = int(number)
        if kind == "b" and self.world.firm:
            bad = self.world.bad.get(position)
            if bad is None or bad.points & ~self.language.touched(place.variables):
                return f"run {position} did not fail of less"
            return []
        listed = {"o": self.open, "f": [] if self.world.firm else self.minimal}.get(kind, [])
        if position >= len(listed) or listed[position] & ~place.variables:
            return f"{step} is not listed, or is not part of it"
        return []

    def _further(self, place: _Place, runs: list[int]) -> list[_Place]:
        left_out = place.left_out | place.variables
        offers = self.language.offered & ~left_out
        for run in runs:
            offers &= self._offered_by(run)
        left = None if place.left is None else place.left - 1
        further = []
        for number in members(offers):
            more = place.variables | 1 << number
            self.world.effort.spend(1)
            if not self.language.excluded(more, number):
                further.append(_Place(more, left_out, left))
            left_out |= 1 << number
        return further

    def _offered_by(self, run: int) -> int:
        """Return the variables without which this run shows everything to be survived."""
        if run not in self._offers:
            clause = self.world.clause_of.get(run)
            if clause is not None:
                offers = self.language.meeting(clause.points)
            elif self.world.monotone:
                everything = (1 << len(self.language.names)) - 1
                known = self.world.survived[run] | self.language.down
                offers = self.language.meeting(everything & ~known)
            else:
                offers = self.language.offered
            self._offers[run] = offers
        return self._offers[run]
