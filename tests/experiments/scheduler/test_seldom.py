"""Devices that ask often have a cache; those that ask seldom are hurt, and are most of all."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import pytest
from sqlalchemy import select

from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.context import Arm
from ldfi.testing.programs import Caller, CallFailed
from ldfi.testing.world import QUICK, Fate, World

OFTEN, SELDOM = 150, 3_000
"""Devices: the former send nine requests of ten, so each asks 180 times as often as the latter."""
FEW = replace(QUICK, max_size=1, rechecks=0, confirm=False, members=1_000, window=120.0)
BOUNDS: Settings = replace(FEW, delta=0.3, treatment=0.3, control=0.5)


class Uneven(World):
    def device(self, number: int) -> str:
        if number % 10:
            return f"often{number * 7919 % OFTEN}"
        return f"seldom{number // 10 % SELDOM}"


def serve(request: Caller) -> None:
    try:
        request.call("optional")
    except CallFailed:
        return


def verdicts(world: World) -> list[tuple[str | None, str]]:
    with world.database.read() as session:
        rows = session.scalars(select(ExperimentRow).order_by(ExperimentRow.created_at))
        return [(each.verdict, each.reason) for each in rows]


@pytest.mark.parametrize("share", [0.6, 0.0])
def test_what_hurts_those_that_ask_seldom_is_not_tolerated(share: float) -> None:
    def noise(device: str, arm: Arm | None, now: float) -> Fate:
        hurt = arm == "treatment" and device.startswith("seldom")
        return Fate(fails=hurt and crc32(device.encode()) % 100 < 100 * share)

    with Uneven.in_memory({"/": serve}, noise=noise) as world:
        for _ in range(30):
            world.step(60)
        campaign = world.start(BOUNDS)
        world.finish(campaign)
        told = verdicts(world)
    assert told
    assert ("tolerated" in {verdict for verdict, _ in told}) == (not share), told
