"""Checks of what must hold under siege. Each yields what is wrong, in words.

They go by the witness's clock alone: that of the service is set by the attacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from soak.checks import WHOLE_SECOND
from soak.treated import Treated

HALT_SECONDS: Final = 1.5
"""After a halt no edge that can be reached stamps later than this."""

JUST_BEFORE: Final = 4.0
"""Somebody must have been treated so many seconds before a halt, or it has stopped nothing."""


LOOK_SECONDS: Final = 1.0
"""A process sees so soon that its clock was set (:mod:`soak.faketime`)."""


@dataclass(frozen=True, slots=True)
class Round:
    """One attack. When it ``began``, when ``halted`` was asked for, and until when nobody may be
    treated, all in Unix seconds of the witness; ``answered``: the seconds that the halt's answer
    took, and ``status`` what it said. ``stepped``: when a clock was set, 0 where none was."""

    attack: str
    began: float
    halted: float
    answered: float
    until: float
    status: int
    stepped: float


def halts_take_effect(rounds: Sequence[Round], treated: Sequence[Treated]) -> Iterator[str]:
    """Check that no edge stamps later than :data:`HALT_SECONDS` after a halt was asked for."""
    for each in rounds:
        late = latest_stamp(each, treated)
        if late > HALT_SECONDS:
            yield f"{each.attack}: an edge stamped {late:.3f} s after the halt"


def latest_stamp(each: Round, treated: Sequence[Treated]) -> float:
    """Return the seconds from the halt to the last stamp before a resume; 0: there is none."""
    after = [one.stamped for one in treated if each.halted <= one.stamped < each.until]
    return max(after, default=each.halted) - each.halted


def halts_had_something_to_stop(
    rounds: Sequence[Round], treated: Sequence[Treated]
) -> Iterator[str]:
    """Check that somebody was treated just before each halt."""
    for each in rounds:
        earliest = each.halted - JUST_BEFORE
        if not any(earliest <= one.stamped < each.halted for one in treated):
            yield f"{each.attack}: nobody was treated in the {JUST_BEFORE:.0f} s before the halt"


def steps_disarm(
    rounds: Sequence[Round], treated: Sequence[Treated], lease: float
) -> Iterator[str]:
    """Check that nothing armed when a clock was set is treated for longer than a lease."""
    for each in rounds:
        before = {one.experiment for one in treated if one.stamped < each.stepped}
        until = each.stepped + LOOK_SECONDS + lease + WHOLE_SECOND
        late = [
            one.stamped - each.stepped
            for one in treated
            if one.experiment in before and one.stamped > until
        ]
        if each.stepped and late:
            yield f"{each.attack}: an edge stamped {max(late):.3f} s after the clock was set"


def nothing_outlives_a_kill(
    killed: float, treated: Sequence[Treated], lease: float
) -> Iterator[str]:
    """Check that no stamp and no fault is later than a lease after the last kill."""
    last = max((max(one.stamped, one.fired or 0.0) for one in treated), default=0.0)
    if last > killed + lease + WHOLE_SECOND:
        yield f"a fault fired {last - killed:.3f} s after the service was killed"


def stamps(lines: str) -> Iterator[float]:
    """Yield when each line of the notes was stamped, Unix seconds."""
    for line in lines.splitlines():
        yield json.loads(line)["stamped"]
