"""What befalls requests besides what is injected: failures, and reports that are late or lost.

The same for simulated experiments (``benchmarks.honesty``) and for those that go through the whole
service (``benchmarks.honest_worlds``): a function for :class:`ldfi.testing.world.World`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from ldfi.fit.context import Arm
from ldfi.testing.world import Fate, Weather

QUICK, SLOWEST = 0.1, 5.0
"""Seconds until a failure is known, and a success at most: a fallback takes its time."""
STUBBORN: Final = 0.95
"""Share of its requests that a device fails which nearly always does, or one in a bad network."""
NETWORKS: Final = 25
BAD_SECONDS: Final = 10.0
"""For how long a network is bad."""
INCIDENT: Final = (4.0, 19.0)
"""Seconds after it was armed between which a quarter more fail, in both arms."""

By = Literal["", "device", "network"]


@dataclass(frozen=True)
class Sky:
    """Which weather there is. ``rate``: the share of requests that fail; in control it may be
    another one. ``lost``: of reports, whatever they say; ``muted``: of those of the treated.
    ``crashing``: of the treated, who fail and are never heard of. ``by``: whether failures come
    together: some devices fail nearly always and the others never, or everybody behind a network
    does while it is bad. ``counted``: outcomes are counted elsewhere, when requests end. ``slow``:
    the only arm whose successes are slow."""

    rate: float
    control: float | None = None
    lost: float = 0.0
    crashing: float = 0.0
    incident: bool = False
    by: By = ""
    counted: bool = False
    slow: Arm | None = None
    muted: float = 0.0

    def weather(self, rng: random.Random) -> Weather:
        """Make the weather of one experiment, that begins at 0."""
        place = rng.random()

        def befalls(device: str, arm: Arm | None, at: float) -> Fate:
            crashed = arm == "treatment" and rng.random() < self.crashing
            fails = crashed or rng.random() < self._chance(device, arm, at, place)
            quick = fails or self.slow not in {None, arm}
            late = QUICK if quick else rng.uniform(0.0, SLOWEST)
            muted = self.muted if arm == "treatment" else self.lost
            return Fate(fails, late, lost=crashed or rng.random() < max(muted, self.lost))

        return befalls

    def _chance(self, device: str, arm: Arm | None, at: float, place: float) -> float:
        rate = self.rate if arm == "treatment" or self.control is None else self.control
        if self.by == "device":
            return STUBBORN * (_drawn(place, device) < rate / STUBBORN)
        if self.by == "network":
            network = int(_drawn(place, device) * NETWORKS)
            bad = _drawn(place, f"{network} {at // BAD_SECONDS}") < rate / STUBBORN
            return STUBBORN * bad
        return rate + 0.25 * (self.incident and INCIDENT[0] <= at < INCIDENT[1])


@cache
def _drawn(place: float, what: str) -> float:
    """Draw a number between 0 and 1 for something, always the same in one place."""
    return random.Random(f"{place} {what}").random()
