"""Faults: an injection point and the way in which it fails.

Written out, a fault is ``kind@point``; one that fires only at the first calls of a request names
their number: ``error:2@api>http:GET:ratings/`` fails twice and then lets through, and so does
``status:503:2@…``. So it is seen whether a caller's retries save it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ldfi.fit.protocol.kinds import FaultKind, kind_of, takes_argument

DOWN: Final = "down@"
"""How the name of a domain begins, whose points fail together: ``down@X``."""

MAX_FIRST: Final = 99
"""The largest number of calls that can be named: a caller that tries more often is a loop."""

_FIRST = re.compile(r"[1-9][0-9]?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault: ``kind`` at ``point`` (a point's name). ``str(fault)`` is ``kind@point``.

    ``error``: the call fails at once. ``delay``: the call is slower than its caller will wait, or
    ``delay:LENGTHS``, as slow as a length that is drawn once for a request. The other kinds are in
    :mod:`ldfi.fit.protocol.kinds`; whether the point can have one is not asked here. ``first``:
    only the first so many calls of one request at this point (within one process) are hit, and
    later ones go through; 0 is every call. Raises ValueError for any other number than 0 to
    :data:`MAX_FIRST`, and for what is no kind.
    """

    point: str
    kind: FaultKind
    first: int = 0

    def __post_init__(self) -> None:
        """Refuse what could not be written down."""
        kind_of(self.kind)
        if not 0 <= self.first <= MAX_FIRST:
            raise ValueError(f"a fault fires at the first 1 to {MAX_FIRST} calls, not {self.first}")

    def __str__(self) -> str:
        occurrence = f":{self.first}" if self.first else ""
        return f"{self.kind}{occurrence}@{self.point}"

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read ``kind@point`` or ``kind:first@point``.

        Raises ValueError for an unknown kind, an empty point or a number out of range.
        """
        how, at, point = text.partition("@")
        if not at or not point:
            raise ValueError(f"{text!r} is not a fault; write KIND@POINT, such as error@{text}")
        kind, number = _split(how)
        try:
            kind_of(kind)
        except ValueError as problem:
            raise ValueError(f"in {text!r}: {problem}") from None
        if number is not None and not _FIRST.fullmatch(number):
            raise ValueError(
                f"{number!r} in {text!r} is no number of calls; write 1 to {MAX_FIRST}, "
                f"for instance {kind}:2@{point}"
            )
        return cls(point, kind, int(number or 0))


def _split(how: str) -> tuple[FaultKind, str | None]:
    """Split what stands before ``@`` into the kind and the number of calls, if there is one."""
    word, *more = how.split(":")
    kept = 2 if takes_argument(word) or _names_lengths(word, more) else 1
    parts = [word, *more]
    number = ":".join(parts[kept:]) if len(parts) > kept else None
    return ":".join(parts[:kept]), number


def _names_lengths(word: str, more: list[str]) -> bool:
    """Tell ``delay:0.5..2``, whose length is drawn, from ``delay:2``, which hits two calls."""
    return word == "delay" and any(more[:1]) and not more[0].lstrip("-").isdecimal()
