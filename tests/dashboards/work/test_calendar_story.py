"""The calendar's days, by the clock on somebody's wall."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.dashboards.work.calendar_story import (
    SHOWN,
    Day,
    add_begun,
    add_blackouts,
    add_maintenance,
    add_runs,
    days_from,
    monday,
    sort,
)
from ldfi.experiments.domain.campaign.calendar import Blackout, Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.store.schema import CampaignRow

BERLIN, GREENWICH = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
FIRST = date(2026, 11, 16)


def at(text: str, tz: ZoneInfo = GREENWICH) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=tz).timestamp()


def campaign(schedule: Schedule | None = None, *blackouts: Blackout) -> Campaign:
    calendar = Calendar("Europe/Berlin", (), None, blackouts) if blackouts else None
    return Campaign("c1", Definition(name="c", schedule=schedule, calendar=calendar), lambda: "e")


def window(opened: str, until: str, closed: str | None = None) -> Maintenance:
    ends = at(closed) if closed else None
    return Maintenance("w", "ann", "upgrade", ("db",), at(opened), at(until), ends)


def entries(days: list[Day]) -> list[tuple[int, str, str]]:
    """Day of the month, kind and clock of everything."""
    return [(day.date.day, each.kind, each.clock) for day in days for each in day.entries]


def test_weeks_begin_on_monday() -> None:
    assert monday(date(2026, 11, 21)) == FIRST
    assert monday(FIRST) == FIRST


@given(st.dates(date(1975, 1, 1), date(2100, 1, 1)), st.sampled_from(["Europe/Berlin", "UTC"]))
def test_each_day_begins_where_the_one_before_ends(first: date, name: str) -> None:
    days = days_from(first, 28, ZoneInfo(name))
    assert [day.start for day in days[1:]] == [day.end for day in days[:-1]]
    assert all(23 * 3600 <= day.end - day.start <= 25 * 3600 for day in days)


def test_a_run_stands_on_the_viewers_day() -> None:
    """Half past midnight in Berlin is still the day before in Greenwich."""
    runs = [campaign(Schedule("30 0 * * tue", "Europe/Berlin"))]
    for tz, expected in ((BERLIN, (17, "run", "00:30")), (GREENWICH, (16, "run", "23:30"))):
        days = days_from(FIRST, 7, tz)
        add_runs(days, runs, days[0].start, tz)
        assert entries(days) == [expected]


def test_runs_are_foreseen_from_now_on() -> None:
    days = days_from(FIRST, 7, GREENWICH)
    add_runs(days, [campaign(Schedule("0 9 * * *"))], at("2026-11-19T09:00"), GREENWICH)
    assert [day for day, _, _ in entries(days)] == [20, 21, 22]


def test_what_is_due_all_the_time_is_cut_short() -> None:
    days = days_from(FIRST, 28, GREENWICH)
    add_runs(days, [campaign(Schedule("* * * * *"))], at("2026-11-18T22:00"), GREENWICH)
    clocks = [clock for day, _, clock in entries(days) if day == 20]
    assert clocks == ["00:00", "00:01", "00:02", "and more"]
    assert len(clocks) == SHOWN + 1
    assert entries(days)[0] == (18, "run", "22:01")


def test_a_schedule_that_rests_for_weeks_costs_nothing() -> None:
    days = days_from(FIRST, 28, GREENWICH)
    add_runs(days, [campaign(Schedule("0 0 29 2 *"))], days[0].start, GREENWICH)
    assert entries(days) == []


def test_one_that_was_stopped_begins_no_more() -> None:
    days = days_from(FIRST, 7, GREENWICH)
    stopped = campaign(Schedule("0 9 * * *"))
    stopped.state = "stopped"
    add_runs(days, [stopped], days[0].start, GREENWICH)
    assert entries(days) == []


def test_a_blackout_covers_its_last_day() -> None:
    days = days_from(FIRST, 7, BERLIN)
    add_blackouts(days, [campaign(None, Blackout("2026-11-18", "2026-11-19", "sale"))])
    assert entries(days) == [(18, "blackout", ""), (19, "blackout", "")]
    assert days[2].entries[0].what == "c: sale"


@pytest.mark.parametrize(
    ("opened", "until", "closed", "expected"),
    [
        ("2026-11-17T10:00", "2026-11-17T12:00", None, [(17, "10:00–12:00")]),
        ("2026-11-17T10:00", "2026-11-17T12:00", "2026-11-17T11:00", [(17, "10:00–11:00")]),
        (
            "2026-11-17T22:00",
            "2026-11-19T02:00",
            None,
            [(17, "from 22:00"), (18, ""), (19, "until 02:00")],
        ),
        ("2026-11-10T00:00", "2026-11-16T00:00", None, []),
    ],
)
def test_maintenance_stands_on_every_day_it_touches(
    opened: str, until: str, closed: str | None, expected: list[tuple[int, str]]
) -> None:
    days = days_from(FIRST, 7, GREENWICH)
    add_maintenance(days, [window(opened, until, closed)], GREENWICH)
    assert [(day, clock) for day, _, clock in entries(days)] == expected


def test_a_day_is_in_order() -> None:
    days = days_from(FIRST, 1, GREENWICH)
    row = CampaignRow(id="r", name="", run_started_at=at("2026-11-16T08:00"))
    add_runs(days, [campaign(Schedule("0 7,9 * * *"))], days[0].start, GREENWICH)
    add_begun(days, [row], GREENWICH)
    add_maintenance(days, [window("2026-11-16T06:00", "2026-11-16T07:00")], GREENWICH)
    add_blackouts(days, [campaign(None, Blackout("2026-11-16", "2026-11-16", "sale"))])
    sort(days)
    assert [kind for _, kind, _ in entries(days)] == [
        "blackout",
        "maintenance",
        "began",
        "run",
        "run",
    ]
