"""Results that are folded are gone, and whoever starts afterwards knows the same."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from ldfi.experiments.domain.campaign.calendar import Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.scheduler import compaction
from ldfi.experiments.scheduler.compaction import compact
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database, classes, snapshots
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.schema import ExperimentRow, FindingRow, SnapshotRow
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import PROGRAM, QUICK, World
from tests.experiments.store.test_retention import known

OTHER = Call("root", (Step("critical", (Call("checkout"),)), Step("optional", (Call("tips"),))))


@pytest.fixture
def world(database: Database) -> World:
    return World(database, {"/boot": PROGRAM})


def going_on(world: World) -> Campaign:
    """A campaign that begins again every minute."""
    definition = Definition(QUICK, schedule=Schedule("* * * * *"))
    return world.engine.scheduler.commands.start(definition, "ann", world.now)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> tuple[Path, float]:
    """A database with a campaign in its second run, and the time there."""
    file = tmp_path_factory.mktemp("lived") / "ldfi.sqlite3"
    shutil.copy2(sqlite_template, file)
    with closing(Database(f"sqlite:///{file}")) as database:
        world = World(database, {"/boot": PROGRAM})
        until_run(world, going_on(world), 2)
        world.engine.scheduler.shut_down("restart", world.now)
    return file, world.now


@pytest.fixture
def second_run(lived: tuple[Path, float], tmp_path: Path) -> Iterator[tuple[World, Campaign]]:
    """The world of it, and the campaign, as whoever starts then finds them."""
    file, now = lived
    url = f"sqlite:///{shutil.copy2(file, tmp_path / 'ldfi.sqlite3')}"
    with closing(Database(url)) as database:
        world = World(database, {"/boot": PROGRAM}, engine=Engine(database, now=now))
        world.now = now
        (campaign,) = world.engine.scheduler.state.campaigns.values()
        yield world, campaign


def until_run(world: World, campaign: Campaign, run: int, steps: int = 0) -> None:
    for _ in range(2_000):
        if campaign.run >= run and campaign.state == "running":
            world.steps(steps)
            return
        world.step()
    raise AssertionError(f"still in run {campaign.run}")


def told(database: Database, now: float) -> dict[str, Any]:
    """What whoever starts from here knows and would do next, but for its record and its proof."""
    engine = Engine(database, now=now)
    campaigns = engine.scheduler.state.campaigns.values()
    return {
        **known(database, now),
        "plans": [
            (name, each.plan(), each.states, each.knowledge.hurt, each.to_verify)
            for campaign in campaigns
            for name, each in sorted(campaign.explorations.items())
        ],
        "experience": [campaign.experience for campaign in campaigns],
        "trials": [{n: set(c.trials.last(n)) for n in c.explorations} for c in campaigns],
    }


def results(database: Database) -> int:
    with database.read() as session:
        query = select(func.count(ExperimentRow.id)).where(ExperimentRow.lesson.is_not(None))
        return session.scalar(query) or 0


def test_whoever_starts_after_lessons_were_folded_knows_the_same_and_tries_the_same(
    database: Database, world: World
) -> None:
    # Given a campaign that is over, and one in its second run
    world.finish(world.start(QUICK))
    middle = world.now
    campaign = going_on(world)
    until_run(world, campaign, 2, steps=10)
    world.engine.scheduler.shut_down("restart", world.now)
    before, there = told(database, world.now), results(database)
    # When what had ended before the second began is folded, and dropped where nobody asks for it
    gone = compact(database, middle, world.now, "ann").rows
    # Then some results are gone, and nobody knows less
    assert 0 < gone == there - results(database)
    assert told(database, world.now) == before
    # And nor when it has gone on, and everything is folded
    world.engine = Engine(database, now=world.now)
    (campaign,) = world.engine.scheduler.state.campaigns.values()
    until_run(world, campaign, 3, steps=10)
    world.engine.scheduler.shut_down("restart", world.now)
    before, there = told(database, world.now), results(database)
    assert any(plan is not None for _, plan, *_ in before["plans"])
    with database.read() as session:
        expected = compaction.foreseen(session, world.now + 1, world.now).results.rows
    assert 0 < compact(database, world.now + 1, world.now, "ann").rows == expected
    assert results(database) == there - expected
    assert told(database, world.now) == before
    # And what shows a finding is still there, but no start reads it, nor what else is folded
    with database.read() as session:
        shown = session.scalars(select(FindingRow.experiment_id)).all()
        assert all(session.get_one(ExperimentRow, each).lesson for each in shown)
        stored, rows = snapshots.of_campaign(session, campaign.id)
        taught = snapshots.of_classes(session, ["GET /boot"])["GET /boot"]
    assert {row.run for row in rows} <= {3}
    assert (stored["GET /boot"].run, list(taught.results)) == (3, [])
    # And nothing is left to fold
    assert compact(database, world.now + 1, world.now, "ann").rows == 0


def test_of_a_campaign_that_is_over_all_lessons_go(second_run: tuple[World, Campaign]) -> None:
    # Given a campaign whose first run is folded
    world, campaign = second_run
    compact(world.database, world.now + 1, world.now, "ann")
    # When it is stopped in a later one
    world.steps(20)
    world.engine.scheduler.commands.stop(campaign.id, "enough", "ann", world.now)
    world.engine.scheduler.shut_down("restart", world.now)
    # Then what was to go has gone, and nothing is kept for whoever takes it up
    with world.database.read() as session:
        expected = compaction.foreseen(session, world.now + 1, world.now).results.rows
    assert 0 < expected == compact(world.database, world.now + 1, world.now, "ann").rows
    with world.database.read() as session:
        assert compaction.foreseen(session, world.now + 1, world.now).results.rows == 0
        assert set(session.scalars(select(SnapshotRow.campaign_id))) == {snapshots.ALL}


def test_of_two_that_fold_at_once_the_later_one_undoes_nothing(
    second_run: tuple[World, Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, campaign = second_run
    middle = world.now
    until_run(world, campaign, 3, steps=5)
    world.engine.scheduler.shut_down("restart", world.now)
    before = told(world.database, world.now)
    # Given one that has read what there was up to the second run
    database = copy.copy(world.database)

    def meanwhile(*given: Any) -> AbstractContextManager[Change]:
        """Another one folds more, and drops it."""
        monkeypatch.undo()
        assert compact(world.database, world.now + 1, world.now, "bob").rows
        return database.change(*given)

    monkeypatch.setattr(database, "change", meanwhile)
    compact(database, middle, world.now, "ann")
    # Then nobody knows less
    assert told(world.database, world.now) == before


def test_what_is_too_young_to_be_dropped_is_folded_too(second_run: tuple[World, Campaign]) -> None:
    # Given a campaign in its second run, the first of which ended some days ago
    world, campaign = second_run
    before, there = told(world.database, world.now), results(world.database)
    # When only what is older still is dropped
    compact(world.database, 0.0, world.now + 3 * compaction.FRESH, "ann")
    # Then all results are there, no start reads them, and it knows the same
    assert results(world.database) == there
    with world.database.read() as session:
        assert not any(row.run < 2 for row in snapshots.of_campaign(session, campaign.id)[1])
        assert not snapshots.of_classes(session, ["GET /boot"])["GET /boot"].results
    assert told(world.database, world.now) == before


def test_a_campaign_knows_no_less_where_lessons_of_a_class_that_went_are_folded() -> None:
    # Given a campaign in its second run, and a class that nobody knows any more
    with World.in_memory({"/pay": OTHER}) as world:
        campaign = going_on(world)
        until_run(world, campaign, 2)
        world.engine.scheduler.shut_down("restart", world.now)
        with world.database.change(world.now) as change:
            classes.remove(change, "GET /pay")
        before = told(world.database, world.now)
        # When its results are folded
        assert compact(world.database, world.now + 1, world.now, "ann").rows
        # Then what experience says of its faults is still known
        assert told(world.database, world.now) == before
        assert before["experience"][0].likelihood("error@checkout") > 0.1
