"""When experiments may run: time zone, days, hours, blackouts; and when a campaign begins.

Days and hours go by the clock on the wall. Hours may pass midnight ("22:00" to "06:00"); such a
night belongs to the day on which it begins, so ``days=("fri",)`` includes Saturday's early hours.
Where the clock is set back, an hour that comes twice is open (or closed) twice; one that is skipped
never comes. A blackout errs on the safe side: it begins with the first and ends with the last
moment that its two ends can mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from math import floor
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ldfi.errors import InvalidCalendar
from ldfi.experiments.domain.campaign.local_time import DAY, change, earliest, latest, wall, zone

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FOREVER = 253_370_764_800.0
"""The year 9999: a blackout that ends then never ends."""
PATIENCE = 21 * DAY
"""Within three weeks after the last blackout every day and hour has come, clock changes or not."""

_HOUR = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")
_BLACKOUT_FIELDS = ("first", "last", "why")
_CALENDAR_FIELDS = ("timezone", "days", "hours", "blackouts")
_SCHEDULE_FIELDS = ("cron", "timezone")


@dataclass(frozen=True, slots=True)
class Blackout:
    """No experiments from ``first`` to ``last``, in the calendar's zone.

    Both are ISO dates, the last one included, or ISO times ("2026-12-24T18:00"), open again at the
    last one. Raises :class:`InvalidCalendar`.
    """

    first: str
    last: str
    why: str

    def __post_init__(self) -> None:
        if self.last_moment() < self.first_moment():
            raise InvalidCalendar(f"blackout: {self.last!r} is not after {self.first!r}")
        if not self.why.strip():
            raise InvalidCalendar(f"blackout from {self.first!r}: say why")

    def first_moment(self) -> datetime:
        """Return the first moment, by the clock on the wall."""
        moment = _moment(self.first)
        return moment if isinstance(moment, datetime) else datetime.combine(moment, time.min)

    def last_moment(self) -> datetime:
        """Return the last moment, to the microsecond."""
        moment = _moment(self.last)
        if isinstance(moment, datetime):
            return moment - timedelta(microseconds=1)
        return datetime.combine(moment, time.max)

    def covers(self, now: float, tz: ZoneInfo) -> bool:
        """Return whether it holds at this moment."""
        local, first, last = wall(now, tz), self.first_moment(), self.last_moment()
        begun = local >= first or now >= earliest(first, tz)
        over = local > last and now > latest(last, tz)
        return begun and not over

    def to_json(self) -> dict[str, str]:
        """As :meth:`from_json` reads it."""
        return {"first": self.first, "last": self.last, "why": self.why}

    @classmethod
    def from_json(cls, data: object) -> Blackout:
        """Read ``{"first": …, "last": …, "why": …}``. Raises :class:`InvalidCalendar`."""
        given = _document("blackout", data, _BLACKOUT_FIELDS)
        return cls(*(_text(f"blackout: {name}", given.get(name)) for name in _BLACKOUT_FIELDS))


@dataclass(frozen=True, slots=True)
class Calendar:
    """When experiments may run. ``days`` empty: any day. ``hours`` None: the whole day.

    Raises :class:`InvalidCalendar`.
    """

    timezone: str = "UTC"
    days: tuple[str, ...] = ()
    hours: tuple[str, str] | None = None
    blackouts: tuple[Blackout, ...] = ()

    def __post_init__(self) -> None:
        zone(self.timezone)
        for day in self.days:
            if day not in DAYS:
                raise InvalidCalendar(f"{day!r} is not a day; give some of {', '.join(DAYS)}")
        if self.hours is not None:
            start, end = map(_minutes, self.hours)
            if start in (end, 24 * 60):
                raise InvalidCalendar(
                    f"hours from {self.hours[0]} to {self.hours[1]} cannot be; "
                    "for the whole day leave them out"
                )

    def closed(self, now: float) -> str | None:
        """Why no experiment may run now, in a sentence for people; None while one may."""
        tz = zone(self.timezone)
        for blackout in self.blackouts:
            if blackout.covers(now, tz):
                return f"blackout until {blackout.last} ({self.timezone}): {blackout.why}"
        local = wall(now, tz)
        day = self._day(local)
        if self.days and day not in self.days:
            return f"{day} is not among the days {', '.join(self.days)} ({self.timezone})"
        if not self._within_hours(local):
            start, end = self.hours or ("", "")
            shown = local.strftime("%H:%M")
            return f"{shown} is outside the hours {start} to {end} ({self.timezone})"
        return None

    def opens(self, now: float) -> float | None:
        """Find when experiments may run next: ``now`` where they may, None for never."""
        tz = zone(self.timezone)
        ends = [latest(blackout.last_moment(), tz) for blackout in self.blackouts]
        horizon = min(max([now, *(end for end in ends if end < FOREVER)]) + PATIENCE, FOREVER)
        moment = now
        while moment < horizon:
            if self.closed(moment) is None:
                return moment
            moment = self._next_edge(moment, tz)
        return None

    def _day(self, local: datetime) -> str:
        """Name the day that this moment belongs to: after midnight, that of the night before."""
        if self.hours is not None:
            start, end = map(_minutes, self.hours)
            if end < start and local.hour * 60 + local.minute < end:
                local -= timedelta(days=1)
        return DAYS[local.weekday()]

    def _within_hours(self, local: datetime) -> bool:
        if self.hours is None:
            return True
        start, end = map(_minutes, self.hours)
        minute = local.hour * 60 + local.minute
        if start < end:
            return start <= minute < end
        return minute >= start or minute < end

    def _next_edge(self, now: float, tz: ZoneInfo) -> float:
        """Find the next moment at which it may open: nothing opens between two of them."""
        for blackout in self.blackouts:
            if blackout.covers(now, tz):
                end = round(latest(blackout.last_moment(), tz) + 1e-6, 6)
                if end > now:
                    return end
        today = wall(now, tz).replace(hour=0, minute=0, second=0, microsecond=0)
        walls = {today, today + timedelta(days=1)}
        if self.hours is not None:
            walls |= {local + timedelta(minutes=_minutes(self.hours[0])) for local in walls}
        edges = [when(local, tz) for local in walls for when in (earliest, latest)]
        turn = change(tz, now, now + DAY)
        return min(edge for edge in [*edges, turn or now] if edge > now)

    def to_json(self) -> dict[str, object]:
        """As :meth:`from_json` reads it."""
        return {
            "timezone": self.timezone,
            "days": list(self.days),
            "hours": list(self.hours) if self.hours else None,
            "blackouts": [blackout.to_json() for blackout in self.blackouts],
        }

    @classmethod
    def from_json(cls, data: object) -> Calendar:
        """Read what :meth:`to_json` wrote; every field may be left out."""
        given = _document("calendar", data, _CALENDAR_FIELDS)
        hours = given.get("hours")
        return cls(
            _text("time zone", given.get("timezone", "UTC")),
            tuple(_text("day", day) for day in _list("days", given.get("days", []))),
            None if hours is None else _hours(hours),
            tuple(map(Blackout.from_json, _list("blackouts", given.get("blackouts", [])))),
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """Begin at these times: ``cron`` has five fields, read in ``timezone`` as Debian's cron does.

    A job at fixed times (neither minute nor hour begins with ``*``) runs once where its time comes
    twice, and right after the jump where its time is skipped. Any other goes by the clock on the
    wall. Raises :class:`InvalidCalendar`.
    """

    cron: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone(self.timezone)
        self._due(datetime(2000, 1, 1))  # noqa: DTZ001 - by the clock on the wall

    def next_after(self, now: float) -> float:
        """Find the first moment after ``now`` at which it is due."""
        tz = zone(self.timezone)
        minute, hour = self.cron.split()[:2]
        if minute.startswith("*") or hour.startswith("*"):
            return self._next_by_the_wall(now, tz)
        for due in CronSim(self.cron, datetime.fromtimestamp(now, tz)):
            if due.timestamp() > now:  # the first of two equal times may be long past
                return due.timestamp()
        raise self._invalid("it never comes")

    def _next_by_the_wall(self, now: float, tz: ZoneInfo) -> float:
        start = float(floor(now) + 1)
        while True:
            local = wall(start, tz)
            due = self._due(local - timedelta(seconds=1))
            moment = start + (due - local).total_seconds()
            turn = change(tz, start, moment)
            if turn is None:
                return moment
            start = turn

    def _due(self, local: datetime) -> datetime:
        if len(self.cron.split()) != 5:
            raise self._invalid("not five fields")
        try:
            due = next(CronSim(self.cron, local), None)
        except (CronSimError, ValueError) as error:
            raise self._invalid(str(error)) from error
        if due is None:
            raise self._invalid("it never comes")
        return due

    def _invalid(self, reason: str) -> InvalidCalendar:
        return InvalidCalendar(
            f"{self.cron[:100]!r} is not a cron expression ({reason}); give five fields: minute, "
            "hour, day of month, month, day of week, such as '0 10 * * mon-fri'"
        )

    def to_json(self) -> dict[str, str]:
        """As :meth:`from_json` reads it."""
        return {"cron": self.cron, "timezone": self.timezone}

    @classmethod
    def from_json(cls, data: object) -> Schedule:
        """Read ``{"cron": …, "timezone": …}``; the zone may be left out."""
        given = _document("schedule", data, _SCHEDULE_FIELDS)
        return cls(
            _text("cron", given.get("cron")), _text("time zone", given.get("timezone", "UTC"))
        )


def _minutes(hour: str) -> int:
    """Minutes since midnight."""
    if not _HOUR.fullmatch(hour):
        raise InvalidCalendar(f"{hour!r} is no time of day; give HH:MM, from 00:00 to 24:00")
    return int(hour[:2]) * 60 + int(hour[3:])


def _moment(text: str) -> date | datetime:
    try:
        moment = datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
    except ValueError as error:
        raise InvalidCalendar(
            f"{text!r} is not a date; give one such as 2026-12-24 or 2026-12-24T18:00"
        ) from error
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        raise InvalidCalendar(f"{text!r}: leave the offset out; the calendar has a time zone")
    return moment


def _document(what: str, data: object, fields: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise InvalidCalendar(f"{what}: {data!r} is not an object with {', '.join(fields)}")
    unknown = [name for name in data if name not in fields]
    if unknown:
        raise InvalidCalendar(f"{what}: {unknown[0]!r} is unknown; there are {', '.join(fields)}")
    return data


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidCalendar(f"{what}: {value!r} is not text")
    return value


def _list(what: str, value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise InvalidCalendar(f"{what}: {value!r} is not a list")
    return list(value)


def _hours(value: object) -> tuple[str, str]:
    pair = [_text("hours", hour) for hour in _list("hours", value)]
    if len(pair) != 2:
        raise InvalidCalendar(f"hours: {value!r} are not two times, such as 09:00 and 17:00")
    return pair[0], pair[1]
