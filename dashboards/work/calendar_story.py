"""The calendar's days: what happens on each, in the viewer's zone.

Runs that a schedule foresees, runs that have begun, blackouts and maintenance windows. Pure: it is
told what time it is. A schedule that is due more than :data:`SHOWN` times a day is cut short there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from ldfi.experiments.domain.campaign.calendar import Blackout, Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.local_time import earliest, latest, wall, zone
from ldfi.experiments.domain.gates.maintenance import EVERYTHING, Maintenance
from ldfi.experiments.store.schema import CampaignRow

SHOWN: Final = 3
"""Runs of one campaign on one day that are listed."""

Kind = Literal["run", "began", "blackout", "maintenance"]
_ORDER: Final[Mapping[Kind, int]] = {"blackout": 0, "maintenance": 1, "began": 2, "run": 3}


@dataclass(frozen=True, slots=True)
class Entry:
    """Something on a day. ``clock``: when, by the clock on the wall; empty for the whole day."""

    kind: Kind
    clock: str
    what: str
    campaign_id: str = ""


@dataclass(slots=True)
class Day:
    """A day of the viewer's: from ``start`` to ``end``, in Unix seconds."""

    date: date
    start: float
    end: float
    entries: list[Entry] = field(default_factory=list)


def days_from(first: date, count: int, tz: ZoneInfo) -> list[Day]:
    """List ``count`` days from ``first`` on, as long as each is where the clock is changed."""
    return [
        Day(day, _midnight(day, tz), _midnight(day + timedelta(days=1), tz))
        for day in (first + timedelta(days=number) for number in range(count))
    ]


def monday(day: date) -> date:
    """Find the Monday of that week."""
    return day - timedelta(days=day.weekday())


def sort(days: Iterable[Day]) -> None:
    """Bring the entries of each day into order: by kind, then by the clock."""
    for day in days:
        day.entries.sort(key=lambda each: (_ORDER[each.kind], each.clock))


def add_maintenance(days: Sequence[Day], windows: Iterable[Maintenance], tz: ZoneInfo) -> None:
    """Write down the windows on every day they touch."""
    for window in windows:
        end = window.until if window.closed_at is None else min(window.until, window.closed_at)
        what = f"{', '.join(window.down) or EVERYTHING}: {window.reason}"
        for day in _touched(days, window.opened_at, end):
            clock = _span(day, window.opened_at, end, tz)
            day.entries.append(Entry("maintenance", clock, what))


def add_blackouts(days: Sequence[Day], campaigns: Iterable[Campaign]) -> None:
    """Write down the blackouts of these campaigns on every day they touch."""
    for campaign in campaigns:
        calendar = campaign.definition.calendar
        for blackout in calendar.blackouts if calendar is not None else ():
            start, end = _moments(blackout, zone(calendar.timezone if calendar else "UTC"))
            what = f"{_name(campaign.definition.name, campaign.id)}: {blackout.why}"
            for day in _touched(days, start, end):
                day.entries.append(Entry("blackout", "", what, campaign.id))


def add_runs(days: Sequence[Day], campaigns: Iterable[Campaign], now: float, tz: ZoneInfo) -> None:
    """Write down when the schedules of these campaigns begin a run, from now on."""
    for campaign in campaigns:
        schedule = campaign.definition.schedule
        if schedule is None or campaign.state == "stopped":
            continue
        what = _name(campaign.definition.name, campaign.id)
        for day, clock in _due(schedule, days, now, tz):
            day.entries.append(Entry("run", clock, what, campaign.id))


def add_begun(days: Sequence[Day], rows: Iterable[CampaignRow], tz: ZoneInfo) -> None:
    """Write down the runs that have begun, as far as the record goes: the last of each campaign."""
    for row in rows:
        at = row.run_started_at
        if at is not None:
            for day in _touched(days, at, at + 1):
                if day.start <= at < day.end:
                    what = _name(row.name, row.id)
                    day.entries.append(Entry("began", _clock(at, tz), what, row.id))


def _due(
    schedule: Schedule, days: Sequence[Day], now: float, tz: ZoneInfo
) -> Iterator[tuple[Day, str]]:
    """List on which days, and when by the clock, it is due; the last of a day may stand for
    more."""
    moment = schedule.next_after(max(now, days[0].start - 1))
    for day in days:
        listed = 0
        while moment < day.end:
            if listed == SHOWN:
                yield day, "and more"
                moment = schedule.next_after(day.end - 1)
                break
            yield day, _clock(moment, tz)
            listed += 1
            moment = schedule.next_after(moment)


def _touched(days: Sequence[Day], start: float, end: float) -> list[Day]:
    return [day for day in days if start < day.end and end > day.start]


def _moments(blackout: Blackout, tz: ZoneInfo) -> tuple[float, float]:
    return earliest(blackout.first_moment(), tz), latest(blackout.last_moment(), tz)


def _span(day: Day, start: float, end: float, tz: ZoneInfo) -> str:
    """Say from when to when on that day, by the clock; empty for all of it."""
    since = _clock(start, tz) if start > day.start else ""
    until = _clock(end, tz) if end < day.end else ""
    if since and until:
        return f"{since}–{until}"
    return f"from {since}" if since else f"until {until}" if until else ""


def _midnight(day: date, tz: ZoneInfo) -> float:
    return earliest(datetime.combine(day, time.min), tz)


def _clock(at: float, tz: ZoneInfo) -> str:
    return wall(at, tz).strftime("%H:%M")


def _name(name: str, campaign_id: str) -> str:
    return name or campaign_id
