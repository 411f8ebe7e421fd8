"""Everything that helps to get a finding fixed, put together: a sentence, its cause, what would
mend it, and who owns that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldfi.analysis.phrases import others_alone, said_callee, said_shortly
from ldfi.analysis.repairs.breaks import Break, breaks
from ldfi.analysis.repairs.owners import Owners
from ldfi.analysis.repairs.repair import Repair, repairs
from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.analysis.words import listed
from ldfi.fit.protocol.faults import DOWN
from ldfi.lineage.run_summary import Runs


@dataclass(frozen=True, slots=True)
class Cause:
    """Where findings come through: those with equal ``points`` have one cause. ``name``: what is
    not there then. ``why`` it hurts, in a sentence; empty where nobody knows."""

    points: tuple[str, ...]
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding for whoever has to mend it."""

    sentence: str
    cause: Cause
    repairs: tuple[Repair, ...]
    owners: tuple[str, ...]


def advise(
    request_class: str,
    faults: Sequence[str],
    state: str,
    counts: Mapping[str, Any],
    runs: Runs,
    callees: Mapping[str, str],
    owners: Owners,
    called: Called = BY_THEIR_NAMES,
) -> Advice:
    """Advise. ``counts`` and ``runs``: of the experiment that showed it; empty where there is
    none. ``callees``: what the points of the class reach, while it is known."""
    broken = breaks(faults, runs, callees)
    suggested = repairs(faults, broken, callees)
    at = [each.point for each in suggested[:1]] or [each.point for each in broken]
    return Advice(
        sentence(request_class, faults, state, counts, callees, called),
        _cause(faults, broken, callees, suggested[0].why if suggested else ""),
        suggested,
        tuple(dict.fromkeys(name for point in at for name in owners.of(point))),
    )


def sentence(
    request_class: str,
    faults: Iterable[str],
    state: str,
    counts: Mapping[str, Any],
    callees: Mapping[str, str],
    called: Called = BY_THEIR_NAMES,
) -> str:
    """Say ``GET /play is lost when license does not answer``. ``counts``: of the experiment that
    showed it. Where all were hurt and people say what that means: ``When license does not answer,
    nobody can press play``."""
    treated = counts.get("treatment") or {"devices": 0, "failures": 0}
    fails = said_shortly(faults, callees)
    if others_alone("harmful", counts):
        return f"others fail beside {called.name(request_class)} when {fails}: interference"
    how = 0
    if treated["devices"]:
        how = 1 if treated["failures"] == treated["devices"] else 2
    happens = _HAPPENS.get(state, _HURTS)[how]
    if happens == _HURTS[1] and request_class in called.losses:
        return f"When {fails}, {called.lost(request_class)}"
    return f"{called.name(request_class)} {happens} when {fails}"


_HURTS: Final = ("is hurt", "is lost", "fails more often")
_HAPPENS: Final[Mapping[str, tuple[str, str, str]]] = {
    "killed": ("loses a process",) * 3,
    "suspected": ("may be hurt", "may be lost", "may fail more often"),
    "fixed": ("was hurt", "was lost", "failed more often"),
    "refuted": ("is not hurt",) * 3,
}
"""What happens to requests: where nobody was treated, where all of them failed, where some did."""


def _cause(
    faults: Sequence[str], broken: Sequence[Break], callees: Mapping[str, str], why: str
) -> Cause:
    points = tuple(sorted(each.point for each in broken))
    if len(faults) == 1 and faults[0].startswith(DOWN):
        name = faults[0].removeprefix(DOWN)
    else:
        names = {**callees, **{each.point: each.callee for each in broken if each.callee}}
        among = [f"@{point}" for point in points]
        name = listed(dict.fromkeys(said_callee(each.point, names, among) for each in broken))
    return Cause(points, name, why)
