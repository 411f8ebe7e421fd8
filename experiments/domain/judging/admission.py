"""Admission in stages: how many devices may be treated, given how those before have fared.

What hurts nearly always hurts at once, so most of what a harmful experiment costs is treated while
nobody has reported yet. A few are let in at a time, and the next when it is known how they fared.
Nothing here decides anything: the tests hold for any rule of admission that looks at nothing but
requests that have begun.
"""

from __future__ import annotations

from typing import Final

FIRST_OF_UNION: Final = 1
"""A set too large to be a finding hurts for no other purpose than to be narrowed."""
FIRST: Final = 2
"""Two failures are what a finding takes at least."""
WELL: Final = 14
"""So many in all when none of the first was hurt: about what *tolerated* takes."""
MORE: Final = 12
"""So many more each time after that, or half as many again: the longer all has gone well, the less
is at stake, and where many fail by themselves it takes a hundred."""


def first(faults: int, max_size: int) -> int:
    """How many are let in at first, given how many faults there are and how many a finding may
    have."""
    return FIRST_OF_UNION if faults > max_size else FIRST


def following(admitted: int, counted: int, failed: int) -> int:
    """How many may be treated in all, once it is known how the ``admitted`` have fared.

    ``counted``: in whose requests a fault fired; ``failed`` of them were hurt. Where a fault fires
    in few requests only, nothing is known yet, and twice as many are let in.
    """
    if counted == 0:
        return 2 * admitted
    if failed == 0:
        return max(WELL, admitted + max(MORE, admitted // 2))
    return admitted + (1 if 2 * failed >= counted else 2)
