"""What requests blame that fail by themselves is tried first, through the whole service."""

from __future__ import annotations

import itertools
from dataclasses import replace

from sqlalchemy import select

from ldfi.experiments.store.schema import ExperimentRow
from ldfi.testing.programs import Caller, Unserved
from ldfi.testing.world import World
from tests.kit.campaigns import SWIFT

SETTINGS = replace(SWIFT, treatment=0.3, control=0.3, min_traffic=200)


def test_what_fails_now_and_then_and_hurts_is_the_first_experiment_and_alone() -> None:
    numbers = itertools.count(1)

    def layout(_: Caller) -> None:
        if next(numbers) % 25 == 0:
            raise Unserved("by itself")

    def boot(request: Caller) -> None:
        for point in ("banner", "layout", "title", "footer"):
            request.call(point, layout if point == "layout" else None)

    with World.in_memory({"/boot": boot}) as world:
        campaign = world.start(SETTINGS)
        world.finish(campaign)
        with world.database.read() as session:
            rows = session.scalars(select(ExperimentRow).order_by(ExperimentRow.armed_at))
            tried = [row.hypothesis for row in rows if row.purpose == "explore"]
        assert tried[0] == ["error@layout"]
        assert world.findings() == {
            (f"error@{point}",): "open" for point in ("banner", "layout", "title", "footer")
        }
