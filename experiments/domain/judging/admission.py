"""Admission in stages: how many devices may be treated, given how those before have fared.

What hurts nearly always hurts at once, so most of what a harmful experiment costs is treated while
nobody has reported yet. A few are let in at a time, and the next when it is known how they fared.
Nothing here decides anything: the tests hold for any rule of admission that looks at nothing but
requests that have begun.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ldfi.experiments.domain.settings import Thresholds

FIRST_OF_UNION: Final = 1
"""A set too large to be a finding hurts for no other purpose than to be narrowed."""
FIRST: Final = 2
"""Two failures are what a finding takes at least."""
WELL: Final = 14
"""So many in all when none of the first was hurt: about what *tolerated* takes."""
MORE: Final = 12
"""So many more each time after that, or half as many again: the longer all has gone well, the less
is at stake, and where many fail by themselves it takes a hundred."""
FEWEST: Final = 3
"""So many more at least, however little is lacking: each stage waits until those before have
reported."""
LEAP: Final = 4
"""So many times as many at most, where it is known how much of the evidence is there already."""


@dataclass(slots=True)
class Stages:
    """How far the admission of one experiment has come. ``allowed``: devices in all; 0 at first."""

    allowed: int = 0
    _full_since: float | None = None
    """When it was seen that as many are treated as may be."""
    _given_up: int = 0
    """Treated devices that have had time enough to report, and did not."""

    def over(self, now: float, outstanding: int, patience: float) -> bool:
        """Return whether it is known how those let in have fared, as far as it will be.

        ``outstanding``: those that have not reported. Who has not ``patience`` seconds after the
        last was let in is not waited for, neither now nor when the next have been let in.
        """
        self._full_since = now if self._full_since is None else self._full_since
        self._given_up = min(self._given_up, outstanding)
        if outstanding > self._given_up and now < self._full_since + patience:
            return False
        self._given_up, self._full_since = outstanding, None
        return True


def first(faults: int, max_size: int) -> int:
    """Return how many are let in at first, given how many faults there are and how many a finding
    may have."""
    return FIRST_OF_UNION if faults > max_size else FIRST


def following(admitted: int, counted: int, failed: int, lacking: float = math.inf) -> int:
    """Return how many may be treated in all, once it is known how the ``admitted`` have fared.

    ``counted``: in whose requests a fault fired; ``failed`` of them were hurt. Where a fault fires
    in few requests only, nothing is known yet, and twice as many are let in. Where it fires in some
    of them, so many more are let in that as many reach it, if the share is not less than it seems.
    ``lacking``: how many more have to count for *tolerated*; no more than that are let in.
    """
    if counted == 0:
        return 2 * admitted
    if failed == 0:
        reaching = min(1, (counted + FIRST) / (admitted + FIRST))
        well, more = round(WELL / reaching), round(MORE / reaching)
        more = max(well - admitted, more, admitted // 2)
        return admitted + math.ceil(min(more, max(FEWEST, lacking) / reaching))
    return admitted + (1 if 2 * failed >= counted else 2)


def least_lacking(evidence: float, counted: int, thresholds: Thresholds) -> float:
    """Return how many more devices *tolerated* takes at least, all being well from now on: each
    gives no more than -ln(1 - δ) of evidence. Infinite where nothing was weighed.

    ``evidence``: the logarithm of it that the ``counted`` have given.
    """
    if evidence == 0:
        return math.inf
    rest = -math.log(thresholds.alpha_tolerated) - evidence
    return max(rest / -math.log1p(-thresholds.delta), thresholds.min_samples - counted)


def still_lacking(admitted: int, shown: float) -> int:
    """Return how many may be treated in all where *tolerated* lacks some of its evidence.

    ``shown``: the part of it that the ``admitted`` have given. Evidence grows with their number, so
    as many as it takes are let in at once; where none of it is there, no more than otherwise.
    """
    if shown <= 0:
        return following(admitted, admitted, 0)
    return max(admitted + MORE, math.ceil(min(LEAP, 1 / shown) * admitted))
