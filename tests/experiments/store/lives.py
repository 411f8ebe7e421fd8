"""Databases in which somebody has lived: each kind of life is lived once, and copied for each test.

A copy's engine is another one: what it knows it has read, as after a restart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

import pytest

from ldfi.checker.head import SigningKey
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.testing.world import QUICK, World
from tests.experiments.drawn import drawing

Living = Callable[[Database], tuple[World, Campaign]]


@dataclass(frozen=True, slots=True)
class Life:
    """What was lived: the database where it is kept, when it ended, and the campaign's id."""

    kept: str
    now: float
    campaign: str


@dataclass
class Lives:
    """Lives on one kind of server. ``new`` makes an empty database, ``copied`` one like another
    that nobody has open; both return its address. ``known``: by how they were lived."""

    new: Callable[[], str]
    copied: Callable[[str], str]
    known: dict[str, Life] = field(default_factory=dict)

    @contextmanager
    def begun(self) -> Iterator[Again]:
        """Give what the tests ask for a life; what they got is closed with the block."""
        with ExitStack() as opened:

            def again(living: Living, *keys: SigningKey) -> tuple[World, Campaign]:
                name = f"{living.__qualname__} {[key.id for key in keys]}"
                if name not in self.known:
                    self.known[name] = self._live(living, keys)
                life = self.known[name]
                database = opened.enter_context(closing(Database(self.copied(life.kept), keys)))
                world = World(database, engine=Engine(database, now=life.now))
                world.now = life.now
                return world, world.engine.scheduler.state.campaigns[life.campaign]

            yield again

    def _live(self, living: Living, keys: tuple[SigningKey, ...]) -> Life:
        url = self.new()
        with (
            pytest.MonkeyPatch.context() as patch,
            closing(Database(url, keys)) as database,
        ):
            # alike in each run, whichever test is first: keys are others each time
            drawing(random.Random(living.__qualname__), patch)
            world, campaign = living(database)
        return Life(url, world.now, campaign.id)


def after_a_campaign(database: Database) -> tuple[World, Campaign]:
    """Live through a campaign, start another, and stop the service; return the other one."""
    world = World(database)
    world.finish(world.start(QUICK))
    campaign = world.start(QUICK)
    world.engine.scheduler.shut_down("restart", world.now)
    return world, campaign


Again = Callable[..., tuple[World, Campaign]]
"""A life and the keys of its service: a world in a database of the test's own, as it was left."""
