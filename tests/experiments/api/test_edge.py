"""What edges ask for is answered in the event loop, and not all of it at once."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from ldfi.experiments.api import edge
from ldfi.experiments.scheduler.edges import MOST
from ldfi.experiments.scheduler.rules_board import RulesBoard
from tests.kit.service import client_of, service


def calls(dependant: Dependant) -> Iterator[Any]:
    """What FastAPI calls for a request."""
    if dependant.call is not None:
        yield dependant.call
    for each in dependant.dependencies:
        yield from calls(each)


def test_no_thread_is_waited_for() -> None:
    """Who comes back from one waits for all that the loop has to do; a device has 20 ms."""
    app = FastAPI()
    app.include_router(edge.router)
    routes = [each for each in edge.router.routes if isinstance(each, APIRoute)]
    assert {each.path for each in routes} == {"/api/v1/edge/rules", "/api/v1/edge/asks"}
    for route in routes:
        for call in calls(route.dependant):
            of_loop = call if inspect.isfunction(call) else type(call).__call__
            assert inspect.iscoroutinefunction(of_loop), call


@pytest.mark.parametrize("name", ["late", "behind", "asked"])
def test_no_number_that_an_edge_says_puts_the_metrics_out(name: str) -> None:
    app = service("sqlite://")
    with client_of(app) as client:
        for said, status in ((f"{MOST}", 200), (f"{MOST + 1}", 422), ("9" * 401, 422)):
            answer = client.get("/api/v1/edge/rules", params={"edge": "e1", name: said})
            assert answer.status_code == status, said

        metrics = client.get("/metrics")

    assert metrics.status_code == 200
    assert "ldfi_edges" in metrics.text


@pytest.mark.parametrize(
    ("kinds", "said"), [("address", True), ("header,cookie,address", True), ("header", False)]
)
def test_an_edge_says_whether_it_goes_by_addresses(kinds: str, said: bool) -> None:
    app = service("sqlite://")
    with client_of(app) as client:
        headers = {"ldfi-devices": kinds}
        client.get("/api/v1/edge/rules", params={"edge": "e1"}, headers=headers).raise_for_status()
        fleet = app.state.engine.board.fleet
        assert fleet["e1"].by_address is said
        assert fleet.by_address(time.time()) is said


@pytest.mark.parametrize("wait", [0.0, 0.4])
def test_polls_that_came_together_end_apart(wait: float) -> None:
    board = RulesBoard("e", 10.0)

    async def ended() -> list[float]:
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def poll() -> float:
            await board.changed_since(board.version, edge._apart(wait))
            return loop.time() - began

        return sorted(await asyncio.gather(*(poll() for _ in range(100))))

    times = asyncio.run(ended())
    assert times[90] - times[10] >= 0.15 * wait
    assert times[0] >= 0.74 * wait
