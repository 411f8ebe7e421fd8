"""A request that relies on 300 points in 30 services: as large as real ones get."""

from __future__ import annotations

import time
from typing import Final

from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import World

SERVICES, POINTS = 30, 300
PATH: Final = "/home"
CLASS: Final = f"GET {PATH}"


def program(services: int = SERVICES, points: int = POINTS) -> Call:
    """Each service calls its stores, and is called by the one a level above; five levels deep."""
    within = points // services

    def calls(number: int) -> tuple[Step, ...]:
        name = f"service-{number:02}"
        stores = [Call(f"{name}>db:SELECT:store-{at}/rows") for at in range(within - 1)]
        below = [each for each in range(2 * number + 1, 2 * number + 3) if each < services]
        steps = [Step("optional" if at % 3 else "critical", (c,)) for at, c in enumerate(stores)]
        for each in below:
            point = f"{name}>http:GET:service-{each:02}/parts/*"
            steps.append(Step("optional" if each % 2 else "critical", (Call(point, calls(each)),)))
        return tuple(steps)

    return Call("root", (Step("critical", (Call("edge>http:GET:service-00/parts/*", calls(0)),)),))


def store(url: str, requests: int = 80, services: int = SERVICES, points: int = POINTS) -> None:
    """Have the database at ``url`` know the class."""
    database, now = Database(url), time.time() - 600
    engine = Engine(database, now=now, lease=10.0)
    world = World(database, {PATH: program(services, points)}, engine=engine)
    world.now = now
    for _ in range(requests // 10):
        world.step(requests=10)
    for _ in range(5):
        world.step(requests=0, seconds=10.0)
    engine.scheduler.shut_down("it is over", world.now)
    database.close()
