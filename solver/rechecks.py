"""Re-checks: how far does "more faults never help" hold?

Sets that were inferred to be safe are drawn at random and tried after all. A few of these, and what
came of them, give the rate that the certificate prints.

What can be said of the share of such sets that are not safe is no better than what can be said of
single faults, or of more at once, whichever were tried least. So these are drawn next, and single
faults where both were tried as often; among sets of a sort each is as likely as any other.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ldfi.solver.bits import mask_of, members
from ldfi.solver.equation import Equation
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.order import Faults
from ldfi.solver.runs import Run

DRAWS = 200
"""Random sets looked at for one that was inferred to be safe."""


@dataclass(slots=True)
class Rechecks:
    """Draws them. ``tried``: every set that an experiment with a verdict has tried; ``made``: how
    many of them were re-checks, of single faults (True) and of more at once."""

    tried: set[Faults] = field(default_factory=set)
    made: Counter[bool] = field(default_factory=Counter)

    def note(self, injected: Faults, *, safe: bool) -> None:
        """Take in that a set was tried. ``safe``: it was inferred to be, until then."""
        self.made[len(injected) == 1] += safe and injected not in self.tried
        self.tried.add(injected)

    def draw(self, now: Hypotheses, rng: random.Random) -> Faults | None:
        """Draw a set that is inferred to be safe and was never run; None if none was met."""
        for single in sorted((True, False), key=lambda each: (self.made[each], not each)):
            for drawn in _drawn(now, rng, single=single):
                if now.allowed(drawn) and now.equation.is_safe(now.expand(drawn)):
                    faults = now.language.faults(drawn)
                    if faults not in self.tried:
                        return faults
        return None


def _drawn(now: Hypotheses, rng: random.Random, *, single: bool) -> Iterator[int]:
    """Draw sets within the bounds: all single faults, or some of the larger sets, of which any is
    as likely as any other where the bounds leave few sizes."""
    variables = list(members(now.selectable))
    if single:
        yield from (mask_of([each]) for each in rng.sample(variables, len(variables)))
        return
    largest = min(len(variables), now.max_size or len(variables))
    sizes = range(2, largest + 1)
    ways = [math.comb(len(variables), size) if now.max_size else 1 for size in sizes]
    for _ in range(DRAWS if ways else 0):
        yield mask_of(rng.sample(variables, rng.choices(sizes, ways)[0]))


def rechecks(runs: Iterable[Run], empty: Equation) -> list[bool]:
    """Return for each run whether it was a re-check: the first experiment with a verdict on a set
    that the runs before it showed to be safe.

    ``empty``: an equation that knows nothing yet. Cautions are heeded from the beginning.
    """
    listed, known = list(runs), set()
    for run in listed:
        if run.origin == "caution":
            empty.learn(run)
    marks = []
    for run in listed:
        mark = False
        if run.origin == "injected" and run.good is not None and run.injected not in known:
            known.add(run.injected)
            expansion = empty.language.expand(run.injected)
            mark = empty.is_safe(expansion) and not empty.is_failing(expansion)
        marks.append(mark)
        empty.learn(run)
    return marks
