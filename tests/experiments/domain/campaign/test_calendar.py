"""Calendars and schedules against a minute-by-minute scan, around clock changes above all."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldfi.errors import InvalidCalendar
from ldfi.experiments.domain.campaign.calendar import DAYS, Blackout, Calendar, Schedule
from ldfi.experiments.domain.campaign.local_time import change, wall, zone

MINUTE = 60
DAY = 24 * 60 * MINUTE

CHANGES = {
    ("Europe/Berlin", "spring"): datetime(2026, 3, 29, 1, tzinfo=UTC),
    ("Europe/Berlin", "autumn"): datetime(2026, 10, 25, 1, tzinfo=UTC),
    ("America/New_York", "spring"): datetime(2026, 3, 8, 7, tzinfo=UTC),
    ("America/New_York", "autumn"): datetime(2026, 11, 1, 6, tzinfo=UTC),
    ("Australia/Lord_Howe", "spring"): datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    ("Australia/Lord_Howe", "autumn"): datetime(2026, 4, 4, 15, tzinfo=UTC),
    ("America/Havana", "spring"): datetime(2026, 3, 8, 5, tzinfo=UTC),
    ("America/Havana", "autumn"): datetime(2026, 11, 1, 5, tzinfo=UTC),
    ("Asia/Kolkata", "never"): datetime(2026, 6, 1, tzinfo=UTC),
}
places = st.sampled_from(sorted(CHANGES))


def at(text: str) -> float:
    """Unix seconds of an ISO time with an offset."""
    return datetime.fromisoformat(text).timestamp()


@lru_cache(maxsize=4)
def scan(place: tuple[str, str]) -> list[tuple[int, datetime]]:
    """Every minute from two days before a change to twelve days after it, and what walls show."""
    start = int(CHANGES[place].timestamp()) - 2 * DAY
    tz = zone(place[0])
    return [(m, wall(m, tz)) for m in range(start, start + 14 * DAY, MINUTE)]


@pytest.mark.parametrize(("place", "when"), [(p, w) for p, w in CHANGES.items() if p[1] != "never"])
def test_a_clock_change_is_found_to_the_second(place: tuple[str, str], when: datetime) -> None:
    tz, moment = zone(place[0]), when.timestamp()

    assert change(tz, moment - 3 * DAY, moment + 3 * DAY) == moment
    assert change(tz, moment - 1, moment) == moment
    assert change(tz, moment - DAY, moment - 0.5) is None
    assert change(tz, moment, moment + DAY) is None


# --- calendars -----------------------------------------------------------------------------------

clock_times = st.builds(
    lambda hour, minute: f"{hour:02}:{minute:02}",
    st.one_of(st.integers(0, 4), st.integers(0, 23)),
    st.sampled_from([0, 1, 15, 30, 45, 59]),
)
hours = st.tuples(clock_times, st.one_of(clock_times, st.just("24:00"))).filter(
    lambda pair: pair[0] != pair[1]
)


@st.composite
def blackouts(draw: st.DrawFn, place: tuple[str, str]) -> Blackout:
    """A blackout near a change of the clock: by dates or by times."""
    middle = wall(CHANGES[place].timestamp(), zone(place[0])).replace(hour=0, minute=0)
    if draw(st.booleans()):
        first = (middle + timedelta(days=draw(st.integers(-2, 3)))).date()
        last = first + timedelta(days=draw(st.integers(0, 4)))
        return Blackout(first.isoformat(), last.isoformat(), "a holiday")
    begin = middle + timedelta(minutes=draw(st.integers(-300, 600)))
    end = begin + timedelta(minutes=draw(st.integers(1, 400)))
    return Blackout(begin.isoformat(), end.isoformat(), "a release")


@st.composite
def calendars(draw: st.DrawFn) -> tuple[tuple[str, str], Calendar]:
    place = draw(places)
    return place, Calendar(
        place[0],
        tuple(draw(st.sets(st.sampled_from(DAYS)))),
        draw(st.none() | hours),
        tuple(draw(st.lists(blackouts(place), max_size=2))),
    )


def minutes_after_midnight(hour: str) -> timedelta:
    return timedelta(hours=int(hour[:2]), minutes=int(hour[3:]))


def within(local: datetime, calendar: Calendar) -> bool:
    """Some day's window, laid out on the wall's time line, holds this moment."""
    midnight = local.replace(hour=0, minute=0)
    for day in (midnight, midnight - timedelta(days=1)):
        if calendar.days and DAYS[day.weekday()] not in calendar.days:
            continue
        start, end = timedelta(0), timedelta(days=1)
        if calendar.hours:
            start, end = map(minutes_after_midnight, calendar.hours)
            end += timedelta(days=1) if end < start else timedelta(0)
        if day + start <= local < day + end:
            return True
    return False


def blacked_out(minutes: list[tuple[int, datetime]], blackout: Blackout) -> tuple[int, int]:
    """From the first minute that is not before it to the last one that is not after it."""
    first, last = blackout.first, blackout.last
    end = datetime.fromisoformat(last)
    end += timedelta(0) if "T" in last else timedelta(days=1)
    began = next(m for m, local in minutes if local >= datetime.fromisoformat(first))
    ended = max((m for m, local in minutes if local < end), default=0)
    return began, ended


@given(calendars(), st.integers(0, 6 * 24 * 60 - 1))
def test_a_calendar_is_open_when_the_wall_says_so_and_opens_at_the_next_such_minute(
    placed: tuple[tuple[str, str], Calendar], start: int
) -> None:
    place, calendar = placed
    minutes = scan(place)
    dark = [blacked_out(minutes, blackout) for blackout in calendar.blackouts]

    def is_open(minute: int, local: datetime) -> bool:
        return within(local, calendar) and not any(a <= minute <= b for a, b in dark)

    for minute, local in minutes[1440 : 5 * 1440 : 7]:
        assert (calendar.closed(minute) is None) == is_open(minute, local), local

    expected = next((m for m, local in minutes[start:] if is_open(m, local)), None)
    if expected is not None:
        assert calendar.opens(minutes[start][0]) == expected


def test_the_reasons_name_the_rule_and_the_zone() -> None:
    calendar = Calendar(
        "Europe/Berlin",
        ("mon", "tue", "wed", "thu", "fri"),
        ("09:00", "17:00"),
        (Blackout("2026-12-24", "2026-12-26", "Christmas"),),
    )

    assert calendar.closed(at("2026-11-20T09:00+01:00")) is None
    assert calendar.closed(at("2026-11-20T17:00+01:00")) == (
        "17:00 is outside the hours 09:00 to 17:00 (Europe/Berlin)"
    )
    assert calendar.closed(at("2026-11-21T12:00+01:00")) == (
        "sat is not among the days mon, tue, wed, thu, fri (Europe/Berlin)"
    )
    assert calendar.closed(at("2026-12-24T12:00+01:00")) == (
        "blackout until 2026-12-26 (Europe/Berlin): Christmas"
    )
    assert calendar.opens(at("2026-12-23T17:30+01:00")) == at("2026-12-28T09:00+01:00")


def test_a_night_belongs_to_the_day_on_which_it_begins() -> None:
    calendar = Calendar("UTC", ("fri",), ("22:00", "06:00"))

    assert calendar.closed(at("2026-11-20T23:00+00:00")) is None
    assert calendar.closed(at("2026-11-21T05:59+00:00")) is None
    assert calendar.closed(at("2026-11-21T06:00+00:00")) is not None
    assert calendar.closed(at("2026-11-20T05:00+00:00")) is not None
    assert calendar.closed(at("2026-11-21T22:30+00:00")) is not None


def test_the_hour_that_comes_twice_and_the_one_that_never_comes() -> None:
    calendar = Calendar("Europe/Berlin", hours=("02:15", "02:45"))

    assert calendar.closed(at("2026-10-25T02:30+02:00")) is None
    assert calendar.closed(at("2026-10-25T02:50+02:00")) is not None
    assert calendar.closed(at("2026-10-25T02:30+01:00")) is None
    assert calendar.opens(at("2026-10-25T02:45+02:00")) == at("2026-10-25T02:15+01:00")
    assert calendar.opens(at("2026-03-28T02:45+01:00")) == at("2026-03-30T02:15+02:00")


def test_a_blackout_in_the_hour_that_comes_twice_takes_the_longest_reading() -> None:
    calendar = Calendar(
        "Europe/Berlin", blackouts=(Blackout("2026-10-25T02:10", "2026-10-25T02:20", "release"),)
    )

    assert calendar.closed(at("2026-10-25T02:09+02:00")) is None
    assert calendar.closed(at("2026-10-25T02:10+02:00")) is not None
    assert calendar.closed(at("2026-10-25T02:50+02:00")) is not None
    assert calendar.opens(at("2026-10-25T02:10+02:00")) == at("2026-10-25T02:20+01:00")


def test_a_blackout_without_end_and_one_of_years() -> None:
    forever = Calendar(
        "America/New_York", blackouts=(Blackout("2026-01-01", "9999-12-31", "never here"),)
    )
    years = Calendar(
        hours=("09:00", "10:00"), blackouts=(Blackout("2026-01-01", "2035-12-31", "x"),)
    )

    assert forever.opens(at("2026-06-01T00:00+00:00")) is None
    assert years.opens(at("2026-06-01T00:00+00:00")) == at("2036-01-01T09:00+00:00")


@given(calendars())
def test_a_calendar_is_read_back_as_written(placed: tuple[tuple[str, str], Calendar]) -> None:
    assert Calendar.from_json(placed[1].to_json()) == placed[1]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"timezone": "Europe"}, "IANA"),
        ({"timezone": "Mars/Olympus"}, "'Mars/Olympus' is no time zone"),
        ({"timezone": "posixrules"}, "'posixrules' is no time zone"),
        ({"timezone": "localtime"}, "'localtime' is no time zone"),
        ({"timezone": "right/UTC"}, "'right/UTC' is no time zone"),
        ({"timezone": "../etc"}, "IANA"),
        ({"timezone": 3}, "3 is not text"),
        ({"days": ["monday"]}, "'monday' is not a day; give some of mon"),
        ({"days": "mon"}, "'mon' is not a list"),
        ({"hours": ["9", "17"]}, "'9' is no time of day"),
        ({"hours": ["09:00", "24:01"]}, "'24:01' is no time of day"),
        ({"hours": ["24:00", "06:00"]}, "cannot be"),
        ({"hours": ["09:00", "09:00"]}, "leave them out"),
        ({"hours": ["09:00"]}, "not two times"),
        ({"blackouts": [{"first": "2026-13-01", "last": "2026-12-01", "why": "x"}]}, "2026-13-01"),
        ({"blackouts": [{"first": "2026-12-02", "last": "2026-12-01", "why": "x"}]}, "not after"),
        ({"blackouts": [{"first": "2026-12-02", "last": "2026-12-03", "why": " "}]}, "say why"),
        ({"blackouts": [{"first": "2026-12-02", "last": "2026-12-03"}]}, "None is not text"),
        (
            {"blackouts": [{"first": "2026-12-02T01:00Z", "last": "2026-12-03", "why": "x"}]},
            "leave the offset out",
        ),
        ({"zone": "UTC"}, "'zone' is unknown; there are timezone"),
        ([], "is not an object"),
    ],
)
def test_what_cannot_be_read_is_shown_with_the_way_out(document: object, told: str) -> None:
    with pytest.raises(InvalidCalendar, match=told):
        Calendar.from_json(document)


def test_the_calendar_and_the_schedule_in_the_docs_can_be_read() -> None:
    text = (Path(__file__).parents[4] / "docs" / "safety.md").read_text("utf-8")
    calendar = Calendar.from_json(json.loads(text.split("```json\n")[1].split("```")[0]))
    schedule = Schedule.from_json(json.loads(text.split("schedule, `")[1].split("`")[0]))

    assert "season finale" in (calendar.closed(at("2026-11-20T18:30+01:00")) or "")
    assert schedule.next_after(at("2026-11-20T18:30+01:00")) == at("2026-11-23T10:00+01:00")


# --- schedules -----------------------------------------------------------------------------------

Matcher = Callable[[datetime], bool]


@st.composite
def field(draw: st.DrawFn, low: int, high: int, usual: int) -> tuple[str, set[int]]:
    """The text of a cron field and what it means, the meaning made without any cron library.

    Values are drawn from ``low`` to ``usual``, where clocks change.
    """
    shape = draw(st.sampled_from(["*", "step", "list", "range"]))
    if shape == "*":
        return "*", set(range(low, high + 1))
    if shape == "step":
        step = draw(st.sampled_from([2, 3, 5, 7, 20]))
        return f"*/{step}", set(range(low, high + 1, step))
    if shape == "range":
        first = draw(st.integers(low, usual))
        last = draw(st.integers(first, usual))
        return f"{first}-{last}", set(range(first, last + 1))
    values = draw(st.sets(st.integers(low, usual), min_size=1, max_size=4))
    return ",".join(map(str, sorted(values))), values


@st.composite
def crons(draw: st.DrawFn) -> tuple[str, Matcher]:
    minute, minutes = draw(field(0, 59, 59))
    hour, its_hours = draw(st.one_of(field(0, 23, 4), field(0, 23, 23)))
    weekday, weekdays = draw(st.one_of(st.just(("*", set(range(7)))), field(0, 6, 6)))

    def matches(local: datetime) -> bool:
        return (
            local.minute in minutes
            and local.hour in its_hours
            and local.isoweekday() % 7 in weekdays
        )

    return f"{minute} {hour} * * {weekday}", matches


def due(place: tuple[str, str], cron: str, matches: Matcher) -> list[int]:
    """Every minute at which it is due, in the way of Debian's cron."""
    minutes = scan(place)
    minute, hour, *_ = cron.split()
    if minute.startswith("*") or hour.startswith("*"):
        return [m for m, local in minutes if matches(local)]
    found: set[int] = set()
    seen: set[datetime] = set()
    reached = minutes[0][1]
    for moment, local in minutes:
        while reached < local:  # the wall jumped: whatever it left out is due now
            if matches(reached):
                found.add(moment)
            reached += timedelta(minutes=1)
        if local not in seen and matches(local):
            found.add(moment)
        seen.add(local)
        reached = max(reached, local + timedelta(minutes=1))
    return sorted(found)


