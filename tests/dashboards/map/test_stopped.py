"""The page of a class says why nothing is tried on it: a dependency that is dead, by its name."""

from __future__ import annotations

import asyncio

from ldfi.dashboards.map.class_story import stopped_by
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.testing.world import Nodes, World
from tests.dashboards.seeded import LAYOUT, PROGRAMS

BOOT = {"/boot": PROGRAMS["/boot"]}


def test_a_dead_dependency_is_the_reason_and_comes_before_what_follows_from_it() -> None:
    with World.in_memory(BOOT) as world:
        for _ in range(12):
            world.step()
        campaign = world.start()
        world.nodes = lambda _: Nodes(gone=frozenset({LAYOUT.point}))
        for _ in range(90):
            world.step()
        known = world.engine.catalogue.classes["GET /boot"]
        knowledge = Knowledge("GET /boot", campaign.settings, known.traffic)
        now = asyncio.run(world.engine.current_state(world.now))
        waiting = [campaign.waiting[each] for each in campaign.waiting if each == "GET /boot"]
        assert waiting

        cause, follows, *others = stopped_by(knowledge, now, waiting)

        assert cause.startswith("layout fails now: ")
        assert follows.startswith("steady state does not hold: ")
        assert not [each for each in others if each.startswith("steady state")]

        world.nodes = lambda _: Nodes()
        for _ in range(60):
            world.step()
        now = asyncio.run(world.engine.current_state(world.now))
        assert stopped_by(knowledge, now, ()) == ()
