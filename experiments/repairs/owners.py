"""Who owns a service: a file in the manner of CODEOWNERS.

A line is a pattern and owners, separated by spaces; of all lines that fit, the last one counts. A
pattern with ``>`` is held against the whole name of a call, any other against the service that
makes it, since that is where a repair belongs::

    # who mends what
    *                       @platform
    checkout                @payments  ann@example.org
    api>http:*:license/*    @playback
    sandbox

A line without owners says that nobody owns it. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ldfi.fit.points import Point

MOST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Owners:
    """``lines``: patterns with their owners."""

    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Owners:
        """Read the file. Raises ValueError where it is too long."""
        lines = [line.split() for line in text.splitlines()]
        found = [(words[0], tuple(words[1:])) for words in lines if words and words[0][0] != "#"]
        if len(found) > MOST_LINES:
            raise ValueError(f"{len(found):,} lines; at most {MOST_LINES:,} are read")
        return cls(tuple(found))

    def of(self, point: str) -> tuple[str, ...]:
        """Name who owns a call; nobody where nothing says so."""
        caller = Point.parse(point).caller
        for pattern, owners in reversed(self.lines):
            if fnmatchcase(point if ">" in pattern else caller, pattern):
                return owners
        return ()
