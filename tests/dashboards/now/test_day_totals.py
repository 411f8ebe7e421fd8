"""What is kept of a day is what the record says, whenever somebody looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete

from ldfi.dashboards.now.day_totals import EVERY, DayKept
from ldfi.experiments.store import Database
from ldfi.experiments.store import was_it_us as stored
from ldfi.experiments.store.schema import ExperimentRow

AT = 1_000_000.0
WINDOW = 4 * stored.LONGEST
Planned = tuple[float, float, str]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    found = Database("sqlite://")
    yield found
    found.close()


def row(number: int, planned: Planned, now: float) -> ExperimentRow:
    """An experiment as it stands on record ``now``."""
    armed_at, took, verdict = planned
    over = armed_at + took <= now
    return ExperimentRow(
        id=f"e{number}",
        campaign_id="c",
        request_class=f"GET /{number % 2}",
        purpose="explore",
        hypothesis=["error@p"],
        faults=["error@p"],
        state="decided" if over else "observing",
        verdict=verdict if over else None,
        created_at=armed_at,
        armed_at=armed_at,
        lease_until=armed_at + stored.LONGEST,
        ended_at=armed_at + took if over else None,
        members_charged=5,
        members_hurt=3 if over and verdict == "harmful" else 0,
    )


PLANNED = st.lists(
    st.tuples(
        st.floats(-2 * WINDOW, 3 * WINDOW).map(lambda after: AT + after),
        st.floats(0.0, stored.LONGEST - 1),
        st.sampled_from(["harmful", "tolerated"]),
    ),
    max_size=15,
)
LOOKS = st.lists(st.floats(-60.0, 1.5 * WINDOW), min_size=1, max_size=6)
"""How long after the last somebody looks again; clocks may step back."""


@given(planned=PLANNED, looks=LOOKS)
def test_it_is_what_the_record_says(
    database: Database, planned: list[Planned], looks: list[float]
) -> None:
    kept, now = DayKept(), AT
    for wait in looks:
        now += wait
        with database.change(now) as change:
            change.session.execute(delete(ExperimentRow))
            armed = [(number, each) for number, each in enumerate(planned) if each[0] <= now]
            change.session.add_all([row(number, each, now) for number, each in armed])
        with database.read() as session:
            found = kept.bunches(session, now - WINDOW, now)
            record = stored.bunches(session, now - WINDOW, now, EVERY)
        assert sorted(found, key=repr) == sorted(record, key=repr)


def test_what_has_ended_for_good_is_asked_for_once(database: Database) -> None:
    kept, now = DayKept(), AT
    with database.change(now) as change:
        change.session.execute(delete(ExperimentRow))
        change.session.add(row(0, (AT - 2 * stored.LONGEST, 60.0, "harmful"), now))
    with database.read() as session:
        first = kept.bunches(session, now - WINDOW, now)
    with database.change(now) as change:
        change.session.execute(delete(ExperimentRow))
    with database.read() as session:
        assert kept.bunches(session, now - WINDOW, now) == first != []
