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

import re
from collections import defaultdict
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Final

from ldfi.fit.protocol.points import Point

MOST_LINES = 10_000

_WILD: Final = re.compile(r"[*?[]")

Begun = defaultdict[str, list[int]]
"""By how they begin, up to the first wildcard: which lines, in their order."""


@dataclass(frozen=True, slots=True)
class Owners:
    """``lines``: patterns with their owners.

    A page asks for a thousand calls, and a file may have ten thousand lines: so only those are held
    against a name that begin as it does.
    """

    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()
    _of_calls: Begun = field(init=False, repr=False, compare=False)
    _of_callers: Begun = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        begun = Begun(list), Begun(list)
        for number, (pattern, _) in enumerate(self.lines):
            begun[">" not in pattern][_WILD.split(pattern, 1)[0]].append(number)
        object.__setattr__(self, "_of_calls", begun[0])
        object.__setattr__(self, "_of_callers", begun[1])

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
        last = max(
            self._last(self._of_calls, point),
            self._last(self._of_callers, Point.parse(point).caller),
        )
        return self.lines[last][1] if last >= 0 else ()

    def _last(self, begun: Begun, name: str) -> int:
        """Find the last line that fits; -1 where none does."""
        found = -1
        for end in range(len(name) + 1):
            for number in reversed(begun.get(name[:end], ())):
                if number < found:
                    break
                if _pattern(self.lines[number][0]).match(name):
                    found = number
                    break
        return found


@lru_cache(maxsize=MOST_LINES)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
