"""Requests that share a circuit breaker or a pool: what is done to one is felt by the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import select

from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.testing.programs import Caller, CallFailed
from ldfi.testing.sharing import Breaker
from ldfi.testing.world import World

STARS = "api>http:GET:ratings/stars"
SETTINGS = Settings(
    kinds=("error",), treatment=0.1, control=0.1, min_traffic=50, settle=1.0, rechecks=0
)


def ended(world: World) -> list[ExperimentRow]:
    """What is decided or aborted, the oldest first."""
    with world.database.read() as session:
        query = select(ExperimentRow).where(ExperimentRow.state.in_(("decided", "aborted")))
        return list(session.scalars(query.order_by(ExperimentRow.created_at)))


def first_ended(world: World, limit: int = 600) -> ExperimentRow:
    """Let traffic go on in small steps until an experiment has ended."""
    for _ in range(limit):
        world.step(requests=4, seconds=0.1)
        if ended(world):
            return ended(world)[0]
    raise AssertionError("no experiment has ended")


def optional(breaker: Breaker | None = None) -> Callable[[Caller], None]:
    """An application that can do without ratings."""

    def boot(request: Caller) -> None:
        with suppress(CallFailed):
            if breaker is None:
                request.call(STARS)
            else:
                breaker.call(request, STARS)

    return boot


def test_what_few_requests_reach_any_more_is_not_tolerated() -> None:
    breaker = Breaker(failures=5, seconds=4, fatal=False)
    with World.in_memory({"/boot": optional(breaker)}) as world:
        world.start(replace(SETTINGS, window=60.0))
        row = first_ended(world)
        assert breaker.opened
    assert row.verdict == "inconclusive"
    assert re.fullmatch(
        r"treated requests stopped reaching the point: \d+ of \d+ did in the later part of the "
        r"experiment, (\d+) of \1 before the experiment",
        row.reason,
    )


def test_what_they_reach_as_before_is_tolerated() -> None:
    with World.in_memory({"/boot": optional()}) as world:
        world.start(SETTINGS)
        assert first_ended(world).verdict == "tolerated"
