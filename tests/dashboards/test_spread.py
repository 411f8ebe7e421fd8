"""A finding that hurts others than those who meet it says so, in words and figures."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlalchemy import select

from ldfi.dashboards.finding_story import finding_story
from ldfi.experiments.api.repairs import explained
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.repairs.owners import Owners
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from ldfi.testing.programs import Caller, CallFailed
from ldfi.testing.sharing import Breaker, Pool
from ldfi.testing.world import World

SETTINGS = Settings(kinds=("error",), treatment=0.1, control=0.1, min_traffic=50, settle=1.0)


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        (Breaker(failures=4, seconds=5), "opens a circuit breaker for all"),
        (Pool(size=3, seconds=5, inside=True), "use up a pool of connections that all share"),
    ],
    ids=["breaker", "pool"],
)
def test_it_says_that_others_are_hurt_and_how(shared: Breaker | Pool, said: str) -> None:
    def boot(request: Caller) -> None:
        with suppress(CallFailed):
            shared.call(request, "api>http:GET:ratings/stars")

    with World.in_memory({"/boot": boot}) as world:
        campaign = world.start(SETTINGS)
        for _ in range(1_000):
            world.step(requests=4, seconds=0.1)
            if not campaign.live():
                break
        with world.database.read() as session:
            (finding,) = session.scalars(select(FindingRow))
            tried = list(session.scalars(select(ExperimentRow)))
            (shown,) = explained(session, [finding], None, Owners())
            story = finding_story(shown, tried[::-1], (), "")
    assert finding.state == "open"
    assert said in story.spread
    assert "requests that nobody injected into failed, which reach ratings too" in story.spread


def test_any_other_finding_says_nothing_of_others() -> None:
    def boot(request: Caller) -> None:
        request.call("api>http:GET:ratings/stars")

    with World.in_memory({"/boot": boot}) as world:
        world.finish(world.start(SETTINGS))
        with world.database.read() as session:
            (finding,) = session.scalars(select(FindingRow))
            tried = list(session.scalars(select(ExperimentRow)))
            (shown,) = explained(session, [finding], None, Owners())
            assert finding_story(shown, tried, (), "").spread == ""
