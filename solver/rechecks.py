"""Re-checks: how far does "more faults never help" hold?

Sets that were inferred to be safe are drawn by lot and tried after all. A few of these, and what
came of them, give the rate that the certificate prints.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ldfi.solver.bits import mask_of, members
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.order import Faults

DRAWS = 200
"""Random sets looked at for one that was inferred to be safe."""


@dataclass(slots=True)
class Rechecks:
    """``tried``: sets inferred to be safe that an experiment has tried since. ``violated``: those
    of them that failed."""

    tried: int = 0
    violated: int = 0
    _run: set[Faults] = field(default_factory=set)

    def draw(self, now: Hypotheses, rng: random.Random) -> Faults | None:
        """Draw a set that is inferred to be safe and was never run; None if none was met."""
        variables = list(members(now.selectable))
        largest = min(len(variables), now.max_size or len(variables))
        for _ in range(DRAWS if largest else 0):
            drawn = mask_of(rng.sample(variables, rng.randint(1, largest)))
            if now.allowed(drawn) and now.equation.is_safe(now.expand(drawn)):
                faults = now.language.faults(drawn)
                if faults not in self._run:
                    return faults
        return None

    def count(self, injected: Faults, now: Hypotheses, *, succeeded: bool) -> None:
        """Count a conclusive experiment, given what was known before it."""
        if injected in self._run:
            return
        self._run.add(injected)
        expansion = now.language.expand(injected)
        if now.equation.is_safe(expansion) and not now.equation.is_failing(expansion):
            self.tried += 1
            self.violated += not succeeded
