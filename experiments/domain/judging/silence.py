"""Silence is no success: what devices that never reported do to a verdict.

Where silence is as frequent in control it has other causes than the faults. Where it is not, or
where control is not known, whoever was silent may have been hurt; and silence in control alone
would make *harmful* of nothing. What control lost hides no harm, so *tolerated* minds in the first
place that more of the treated are silent. Which shares differ is told by Fisher's exact test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ldfi.experiments.domain.judging.comparison import differ, more
from ldfi.experiments.domain.judging.reach import Reach
from ldfi.experiments.domain.judging.verdict import Verdict

HIDING: Final = 0.025
"""How seldom *tolerated* may be refused because more of the treated are silent by chance."""
DOUBTED: Final = 0.25
"""How seldom *tolerated* may have to wait for more devices because more of the treated are silent
by chance."""
UNEQUAL: Final = 0.001
"""How seldom equal shares may be taken for different ones, whatever the verdict."""


class Heard(NamedTuple):
    """How many treated devices never reported, of how many; the same of control, where it is
    known."""

    lost: int
    treated: int
    awaited: int | None
    enrolled: int | None


def heard_of(reach: Reach, used: int, enrolled: int | None) -> Heard:
    """Count who was silent: of whose first request nothing came, whatever of later ones.

    ``used``, ``enrolled``: the devices that were let in, and those in control.
    """
    awaited = None if enrolled is None else max(0, enrolled - reach.heard("control"))
    return Heard(max(0, used - reach.heard("treatment")), used, awaited, enrolled)


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


@dataclass(slots=True)
class RollCall:
    """Who had been let in when *tolerated* was said first: of these it is known, once they have had
    time to report, how many never did.

    With few devices a third that crashed looks like chance. So it takes little to doubt, and what
    settles the doubt is that more are let in. ``doubts``: it has been doubted.
    """

    doubts: bool = False
    _at: float | None = None
    _treated: int = 0
    _control: int = 0

    def call(self, now: float, treated: int, control: int, *, calm: bool) -> None:
        """Note how many were let in when *tolerated* was said; forget it where it is no longer."""
        if not calm:
            self._at = None
        elif self._at is None:
            self._at, self._treated, self._control = now, treated, control

    def doubtful(self, reach: Reach) -> bool:
        """Say whether clearly more of the treated are silent than of control."""
        at = self._at or 0.0
        treated, control = reach.heard("treatment", at), reach.heard("control", at)
        silent = max(0, self._treated - treated), max(0, self._control - control)
        enrolled = max(self._treated, treated), max(self._control, control)
        self._at = None
        known = self._control > 0  # edges of an older version do not say
        doubted = known and more(silent[0], enrolled[0], silent[1], enrolled[1], DOUBTED)
        self.doubts |= doubted
        return doubted
