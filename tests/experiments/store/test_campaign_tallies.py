"""Sums over all experiments there ever were are counted as these end."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, func, select, update

from ldfi.experiments.store import Database, experiments
from ldfi.experiments.store import campaign_tallies as tallies_of_the_store
from ldfi.experiments.store.arming import Armed
from ldfi.experiments.store.schema import ExperimentRow, TallyRow
from tests.experiments.store.lives import Again, after_a_campaign
from tests.experiments.store.test_arming import NOW, WIDE, a_campaign, an_order, end, try_arming
from tests.kit.service import client_of, service


def tallies(database: Database) -> set[tuple[Any, ...]]:
    columns = TallyRow.campaign_id, TallyRow.purpose, TallyRow.verdict
    with database.read() as session:
        rows = session.execute(select(*columns, TallyRow.ended, TallyRow.armed, TallyRow.hurt))
        return {tuple(row) for row in rows}


def counted(database: Database) -> set[tuple[Any, ...]]:
    """The same, of the experiments themselves."""
    row = ExperimentRow
    key = row.campaign_id, row.purpose, func.coalesce(row.verdict, "")
    sums = func.count(), func.count(row.armed_at), func.sum(row.members_hurt)
    with database.read() as session:
        query = select(*key, *sums).where(row.ended_at.is_not(None)).group_by(*key)
        return {tuple(each) for each in session.execute(query)}


@pytest.fixture
def database(again: Again) -> Database:
    """A campaign that is over; then an experiment whose devices reported late that they were hurt,
    and one that nobody ended."""
    database = again(after_a_campaign)[0].database
    a_campaign(database)
    late, lost = an_order("e1"), an_order("e2", "GET /other")
    assert isinstance(try_arming(database, late, WIDE), Armed)
    end(database, late, 3)
    late.experiment.hurt |= {"d1", "d2"}
    with database.change(NOW) as change:
        experiments.recount(change, late.experiment)
    assert isinstance(try_arming(database, lost, WIDE), Armed)
    with database.change(NOW + 60.0) as change:
        assert experiments.close_abandoned(change) == ["e2"]
    return database


def test_what_is_counted_is_what_there_is(database: Database) -> None:
    assert tallies(database) == counted(database) != set()
    assert ("c", "explore", "", 2, 2, 2) in tallies(database)
    assert {"", "harmful", "tolerated"} <= {verdict for _, _, verdict, *_ in tallies(database)}


def test_what_an_earlier_version_ended_is_counted_at_the_next_start(database: Database) -> None:
    with database.change(NOW) as change:
        assert not tallies_of_the_store.make_good(change.session)
    # Given a version that ends experiments and counts none
    with database.change(NOW + 90.0) as change:
        change.session.execute(
            update(TallyRow).where(TallyRow.ended > 1).values(ended=TallyRow.ended - 1, hurt=0)
        )
    assert tallies(database) != counted(database)
    # When this one starts
    with database.change(NOW + 91.0) as change:
        assert tallies_of_the_store.make_good(change.session)
    assert tallies(database) == counted(database)


@pytest.mark.parametrize("again", ["sqlite"], indirect=True)
def test_whoever_leads_makes_it_good(database: Database) -> None:
    with database.change(NOW) as change:
        change.session.execute(delete(TallyRow))

    with client_of(service(str(database.engine.url))):
        assert tallies(database) == counted(database) != set()
