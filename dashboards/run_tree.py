"""A run as a tree of calls to be read, with what differs from another run marked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ldfi.dashboards.lineage_graph import standings_of
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.kinds import spoken
from ldfi.fit.protocol.points import Point
from ldfi.lineage.run_summary import Run, RunCall, Runs

_MADE: Final = spoken("made")

MARKS: Final[Mapping[str, str]] = {
    "injected": "made to fail",
    "failed": "failed",
    "stood-in": "stood in",
    "not-reached": "only in this run",
}
"""What became of a call, in words; nothing is said of one that went the same in both runs."""


@dataclass(slots=True)
class Branch:
    """Calls of one point side by side within one call, and what was called within them."""

    point: str
    label: str
    standing: str
    mark: str
    count: int
    duration: float
    """Seconds, the longest of them."""
    below: list[Branch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The calls of a good run and of a bad one."""

    good: list[Branch]
    bad: list[Branch]


def side_by_side(good: Run, bad: Run) -> SideBySide:
    """Draw both runs; in the good one the calls are marked that the bad one never made."""
    standings = standings_of(good, bad)
    only = {point: each for point, each in standings.items() if each == "not-reached"}
    return SideBySide(_branches(good, only), _branches(bad, standings))


def alone(run: Run) -> list[Branch]:
    """Draw one run by itself: what was injected, and what failed."""
    return _branches(run, {})


def _branches(run: Run, standings: Mapping[str, str]) -> list[Branch]:
    """Draw calls as branches; equal ones next to each other become one with a count."""
    top: list[Branch] = []
    placed: list[Branch] = []
    for call in run.calls:
        beside = top if call.within is None else placed[call.within].below
        last = beside[-1] if beside else None
        if last is not None and last.point == call.point and last.standing == _of(call, standings):
            last.count += 1
            last.duration = max(last.duration, call.duration)
            placed.append(last)
            continue
        branch = _branch(call, _of(call, standings))
        beside.append(branch)
        placed.append(branch)
    return top


def _of(call: RunCall, standings: Mapping[str, str]) -> str:
    """Say how a call stands; of a point tried several times, each call says how it went itself."""
    if call.fired:
        return "injected"
    standing = standings.get(call.point, "same")
    if call.failed:
        return "failed"
    return standing if standing in {"stood-in", "not-reached"} else "same"


def _branch(call: RunCall, standing: str) -> Branch:
    read = Point.parse(call.point)
    where = f"{read.caller} → {call.callee or read.peer}" if read.caller != "unknown" else ""
    what = f"{read.operation} {read.template}".strip()
    label = f"{where.removesuffix(' → ')}: {what}" if where else call.point
    mark = MARKS.get(standing, "")
    if call.fired:
        mark = " and ".join(_MADE.get(kind, f"made to fail: {kind}") for kind in call.fired)
    return Branch(call.point, label, standing, mark, 1, call.duration)


def runs_shown(experiment: ExperimentRow | None) -> Runs:
    """Find the two requests that were kept of an experiment; none of one that taught nothing."""
    lesson: dict[str, Any] | None = experiment.lesson if experiment is not None else None
    return Runs.from_json((lesson or {}).get("runs"))


def callees_of(runs: Runs) -> dict[str, str]:
    """Tell what the points of these runs reach."""
    shown = [run for run in (runs.control, runs.treated) if run is not None]
    return {call.point: call.callee for run in shown for call in run.calls if call.callee}
