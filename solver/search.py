"""What a strategy is given to choose from."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ldfi.solver.bits import members
from ldfi.solver.deadline import Deadline
from ldfi.solver.errors import OutOfTime
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.open_hypotheses import Listing, Steps
from ldfi.solver.order import Fault
from ldfi.solver.pairs import Pairs
from ldfi.solver.sat import SatSolver

SAMPLE = 2000
"""How many hypotheses are listed to choose among."""
SOME = 4_000
"""Branches looked at where some hypotheses are as good as all."""
BRANCHING = 3
"""Up to this size hypotheses are listed by branching, beyond it SAT picks one."""


@dataclass(slots=True)
class Search:
    """The open hypotheses of one moment, with the means to find them in bounded time."""

    now: Hypotheses
    sat: SatSolver
    listing: Listing
    rng: random.Random
    deadline: Deadline
    attempts: Mapping[int, int]
    """Per proposal (mask of variables) that was inconclusive: how often."""
    max_attempts: int
    max_union: int | None
    costs: Mapping[Fault, float]
    likelihoods: Mapping[Fault, float]
    known_pairs: Pairs
    max_faults: int | None = None
    """The most point faults that one proposal may bring about."""
    mute: bool = False
    """Whether failures of more than one fault name no suspects."""
    interacting: int = 0
    """Variables that were seen to fail together although more of them survive."""
    named: Collection[int] = ()
    """Sets of variables blamed for failures of more than that."""
    suspected: list[int] = field(default_factory=list)
    """Sets of variables blamed for failures and larger than the bound: better not all in one."""
    optimal: bool = True
    """Whether what was found last is proved to be smallest (or that nothing is left)."""

    def sample(self, size: int | None = None, steps: int | None = None) -> list[int]:
        """Sample minimal open hypotheses up to this size, at most :data:`SAMPLE`, untried ones
        only.

        ``steps``: look at no more branches than this, when some are as good as all.
        """
        listed = self.listing.follow(self.now, self._late)
        if listed is None:
            stop = self._late if steps is None else Steps(steps, self._late)
            found = list(islice(self.now.minimal(max_size=size, rng=self.rng, stop=stop), SAMPLE))
        else:
            found = [each for each in listed if size is None or each.bit_count() <= size]
        fresh = sorted(each for each in found if each not in self.attempts)
        return fresh if len(fresh) <= SAMPLE else sorted(self.rng.sample(fresh, SAMPLE))

    def inside(self, variables: int) -> list[int]:
        """Find some minimal open hypotheses made of these variables, at most :data:`SAMPLE`."""
        listed = self.listing.follow(self.now, self._late)
        if listed is None:
            stop = Steps(SOME, self._late)
            return list(islice(self.now.minimal(within=variables, stop=stop), SAMPLE))
        return [each for each in listed if not each & ~variables][:SAMPLE]

    def pairs(self) -> Pairs | None:
        """Return what is open of one and two variables; None where that is not all there is."""
        return self.known_pairs if self.known_pairs.follow(self.now, self.attempts) else None

    @property
    def most_at_once(self) -> int | None:
        """The most variables in a union; None: all of them."""
        limits = [each for each in (self.max_union, self.max_faults) if each is not None]
        return min(limits, default=None)

    def explained(self, failing: int) -> bool:
        """Return whether what is to blame for this failure (points) is larger than the bound."""
        reach = failing | self.now.equation.down
        return any(not self.now.expand(each) & ~reach for each in self.suspected)

    def convicted(self, failing: int) -> bool:
        """Return whether a failure named just these points, and they were then seen to fail
        alone."""
        if self.mute:
            return False
        alone = failing & ~self.now.equation.down
        return any(self.now.expand(each) == alone for each in self.named)

    def carries(self, variables: int) -> bool:
        """Return whether one experiment can bring all of these about."""
        most = self.max_faults
        return most is None or self.now.expand(variables).bit_count() <= most

    def filled_by(self, points: int) -> bool:
        """Return whether an experiment that brings these about can bring nothing else about."""
        return self.max_faults is not None and points.bit_count() >= self.max_faults

    def _late(self) -> bool:
        return self.deadline.passed

    def smallest(self) -> list[int]:
        """Find the smallest open hypotheses that were not tried in vain; else the least tried one.

        Within small bounds branching is faster than SAT, and it lists them all. Raises OutOfTime if
        none was found in time and none was excluded.
        """
        if self.costs:
            cheapest = self.cheapest()
            return [cheapest] if cheapest is not None else self.retries()
        bound = self.now.max_size
        if self.now.walked:
            return self._least(self.sample()) or self.retries()
        for size in range(1, min(BRANCHING, bound or BRANCHING) + 1):
            found = self._least(self.sample(size))
            if found:
                return found
        if bound is None or bound > BRANCHING:
            answer = self.sat.smallest(self.now, self.deadline, list(self.attempts))
            self.optimal = answer.optimal
            if answer.hypothesis is not None:
                return [answer.hypothesis]
        return self.retries()

    def _least(self, found: list[int]) -> list[int]:
        self.optimal = not self.deadline.passed
        if not found and self.deadline.passed:
            raise OutOfTime(
                "no hypothesis was found within time_limit, and none ruled out; allow more time"
            )
        least = min((each.bit_count() for each in found), default=0)
        return [each for each in found if each.bit_count() == least]

    def cheapest(self) -> int | None:
        """Find the open hypothesis of least cost that was not tried in vain, by branch and bound.

        Costs are positive, so whatever costs as much as the best one known cannot get better.
        """
        best: int | None = None
        least = float("inf")
        found = self.now.minimal(
            stop=lambda: self.deadline.passed,
            allowed=lambda variables: self.cost(variables) < least,
        )
        for each in found:
            if each not in self.attempts and self.cost(each) < least:
                best, least = each, self.cost(each)
        self.optimal = not self.deadline.passed
        if best is None and not self.optimal:
            raise OutOfTime(
                "no hypothesis was found within time_limit, and none ruled out; allow more time"
            )
        return best

    def retries(self) -> list[int]:
        """Find the open hypothesis that was inconclusive least often, if it may be tried again."""
        again = sorted(
            (count, variables.bit_count(), variables)
            for variables, count in self.attempts.items()
            if count < self.max_attempts and self.now.is_open(variables) and self.fits(variables)
        )
        return [again[0][2]] if again else []

    @property
    def given_up(self) -> list[int]:
        """Return the proposals that are not tried again, and spoil what they are united with."""
        return [each for each, count in self.attempts.items() if count >= self.max_attempts]

    def fits(self, variables: int) -> bool:
        """Return whether a set of variables is within the bound on the size of hypotheses."""
        bound = self.now.max_size
        return bound is None or variables.bit_count() <= bound

    def cost(self, variables: int) -> float:
        """Return what trying these costs: one per variable unless said otherwise."""
        names = self.now.language.names
        return sum(self.costs.get(names[each], 1.0) for each in members(variables))
