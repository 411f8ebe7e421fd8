"""Re-checks: how far does "more faults never help" hold?

Sets that were inferred to be safe are drawn by lot and tried after all. A few of these, and what
came of them, give the rate that the certificate prints.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
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
    """Draws them. ``tried``: every set that an experiment with a verdict has tried."""

    tried: set[Faults] = field(default_factory=set)

    def draw(self, now: Hypotheses, rng: random.Random) -> Faults | None:
        """Draw a set that is inferred to be safe and was never run; None if none was met."""
        variables = list(members(now.selectable))
        largest = min(len(variables), now.max_size or len(variables))
        for _ in range(DRAWS if largest else 0):
            drawn = mask_of(rng.sample(variables, rng.randint(1, largest)))
            if now.allowed(drawn) and now.equation.is_safe(now.expand(drawn)):
                faults = now.language.faults(drawn)
                if faults not in self.tried:
                    return faults
        return None


def rechecks(runs: Iterable[Run], empty: Equation) -> list[bool]:
    """Say of each run whether it was a re-check: the first experiment with a verdict on a set that
    the runs before it showed to be safe.

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
