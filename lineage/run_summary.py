"""One request, written down small: for people who compare one that failed with one that did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
