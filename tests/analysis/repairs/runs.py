"""Requests as they are kept of an experiment, written by hand."""

from __future__ import annotations

from ldfi.lineage.run_summary import Run, RunCall, Runs


def call(
    point: str,
    *,
    within: int | None = None,
    failed: bool = False,
    fired: str = "",
    took: float = 0.01,
    callee: str = "",
    code: str = "",
) -> RunCall:
    """One call; ``fired``: the kind that was injected into it."""
    kinds = (fired,) if fired else ()
    return RunCall(point, callee, within, failed, kinds, 0.0, took, code)


def runs(treated: list[RunCall], control: list[str] | None = None) -> Runs:
    """A request that failed, beside one that made these calls."""
    good = None if control is None else Run("g", True, None, 0.1, tuple(map(call, control)))
    return Runs(good, Run("b", False, None, 0.1, tuple(treated)))
