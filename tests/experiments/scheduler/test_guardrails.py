"""Guardrails at work: a real HTTP server that speaks as Prometheus does, and a real scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.scheduler import guardrails
from ldfi.experiments.scheduler.guardrails import Guardrails
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry.prometheus import Prometheus
from ldfi.testing.live_service import served
from ldfi.testing.world import QUICK, World


@dataclass
class Metrics:
    """Answers that the errors are few (or not), after a while."""

    url: str = ""
    holds: bool = True
    wait: float = 0.0
    asked: int = 0
    together: int = 0
    """Nobody is answered before so many have asked."""

    async def answer(self, _request: Request) -> Response:
        self.asked += 1
        while self.asked < self.together:
            await asyncio.sleep(0.01)
        await asyncio.sleep(self.wait)
        result = [{"metric": {}, "value": [1.0, "1"]}] if self.holds else []
        document = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return JSONResponse(document)


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    metrics = Metrics()
    routes = [Route("/api/v1/query", metrics.answer, methods=["POST"])]
    with served(Starlette(routes=routes)) as metrics.url:
        yield metrics


def breach(url: str, *guardrails: str) -> str | None:
    async def ask() -> str | None:
        async with Prometheus(url, timeout=30.0) as prometheus:
            return await Guardrails(prometheus, guardrails).breach()

    return asyncio.run(ask())


def test_a_condition_that_fails_or_cannot_be_asked_is_a_breach(metrics: Metrics) -> None:
    assert breach(metrics.url, "errors < 5", "latency < 1") is None
    assert breach(metrics.url) is None
    metrics.holds = False
    assert breach(metrics.url, "errors < 5") == "guardrail does not hold: errors < 5"
    told = breach("http://127.0.0.1:1", "errors < 5")
    assert told is not None
    assert told.startswith("guardrail cannot be asked: http://127.0.0.1:1")


def test_many_slow_conditions_take_as_long_as_one(metrics: Metrics) -> None:
    metrics.together = 6
    assert breach(metrics.url, *(f"errors < {n}" for n in range(6))) is None


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guardrails.LOOK_SECONDS <= 1.0
    monkeypatch.setattr(guardrails, "LOOK_SECONDS", 0.05)


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for it."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def watched(
    world: World, metrics: Metrics, scenario: Callable[[Campaign], Awaitable[None]]
) -> None:
    """Run a scenario while the guardrails are watched; the world's clock stands meanwhile."""

    async def run() -> None:
        async with Prometheus(metrics.url, timeout=2.0) as prometheus:
            watching = Guardrails(prometheus, ["errors < 5"])
            scheduler = world.engine.scheduler
            campaign = scheduler.commands.start(Definition(QUICK), "operator", world.now)
            watch = asyncio.create_task(watching.watch(scheduler.state))
            await asyncio.sleep(0)
            try:
                await scenario(campaign)
            finally:
                watch.cancel()

    asyncio.run(run())


def test_nothing_is_armed_before_the_first_answer(world: World, metrics: Metrics) -> None:
    metrics.wait = 0.4

    async def scenario(campaign: Campaign) -> None:
        world.steps(5)
        assert not world.rules()
        assert campaign.waiting[""] == "guardrails have not been asked yet"
        await until(lambda: world.engine.scheduler.state.breach is None)
        world.until_armed()

    watched(world, metrics, scenario)


@pytest.mark.parametrize("trouble", ["fails", "is silent"])
def test_a_breach_disarms_and_all_recovers(world: World, metrics: Metrics, trouble: str) -> None:
    async def scenario(campaign: Campaign) -> None:
        await until(lambda: world.engine.scheduler.state.breach is None)
        world.until_armed()
        (experiment,) = campaign.active()
        # When a condition fails, or Prometheus does not answer any more
        if trouble == "fails":
            metrics.holds = False
        else:
            metrics.wait = 60.0
        # Then the scheduler knows at the next look, or when its patience ends, and disarms at once
        await until(lambda: world.engine.scheduler.state.breach is not None)
        world.engine.tick(world.now)
        assert not world.rules()
        assert "guardrail" in experiment.reason
        world.steps(3)
        assert experiment.state == "aborted"
        assert not world.rules()
        # And when all is well again, it goes on
        metrics.holds, metrics.wait = True, 0.0
        await until(lambda: world.engine.scheduler.state.breach is None)
        world.until_armed()

    watched(world, metrics, scenario)
