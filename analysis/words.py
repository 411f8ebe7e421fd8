"""Faults and numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ldfi.fit.protocol.kinds import OUTLASTED, spoken

NOTHING: Final = "–"
"""Where there is no figure."""

_HAPPENS: Final = spoken("happens") | {"failed": "fails"}
"""``failed``: by nature, which said no more of it."""
_WITH: Final = spoken("happens_with")


def happens(kind: str) -> str:
    """Return what a call does that fails in this way: a kind of fault, or one that nature
    showed."""
    how, _, what = kind.partition(":")
    if how in OUTLASTED:
        what = what.partition(":")[0]  # not at how many calls
    says = what and (how != "delay" or ".." in what) and _WITH.get(how)
    return says.format(what) if says else _HAPPENS.get(how, kind)


def fault_in_words(fault: str, callees: Mapping[str, str]) -> str:
    """Say ``api>http:GET:ratings/titles/* fails``, and what it reaches where the name does not
    say."""
    kind, _, point = fault.partition("@")
    callee = callees.get(point, "")
    reached = f" [{callee}]" if callee and callee not in point else ""
    return f"{point}{reached} {happens(kind)}"


def counted(number: int, what: str) -> str:
    """Count things: ``1 file``, ``1,204 files``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def faults_in_words(faults: Iterable[str], callees: Mapping[str, str]) -> str:
    """Say all of them, joined by ``and``."""
    return " and ".join(fault_in_words(fault, callees) for fault in faults)


def listed(words: Iterable[str], most: int = 6) -> str:
    """Join words as ``a``, ``a and b``, ``a, b and 14 more``; empty for none."""
    found = list(words)
    if len(found) > most + 1:
        found = [*found[:most], f"{len(found) - most:,} more"]
    *first, last = found or [""]
    return f"{', '.join(first)} and {last}" if first else last


def length(seconds: float | None) -> str:
    """Write a length of time, in the largest unit that keeps two digits."""
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{seconds:.1f} s"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def percent(share: float | None) -> str:
    """Write a share, to the tenth of a percent where it is small."""
    if share is None:
        return NOTHING
    digits = 1 if 0 < abs(share) < 0.1 else 0
    return f"{share * 100:.{digits}f} %"
