"""The steps of upgrades that are under way: one for each maintenance window that is open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ldfi.experiments.domain.gates.maintenance import Maintenance, Step
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.observation import Observation

KEPT: Final = 100
"""Steps that can still be asked about when they are over."""


@dataclass(slots=True)
class WatchedSteps:
    """By the id of the window. In memory: whoever takes over begins to watch anew."""

    known: dict[str, Step] = field(default_factory=dict)

    def of(self, window: Maintenance) -> Step:
        """Return the step of a window, as far as it was watched here."""
        step = self.known.get(window.id)
        if step is None:
            step = self.known[window.id] = Step(window)
            while len(self.known) > KEPT:
                del self.known[next(iter(self.known))]
        return step

    def pass_by(
        self,
        observation: Observation,
        known: KnownClass,
        windows: Iterable[Maintenance],
        now: float,
    ) -> None:
        """Take a request that was not injected into, before its class does."""
        for window in windows:
            if window.active(now):
                self.of(window).pass_by(observation, known, now)
