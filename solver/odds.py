"""How likely something is to fail, as far as what is open can tell.

Where failures name no suspects, an experiment teaches most if it fails as often as not. Before
anything is known a class has some single faults and some pairs that hurt (:data:`SINGLES`,
:data:`PAIRS`), and each open hypothesis is as likely to be one of these as any other of its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldfi.solver.bits import members
from ldfi.solver.pairs import Pairs, Part
from ldfi.solver.search import Search

SINGLES = 3.0
PAIRS = 2.0
"""How many failing sets of one and of two faults a class has: of planted and of real ones a few."""
LAST = 0.3
"""How many more there are, if so many were found already."""
SURVIVE = 0.55
"""How likely a part is to survive. More than half, for a failed request hurts."""


@dataclass(frozen=True, slots=True)
class Odds:
    """How many failing sets are expected for each open hypothesis: of one fault, and of two."""

    single: float
    pair: float

    @classmethod
    def of(cls, search: Search, pairs: Pairs) -> Odds:
        """Judge by how many are open, and how many were found."""
        sizes = [each.bit_count() for each in search.now.equation.failing]
        singles = pairs.singles.bit_count()
        return cls(
            max(SINGLES - sizes.count(1), LAST) / max(singles, 1),
            max(PAIRS - sizes.count(2), LAST) / max(len(pairs) - singles, 1),
        )

    def expected(self, part: Part) -> float:
        """Return how many failing sets are expected in a part."""
        return part.singles * self.single + part.pairs * self.pair

    def take(self, part: Part, variable: int) -> bool:
        """Return whether a part would still survive about as often as not with this variable in
        it."""
        if not part.singles and not part.pairs:
            return True
        return self.expected(part) + self._more(part, variable) <= -math.log(SURVIVE)

    def _more(self, part: Part, variable: int) -> float:
        singles, pairs = part.adding(variable)
        return singles * self.single + pairs * self.pair

    def part_of(self, whole: Part, pairs: Pairs, search: Search) -> int:
        """Choose a part of what is known to fail that survives about as often as not; at least one
        open hypothesis is inside."""
        within = self.expected(whole)
        wanted = -math.log(SURVIVE * (1 - math.exp(-within)) + math.exp(-within))
        part = Part(pairs)
        variables = [
            each
            for each in members(whole.variables)
            if pairs.singles >> each & 1 or pairs.rows.get(each, 0) & whole.variables
        ]
        search.rng.shuffle(variables)
        for variable in variables:
            if part.singles or part.pairs:
                missing = wanted - self.expected(part)
                if self._more(part, variable) - missing > max(missing, 0.0):
                    continue
            if search.now.allowed(part.variables | 1 << variable):
                part.add(variable)
        return part.variables
