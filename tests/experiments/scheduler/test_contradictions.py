"""Reports that contradict each other, and those of devices that no edge drew, through the service.

What each request came to is known; devices that failed say so, and the same request is praised as
well, by themselves or by somebody else, before or after.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import pytest

from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.fit.protocol.allocation import mark_of
from ldfi.testing.world import FOUND, QUICK, World


class Praised(World):
    """Every report of a failure has another one beside it, which says that all went well.

    ``by``: the device that sends it, itself where it is empty. ``before``: whether it comes first.
    """

    by, before = "", True

    def _deliver(self) -> None:
        for at, number, outcome in list(self._reports):
            if not outcome.success and outcome.error_code is None:
                self._reports.remove((at, number, outcome))
                heapq.heapify(self._reports)
                device = self.by or outcome.device
                mark = mark_of(self.by) if self.by else outcome.mark
                praise = replace(outcome, device=device, success=True, mark=mark)
                bad = replace(outcome, error_code="E1")
                said: list[Outcome] = [praise, bad] if self.before else [bad, praise]
                self.engine.receive_outcomes(said, self.now)
        super()._deliver()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("by", ["", "somebody else"])
def test_praise_masks_no_failure(*, by: str, before: bool) -> None:
    with Praised.in_memory() as world:
        world.by, world.before = by, before
        campaign = world.start(replace(QUICK, treatment=0.1, control=0.3))
        world.finish(campaign)
        found = world.findings()
        drops = world.engine.drops()
    assert {faults for faults, state in found.items() if state == "open"} == FOUND
    assert drops["join_not_drawn" if by else "join_contradiction"] > 0
