"""The whole service over a socket, with devices and an edge that go on in real time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from fastapi import FastAPI

from ldfi.experiments.api.app import create_app
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.process.service import Service
from ldfi.experiments.process.tokens import Tokens
from tests.experiments.applications import GIVEN
from tests.experiments.world import World
from tests.fit.applications import served
from tests.lineage.programs import Call

STEP_SECONDS = 0.1


@dataclass
class Lively:
    """``url`` answers; ``traffic`` may be switched off, and then nothing asks for rules either.

    ``programs`` may be changed while it lives, as a release would.
    """

    url: str = ""
    traffic: bool = True
    programs: dict[str, Call] = field(default_factory=dict)

    async def live(self, app: FastAPI) -> None:
        """Some traffic again and again, in the event loop of the service."""
        world = World(app.state.engine, self.programs or None)
        while True:
            world.now = time.time()
            if self.programs:
                world.programs = dict(self.programs)
            if self.traffic:
                world.step(requests=40, seconds=0.0)
            await asyncio.sleep(STEP_SECONDS)


@contextmanager
def lively(database_url: str) -> Iterator[Lively]:
    """The service with the world of :mod:`tests.experiments.world` around it."""
    world = Lively()
    tokens = Tokens(",".join(f"{role}:{token}" for role, token in GIVEN.items()))
    limits = Limits(members_per_hour=100_000, members_per_day=100_000)
    app = create_app(Service(tokens, database_url, lease=3.0, quiet=0.1, limits=limits))
    without = app.router.lifespan_context

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with without(app):
            task = asyncio.create_task(world.live(app))
            yield
            task.cancel()

    app.router.lifespan_context = running
    with served(app) as url:
        world.url = url
        yield world
