"""When the requests of a replay are due: pure functions of a profile, whatever the answers do.

An *open loop*: the k-th request is due when the profile says so, even where nothing has answered
yet. Who waits for answers before asking again asks a slow server less, and spares it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ldfi.errors import InvalidReplay

STEPS: Final = 5
SOAK_RISE: Final = 0.05
"""Share of a soak in which its rate rises; then it stays."""
MOST_REQUESTS: Final = 5_000_000
"""Requests of one run: each is kept until it is over."""


class RateProfile(StrEnum):
    """How the rate runs: as it is, rising from nothing, in equal steps, or risen and then held."""

    CONSTANT = "constant"
    RAMP = "ramp"
    STEPS = "steps"
    SOAK = "soak"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds in which the rate goes evenly from ``begin`` to ``end``, in requests a second."""

    seconds: float
    begin: float
    end: float

    @property
    def requests(self) -> float:
        """Return how many are due in it, as a fraction."""
        return self.seconds * (self.begin + self.end) / 2


def stretches(profile: RateProfile, rate: float, seconds: float) -> tuple[Stretch, ...]:
    """Write a profile as stretches; ``rate`` is the highest. Raises InvalidReplay."""
    for name, value in (("rate", rate), ("duration", seconds)):
        if not 0 < value < math.inf:
            raise InvalidReplay(f"{name} must be greater than 0, got {value:g}")
    made = _made(profile, rate, seconds)
    if sum(each.requests for each in made) > MOST_REQUESTS:
        raise InvalidReplay(
            f"a run has {MOST_REQUESTS:,} requests at most: give a shorter duration, or drive a "
            "load generator with `ldfi replay export --k6`"
        )
    return made


def _made(profile: RateProfile, rate: float, seconds: float) -> tuple[Stretch, ...]:
    match profile:
        case RateProfile.CONSTANT:
            return (Stretch(seconds, rate, rate),)
        case RateProfile.RAMP:
            return (Stretch(seconds, 0.0, rate),)
        case RateProfile.STEPS:
            levels = [rate * (number + 1) / STEPS for number in range(STEPS)]
            return tuple(Stretch(seconds / STEPS, level, level) for level in levels)
        case RateProfile.SOAK:
            rise = seconds * SOAK_RISE
            return (Stretch(rise, 0.0, rate), Stretch(seconds - rise, rate, rate))


def arrivals(made: Iterable[Stretch]) -> Iterator[float]:
    """Yield the seconds at which requests are due: the k-th when k + ½ of them are, in order."""
    begun = before = 0.0
    number = 0
    for each in made:
        while (wanted := number + 0.5 - before) <= each.requests:
            yield begun + _when(each, wanted)
            number += 1
        begun += each.seconds
        before += each.requests


def _when(each: Stretch, wanted: float) -> float:
    """Return the time at which a stretch's n-th request is due."""
    slope = (each.end - each.begin) / each.seconds
    root = math.sqrt(max(0.0, each.begin**2 + 2 * slope * wanted))
    return min(each.seconds, 2 * wanted / (each.begin + root))
