"""Rows of old experiments go, and nobody knows less, nor counts fewer."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, update

from ldfi.errors import NotFound
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.scheduler.compaction import compact, foreseen
from ldfi.experiments.store import (
    Database,
    campaign_tallies,
    checkpoints,
    experiments,
    findings,
    prune_experiments,
)
from ldfi.experiments.store.evidence_file import version_of
from ldfi.experiments.store.findings import shown_by
from ldfi.experiments.store.schema import ExperimentRow, PrunedTallyRow, RunRow, TallyRow
from ldfi.testing.world import QUICK, World
from tests.experiments.scheduler.test_compaction import told
from tests.experiments.store.evidence import KEY, checked, file_of
from tests.experiments.store.lives import Again
from tests.experiments.store.test_checkpoints import in_its_third_run


@pytest.fixture
def lived(again: Again) -> tuple[World, Campaign]:
    """A campaign in its third run, after one that is over; nothing is pruned but results."""
    world, campaign = again(unfolded, KEY)
    compact(world.database, world.now + 1, world.now, "ann")
    return world, campaign


def unfolded(database: Database) -> tuple[World, Campaign]:
    world = World(database)
    world.finish(world.start(QUICK))
    return world, in_its_third_run(world)


def on_record(database: Database) -> set[str]:
    with database.read() as session:
        return set(session.scalars(select(ExperimentRow.id)))


def counted(database: Database) -> dict[tuple[str, ...], tuple[int, ...]]:
    row = TallyRow
    with database.read() as session:
        return {
            (each.campaign_id, each.purpose, each.verdict): (each.ended, each.armed, each.hurt)
            for each in session.scalars(select(row))
        }


def test_nothing_needed_goes_and_nobody_knows_less(lived: tuple[World, Campaign]) -> None:
    world, campaign = lived
    db, now = world.database, world.now
    checkpoints.prune(db, now + 1, now, "ann")
    before, tally, there = told(db, now), counted(db), on_record(db)
    versions = _versions(db)
    # When what is old goes
    gone = prune_experiments.prune(db, now + 1, now, "ann").rows
    # Then some has, and it is counted as before, also by whoever counts anew
    left = on_record(db)
    assert 0 < gone == len(there) - len(left)
    assert counted(db) == tally
    with db.change(now) as change:
        assert not campaign_tallies.make_good(change.session)
        change.session.get_one(TallyRow, next(iter(tally))).ended += 1
        change.session.flush()
        assert campaign_tallies.make_good(change.session)
    assert counted(db) == tally
    with db.read() as session:
        assert session.scalar(select(func.sum(PrunedTallyRow.ended))) == gone
    # And whoever starts from what is left knows the same, and tries the same next
    assert told(db, now) == before
    assert _versions(db) == versions
    # And what shows findings is there, and whose records are whole, and the run that goes on
    with db.read() as session:
        whole = select(RunRow.experiment_id).where(RunRow.remains.is_(None))
        assert left >= (shown_by(session) | set(session.scalars(whole))) & there
        now_running = ExperimentRow.campaign_id == campaign.id, ExperimentRow.run == campaign.run
        assert session.scalar(select(func.count()).where(*now_running))
    # And the evidence is borne out
    answer = checked(world, file_of(world, campaign))
    assert (answer.false, answer.lacking) == ([], [])
    # And asked again, nothing is left to do
    assert prune_experiments.prune(db, now + 1, now, "ann").rows == 0


def _versions(database: Database) -> dict[tuple[str, str], int]:
    row = ExperimentRow
    with database.read() as session:
        pairs = session.execute(select(row.campaign_id, row.request_class).distinct()).tuples()
        return {(one, name): version_of(session, name, one) for one, name in pairs}


def test_what_is_whole_or_not_folded_stays(lived: tuple[World, Campaign]) -> None:
    world, _ = lived
    with world.database.read() as session:
        assert session.scalar(select(func.count()).where(RunRow.remains.is_not(None))) == 0
        never_armed = select(func.count()).where(ExperimentRow.armed_at.is_(None))
        there = session.scalar(never_armed)
    assert prune_experiments.prune(world.database, world.now + 1, world.now, "ann").rows <= (
        there or 0
    )


def test_what_a_dry_run_promises_is_what_goes(again: Again) -> None:
    """Also of records of results that the same prune folds, and of rows of these records."""
    # Given a campaign in its third run, and another that is over, of which nothing is folded
    world, _ = again(unfolded, KEY)
    database, now = world.database, world.now
    with database.read() as session:
        compacted = foreseen(session, now + 1, now)
        records = checkpoints.going(
            session, database.keys, now + 1, compacted.going, compacted.stands
        )
        rows = prune_experiments.old(session, now + 1, compacted.going, {*records})
    promised = {"lessons": compacted.results.rows, "records": len(records), "rows": len(rows)}
    # When it is done
    gone = {
        "lessons": compact(database, now + 1, now, "ann").rows,
        "records": checkpoints.prune(database, now + 1, now, "ann").rows,
        "rows": prune_experiments.prune(database, now + 1, now, "ann").rows,
    }
    # Then that is what went
    assert all(gone.values())
    assert promised == gone


def test_whoever_asks_for_one_that_was_pruned_is_told_so(lived: tuple[World, Campaign]) -> None:
    world, _ = lived
    checkpoints.prune(world.database, world.now + 1, world.now, "ann")
    there = on_record(world.database)
    prune_experiments.prune(world.database, world.now + 1, world.now, "ann")
    left = on_record(world.database)
    with world.database.read() as session:
        ran = session.scalars(select(RunRow.experiment_id)).all()
        gone = next(each for each in ran if each in there - left)
        with pytest.raises(NotFound, match="is old and was pruned; its run is number"):
            experiments.unless_pruned(session, gone)
        for each in (next(iter(left)), "nothing"):
            experiments.unless_pruned(session, each)


def test_what_was_tried_is_made_good_for_earlier_versions(lived: tuple[World, Campaign]) -> None:
    world, _ = lived
    pruned = _tried(world.database)
    assert pruned
    with world.database.change(world.now) as change:
        change.session.execute(update(ExperimentRow).values(tried=None))
    with world.database.change(world.now) as change:
        findings.make_good(change.session)
    assert _tried(world.database) == pruned


def _tried(database: Database) -> dict[str, str | None]:
    row = ExperimentRow
    with database.read() as session:
        return dict(session.execute(select(row.id, row.tried)).tuples().all())
