"""Patterns that name points, services, systems, fault domains or request classes.

One idea, shared by maintenance windows and by protected points and classes: ``*`` stands for
anything, every other character for itself, upper and lower case are the same. So each name is a
pattern that matches itself, the ``*`` in it included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import lru_cache

from ldfi.fit.protocol.points import Point

_SPECIAL = re.compile(r"[?\[]")


def matching(patterns: Iterable[str], names: Iterable[str]) -> str | None:
    """Find the first of ``names`` that one of the patterns matches; None where none does."""
    compiled = [_compiled(pattern) for pattern in patterns]
    for name in names:
        if any(pattern.match(name) for pattern in compiled):
            return name
    return None


def names_of(point: str, callees: Mapping[str, str]) -> tuple[str, ...]:
    """All names that a point goes by: its own, its caller's, and those of what it reaches.

    ``callees``: point → the service, system or domain that answers there. The host that the caller
    asks for counts too, with and without its port.
    """
    parsed = Point.parse(point)
    host = parsed.peer.rpartition(":")[0]
    names = (point, parsed.caller, callees.get(point, ""), parsed.peer, host)
    return tuple(dict.fromkeys(filter(None, names)))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """``fnmatch`` without its ``?`` and ``[…]``; it never tries a star twice, so it is fast."""
    return re.compile(translate(_SPECIAL.sub(r"[\g<0>]", pattern)), re.IGNORECASE)