@given(places, crons(), st.integers(0, 5 * 1440), st.sampled_from([0.0, 0.5, 1.0, 59.0]))
@example(  # a library's step of whole hours leaves out 03:00 where clocks go back half an hour
    ("Australia/Lord_Howe", "autumn"),
    ("*/30 3 * * *", lambda local: local.minute in (0, 30) and local.hour == 3),
    2 * 1440 - 20,
    0.0,
)
@example(
    ("Europe/Berlin", "autumn"),
    ("30 2 * * *", lambda local: (local.hour, local.minute) == (2, 30)),
    2 * 1440 + 10,
    0.0,
)
def test_a_schedule_is_due_at_the_next_minute_that_matches(
    place: tuple[str, str], cron: tuple[str, Matcher], start: int, seconds: float
) -> None:
    text, matches = cron
    now = scan(place)[start][0] + seconds
    expected = next((m for m in due(place, text, matches) if m > now), None)

    found = Schedule(text, place[0]).next_after(now)

    if expected is None:
        assert found > scan(place)[-1][0]
    else:
        assert found == expected


def test_a_fixed_time_comes_once_on_the_days_of_the_clock_changes() -> None:
    nightly = Schedule("30 2 * * *", "Europe/Berlin")

    assert nightly.next_after(at("2026-03-28T12:00+01:00")) == at("2026-03-29T03:00+02:00")
    assert nightly.next_after(at("2026-03-29T03:00+02:00")) == at("2026-03-30T02:30+02:00")
    assert nightly.next_after(at("2026-10-24T12:00+02:00")) == at("2026-10-25T02:30+02:00")
    assert nightly.next_after(at("2026-10-25T02:30+02:00")) == at("2026-10-26T02:30+01:00")
    assert nightly.next_after(at("2026-10-25T02:10+01:00")) == at("2026-10-26T02:30+01:00")


def test_a_leap_day_is_waited_for() -> None:
    assert Schedule("0 * 29 2 *").next_after(at("2026-01-01T00:00+00:00")) == at(
        "2028-02-29T00:00+00:00"
    )


@given(st.text(max_size=40) | st.text("0123456789*/,-# LWmonMON", max_size=40))
@example("9" * 5000 + " * * * *")
@example("0 0 */15 2 MON#5")
@example("0 0 0 * * *")
def test_any_text_is_a_schedule_or_refused_with_the_way_out(text: str) -> None:
    try:
        schedule = Schedule(text)
    except InvalidCalendar as error:
        assert "give five fields" in str(error)
    else:
        assert schedule.next_after(0.0) > 0.0
        assert Schedule.from_json(schedule.to_json()) == schedule


@pytest.mark.parametrize(
    "document", [{"cron": 5}, {"timezone": "UTC"}, {"cron": "0 1 * * *", "x": 1}]
)
def test_a_schedule_that_cannot_be_read(document: object) -> None:
    with pytest.raises(InvalidCalendar):
        Schedule.from_json(document)
