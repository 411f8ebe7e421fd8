"""Unix seconds and what the clock on the wall shows, in a zone whose offset from UTC changes.

Twice a year the clock jumps: some local times do not exist and some exist twice. Between two
changes local time runs evenly; so whoever needs to be right asks for the next change.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import floor
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ldfi.errors import InvalidCalendar

DAY = 86_400
_FILES: Final = frozenset({"localtime", "posixrules", "Factory"})
_FOLDERS: Final = ("posix/", "right/")
"""What lies beside the zones where a system keeps them: on another machine it is another thing."""


def zone(name: str) -> ZoneInfo:
    """Return the time zone of that IANA name. Raises :class:`InvalidCalendar` for no such one."""
    unknown = InvalidCalendar(
        f"{name!r} is no time zone; give an IANA name such as 'UTC' or 'Europe/Berlin'"
    )
    if name in _FILES or name.startswith(_FOLDERS):
        raise unknown
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise unknown from error


def wall(now: float, tz: ZoneInfo) -> datetime:
    """Read what the clock on the wall shows, without a zone."""
    return datetime.fromtimestamp(now, tz).replace(tzinfo=None)


def earliest(local: datetime, tz: ZoneInfo) -> float:
    """Return when the wall shows ``local`` for the first time. Where it never does, a time after
    the jump.

    PEP 495 reads a missing time with the offset that held before the jump.
    """
    return local.replace(tzinfo=tz, fold=0).timestamp()


def latest(local: datetime, tz: ZoneInfo) -> float:
    """Return when the wall shows ``local`` for the last time. Where it never does, one before the
    jump."""
    return local.replace(tzinfo=tz, fold=1).timestamp()


def change(tz: ZoneInfo, after: float, until: float) -> float | None:
    """Find the first moment after ``after``, up to ``until``, at which the zone's offset changes.

    Two changes within a day that cancel each other would be missed; no zone has had such a day.
    """
    low, end = floor(after), floor(until)
    while low < end:
        high = min(low + DAY, end)
        if _offset(low, tz) != _offset(high, tz):
            return float(_bisect(tz, low, high))
        low = high
    return None


def _bisect(tz: ZoneInfo, low: int, high: int) -> int:
    before = _offset(low, tz)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle, tz) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(now: float, tz: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(now, tz).utcoffset()
