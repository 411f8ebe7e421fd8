"""When a calendar is open, against what it says itself at each moment."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ldfi.dashboards.work.open_hours import HORIZON, STEP, closed, open_seconds, over, within
from ldfi.experiments.domain.campaign.calendar import DAYS, Blackout, Calendar

MONDAY = 1_764_547_200.0
"""2025-12-01 00:00 UTC."""
HOUR, DAY = 3_600.0, 86_400.0

calendars = st.builds(
    Calendar,
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    days=st.lists(st.sampled_from(DAYS), unique=True, min_size=1).map(tuple),
    hours=st.sampled_from([None, ("09:00", "16:00"), ("22:00", "06:00")]),
    blackouts=st.sampled_from([(), (Blackout("2025-12-03", "2025-12-04", "the big sale"),)]),
)


@given(calendars, st.integers(1, 300))
def test_it_is_closed_where_the_calendar_says_so(calendar: Calendar, steps: int) -> None:
    until = MONDAY + steps * STEP
    spans = closed(calendar, MONDAY, until)
    for step in range(steps):
        at = MONDAY + step * STEP
        shut = any(begin <= at < end for begin, end in spans)
        assert shut == (calendar.closed(at) is not None)
    assert all(one[1] < other[0] for one, other in pairwise(spans))


@given(calendars, st.floats(60, 2 * DAY))
def test_so_much_open_time_is_over_then(calendar: Calendar, seconds: float) -> None:
    end = over(calendar, MONDAY, seconds)
    if end is None:
        assert open_seconds(calendar, MONDAY, MONDAY + HORIZON / 10) < seconds
    elif end - MONDAY <= 600 * STEP:
        assert calendar.closed(end - 1) is None
        assert abs(open_seconds(calendar, MONDAY, end) - seconds) <= STEP


def test_without_a_calendar_time_is_open_and_ends_within_months() -> None:
    assert closed(None, 0, DAY) == []
    assert over(None, 0, HOUR) == HOUR
    assert over(None, 0, 2 * HORIZON) is None


def test_what_never_opens_is_never_over() -> None:
    never = Calendar(blackouts=(Blackout("2020-01-01", "9999-12-31", "switched off"),))
    assert over(never, MONDAY, 60) is None


def test_stretches_are_cut_down_to_what_is_drawn() -> None:
    assert within([(0, 5), (7, 20), (30, 40)], 3, 10) == [(3, 5), (7, 10)]
