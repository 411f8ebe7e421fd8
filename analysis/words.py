"""Faults and numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ldfi.fit.protocol.kinds import OUTLASTED, spoken

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
