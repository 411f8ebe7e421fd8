"""Silence is no success: what devices that never reported do to a verdict.

Where silence is as frequent in control it has other causes than the faults. Where it is not, or
where control is not known, whoever was silent may have been hurt; and silence in control alone
would make *harmful* of nothing. What control lost hides no harm, so *tolerated* minds in the first
place that more of the treated are silent. Which shares differ is told by Fisher's exact test.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ldfi.experiments.domain.judging.comparison import differ, more
from ldfi.experiments.domain.judging.verdict import Verdict

HIDING: Final = 0.025
"""How seldom *tolerated* may be refused because more of the treated are silent by chance."""
UNEQUAL: Final = 0.001
"""How seldom equal shares may be taken for different ones, whatever the verdict."""


class Heard(NamedTuple):
    """How many treated devices never reported, of how many; the same of control, where it is
    known."""

    lost: int
    treated: int
    awaited: int | None
    enrolled: int | None


def silence(heard: Heard, delta: float, verdict: Verdict) -> str | None:
    """Say why too many were silent for a verdict; None where they were not. An inconclusive one
    says it as a tolerated one would.

    ``delta``: the rise that would matter.
    """
    said = f"{heard.lost} of {heard.treated} treated devices never reported"
    if heard.awaited is None or heard.enrolled is None:
        return said if heard.lost > heard.treated * delta else None
    both = (heard.lost, heard.treated, heard.awaited, heard.enrolled)
    if differ(*both, UNEQUAL) or (verdict != "harmful" and more(*both, HIDING)):
        return f"{said}, {heard.awaited} of {heard.enrolled} in control"
    return None
