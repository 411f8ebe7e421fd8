"""How one request went, kept small: for people who look at a run that failed beside one that did
not.

Spans are not kept (design, section 10), so of each experiment that taught something two requests
are written down: one of the control group that went right, and the one of the treated that its
lesson names first as its evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.tree import Call

MOST_CALLS = 400
"""Calls of one request that are written down; what is above is only counted."""


@dataclass(frozen=True, slots=True)
class RunCall:
    """One call. ``within``: place of the call around it in the run's list; None: the request."""

    point: str
    callee: str
    within: int | None
    failed: bool
    fired: tuple[str, ...]
    """Kinds of fault that were injected into it."""
    start: float
    """Seconds after the request began, by the caller's clock."""
    duration: float
    """Seconds."""
    code: str = ""
    """Where its caller makes it, where spans say so (``code.*``)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One request: what the device saw, and the calls it made, each after the one around it."""

    trace_id: str
    success: bool
    error_code: str | None
    duration: float
    """Seconds that the user waited; where no device said, that the request took."""
    calls: tuple[RunCall, ...]
    left_out: int = 0
    """Calls that there was no room for."""
    features: Mapping[str, str] = field(default_factory=dict)
    """What was known of the request when it arrived."""
    root_failed: bool = False
    """Whether the service itself says that it failed. A 200 may hide an error."""

    def to_json(self) -> dict[str, Any]:
        """Points and callees once each, calls as short lists."""
        names: dict[str, int] = {}

        def place(name: str) -> int:
            return names.setdefault(name, len(names))

        calls = [
            [
                place(call.point),
                place(call.callee),
                call.within,
                int(call.failed),
                list(call.fired),
                call.start,
                call.duration,
                *([call.code] if call.code else []),
            ]
            for call in self.calls
        ]
        return {
            "trace_id": self.trace_id,
            "success": self.success,
            "error_code": self.error_code,
            "duration": self.duration,
            "left_out": self.left_out,
            "names": list(names),
            "calls": calls,
            "features": dict(self.features),
            "root_failed": self.root_failed,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Read what :meth:`to_json` wrote. Raises KeyError, TypeError or IndexError otherwise."""
        names = data["names"]
        return cls(
            trace_id=data["trace_id"],
            success=data["success"],
            error_code=data["error_code"],
            duration=data["duration"],
            calls=tuple(
                RunCall(
                    names[point], names[callee], within, bool(failed), tuple(fired), at, took, *code
                )
                for point, callee, within, failed, fired, at, took, *code in data["calls"]
            ),
            left_out=data["left_out"],
            features=data.get("features", {}),
            root_failed=data.get("root_failed", False),
        )


@dataclass(frozen=True, slots=True)
class Runs:
    """A request of either arm, where there was one to show."""

    control: Run | None = None
    treated: Run | None = None

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {
            "control": self.control.to_json() if self.control else None,
            "treated": self.treated.to_json() if self.treated else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Runs:
        """Read what :meth:`to_json` wrote; nothing where nothing was written."""
        if data is None:
            return cls()
        control, treated = data["control"], data["treated"]
        return cls(
            control=Run.from_json(control) if control else None,
            treated=Run.from_json(treated) if treated else None,
        )


def runs_of(experiment: Experiment, lesson: Lesson) -> Runs:
    """Choose the two requests that show what an experiment taught."""
    shown = lesson.traces[:1]
    treated = next(
        (each for each in [*experiment.bad, *experiment.good] if each.lineage.trace_id in shown),
        None,
    )
    return Runs(
        control=run_of(experiment.undisturbed) if experiment.undisturbed else None,
        treated=run_of(treated) if treated else None,
    )


def run_of(observation: Observation) -> Run:
    """One request, written down."""
    lineage, outcome = observation.lineage, observation.outcome
    tree = lineage.tree
    calls: list[RunCall] = []
    pending: list[tuple[Call, int | None]] = [(call, None) for call in reversed(tree.calls)]
    left_out = 0
    while pending:
        call, within = pending.pop()
        if len(calls) >= MOST_CALLS:
            left_out += 1
        else:
            calls.append(_written(call, within, tree.start))
        place = len(calls) - 1
        pending.extend((inner, place) for inner in reversed(call.calls))
    return Run(
        trace_id=lineage.trace_id,
        success=outcome.success,
        error_code=outcome.error_code,
        duration=outcome.duration or lineage.duration,
        calls=tuple(calls),
        left_out=left_out,
        features=lineage.features,
        root_failed=lineage.root_error,
    )


def _written(call: Call, within: int | None, start: int) -> RunCall:
    return RunCall(
        point=call.point,
        callee=call.callee,
        within=within,
        failed=call.failed,
        fired=call.fired,
        start=round((call.start - start) / 1e9, 6),
        duration=round((call.end - call.start) / 1e9, 6),
        code=call.code,
    )
