"""Silence is no success: what devices that never reported do to a verdict.

Where silence is as frequent in control it has other causes than the faults. Where it is not, or
where control is not known, whoever was silent may have been hurt; and silence in control alone
would make *harmful* of nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from ldfi.experiments.domain.judging.comparison import differ


class Heard(NamedTuple):
    """How many treated devices never reported, of how many; the same of control, where it is
    known."""

    lost: int
    treated: int
    awaited: int | None
    enrolled: int | None


def silence(heard: Heard, delta: float, level: float) -> str | None:
    """Say why too many were silent for a verdict; None where they were not.

    ``delta``: the rise that would matter. ``level``: how seldom equal shares may be taken for
    different ones.
    """
    said = f"{heard.lost} of {heard.treated} treated devices never reported"
    if heard.awaited is None or heard.enrolled is None:
        return said if heard.lost > heard.treated * delta else None
    if not differ(heard.lost, heard.treated, heard.awaited, heard.enrolled, level):
        return None
    return f"{said}, {heard.awaited} of {heard.enrolled} in control"
