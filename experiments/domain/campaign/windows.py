"""Windows of time as people write them: 24 hours, by a clock that is named. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from datetime import time as clock_time
from typing import Final
from zoneinfo import ZoneInfo

from ldfi.errors import InvalidCalendar
from ldfi.experiments.domain.campaign.local_time import zone

HINT: Final = "02:10, 2026-11-23 02:10 or 2026-11-23T02:10Z"

_WRITTEN: Final = re.compile(
    r"(?:(?P<day>\d{4}-\d{2}-\d{2})[T ]+)?(?P<clock>\d{1,2}:\d{2}(?::\d{2})?)(?:\.\d{1,9})?"
    r"\s*(?P<zone>[A-Za-z+\-\d:/_]*)"
)
_OFFSET: Final = re.compile(r"[+-]\d{2}:\d{2}")


@dataclass(frozen=True, slots=True)
class Window:
    """From ``since`` to ``until``, in Unix seconds."""

    since: float
    until: float


def written(at: float, tz: ZoneInfo | str) -> str:
    """Write a time for a field: the day and 24 hours, by that clock; seconds if there are any."""
    clock = zone(tz) if isinstance(tz, str) else tz
    shown = datetime.fromtimestamp(at, clock)
    return f"{shown:%Y-%m-%d %H:%M:%S}" if int(at) % 60 else f"{shown:%Y-%m-%d %H:%M}"


def window_of(since: str, until: str, tz: tzinfo, now: float, last: float) -> Window:
    """Read a window; what is left out is the time until ``now``, and ``last`` seconds before.

    A time without a day is the newest such that is over: by ``now``, or for ``since`` by ``until``.
    Raises ValueError, in words.
    """
    end = _read(until, tz, now, fold=1) if until else now
    begin = _read(since, tz, end, fold=0) if since else end - last
    if begin >= end:
        raise ValueError("the window ends before it begins")
    return Window(begin, end)


def _read(text: str, tz: tzinfo, before: float, fold: int) -> float:
    """Read one time. Where the clock is put back and an hour comes twice, ``fold`` says which: a
    window is rather too long than too short."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time: write {HINT}")
    clock, shown = _clock(found["zone"], tz), found["clock"]
    if shown[1] == ":":
        shown = f"0{shown}"
    try:
        if found["day"]:
            at = datetime.fromisoformat(f"{found['day']}T{shown}")
            return at.replace(tzinfo=clock, fold=fold).timestamp()
        return _newest(shown, clock, before, fold)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{text!r} is no time: write {HINT}") from error


def _newest(clock: str, tz: tzinfo, before: float, fold: int) -> float:
    """Find the newest time before this one at which the clock shows that."""
    shown = clock_time.fromisoformat(clock)
    today = datetime.fromtimestamp(before, tz)
    for back in range(3):
        day = (today - timedelta(days=back)).date()
        at = datetime.combine(day, shown, tz).replace(fold=fold).timestamp()
        if at <= before + 60:
            return at
    raise ValueError(clock)


def _clock(name: str, tz: tzinfo) -> tzinfo:
    if not name:
        return tz
    if _OFFSET.fullmatch(name):
        offset = datetime.strptime(name, "%z").tzinfo
        assert offset is not None  # noqa: S101 - it was asked for
        return offset
    if name in {"Z", "z"}:
        return zone("UTC")
    try:
        return zone(name)
    except InvalidCalendar as error:
        raise ValueError(f"{name!r} is no time zone") from error
