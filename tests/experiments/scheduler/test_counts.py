"""Outcomes counted elsewhere, and outcomes that only the root span tells."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import parse_qs

import pytest
from fastapi import FastAPI, Request
from sqlalchemy import select

from ldfi.errors import PrometheusError
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.sequential_tests import Counts
from ldfi.experiments.domain.settings import PromqlOutcome
from ldfi.experiments.scheduler import counts
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from ldfi.experiments.telemetry.prometheus import Prometheus
from ldfi.testing.live_service import served
from ldfi.testing.world import FOUND, QUICK, World
from tests.kit.campaigns import armed, start

COUNTS = PromqlOutcome('bad{e="$experiment",a="$arm"}', 'all{e="$experiment",a="$arm"}')
ASKED = replace(QUICK, promql=COUNTS)


class ProductionMetrics:
    """A site's own counters, as its Prometheus shows them."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.asked = 0
        self.app = FastAPI()
        self.app.post("/api/v1/query")(self.query)

    async def query(self, request: Request) -> dict[str, object]:
        (query,) = parse_qs((await request.body()).decode())["query"]
        self.asked += 1
        value = self.values.get(query)
        result = [] if value is None else [{"metric": {}, "value": [0, str(value)]}]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}


def test_the_two_arms_counters_decide(db: Database) -> None:
    # Given a site whose truth is a counter, where devices report nothing but success
    metrics = ProductionMetrics()
    world = World(db, engine=Engine(db, now=1000.0, outcomes="root"))
    settings = replace(ASKED, max_size=1, confirm=False, rechecks=0)
    campaign = start(world, settings)
    with served(metrics.app) as url:
        while campaign.live():
            assert world.now < 1_600.0, campaign.waiting
            world.step()
            for experiment in campaign.active():
                hurts = "error@ratings" in experiment.hypothesis
                for arm, failing in (("control", 0), ("treatment", int(hurts))):
                    name = f'{{e="{experiment.id}",a="{arm}"}}'
                    total = metrics.values.get(f"all{name}", 0) + 8
                    metrics.values[f"all{name}"] = total
                    metrics.values[f"bad{name}"] = total * failing
                asyncio.run(_ask(url, experiment))
    # Then what the counters say is found, though every root span of it was fine
    assert campaign.state == "finished"
    with db.read() as session:
        found = {tuple(row.faults) for row in session.scalars(select(FindingRow))}
    assert found == {("error@ratings",)}


async def _ask(url: str, experiment: Experiment) -> None:
    async with Prometheus(url) as prometheus:
        await counts.ask(prometheus, experiment)


def test_a_counter_that_falls_is_not_believed(db: Database) -> None:
    _, experiment = armed(World(db), ASKED)
    experiment.count(Counts(treated=9, treated_failed=9))
    experiment.count(Counts(treated=5))
    experiment.count(Counts(treated=12, treated_failed=10))

    assert (experiment.arms["treatment"].total, experiment.arms["treatment"].failures) == (12, 10)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1"])
def test_what_is_no_count_counts_nothing(db: Database, value: str) -> None:
    metrics = ProductionMetrics()
    _, experiment = armed(World(db), ASKED)
    name = f'{{e="{experiment.id}",a="treatment"}}'
    metrics.values[f"all{name}"] = metrics.values[f"bad{name}"] = float(value)

    with served(metrics.app) as url, pytest.raises(PrometheusError, match="must count requests"):
        asyncio.run(_ask(url, experiment))

    assert experiment.arms["treatment"].total == 0


def test_the_watch_goes_on_after_no_count(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "LOOK_SECONDS", 0.05)
    world, metrics = World(db), ProductionMetrics()
    _, experiment = armed(world, ASKED)
    name = f'{{e="{experiment.id}",a="treatment"}}'
    metrics.values |= {f"bad{name}": float("nan"), f"all{name}": 7.0}

    async def watched(url: str) -> None:
        async with Prometheus(url) as prometheus:
            watch = asyncio.create_task(counts.watch(prometheus, world.engine.scheduler.state))
            async with asyncio.timeout(30):
                while metrics.asked < 6:
                    await asyncio.sleep(0.01)
                assert experiment.elsewhere == Counts()
                metrics.values[f"bad{name}"] = 0.0
                while not experiment.elsewhere.treated:
                    await asyncio.sleep(0.01)
                    assert not watch.done()
            watch.cancel()

    with served(metrics.app) as url:
        asyncio.run(watched(url))


def test_with_nothing_else_the_root_span_is_believed(db: Database) -> None:
    world = World(db, engine=Engine(db, now=1000.0, outcomes="root"))
    campaign = start(world)
    world.finish(campaign)

    assert campaign.state == "finished"
    with db.read() as session:
        assert {tuple(row.faults) for row in session.scalars(select(FindingRow))} == FOUND
        rows = list(session.scalars(select(ExperimentRow)))
    assert all(len(world.exposed[row.id]) <= row.members_charged for row in rows)
