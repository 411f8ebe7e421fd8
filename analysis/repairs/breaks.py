"""Where a failure gets through: the outermost call that failed because of it.

A failure that was injected deep within a request spreads upwards as long as every caller lets it
through. What is above the last call that failed is where nothing stood in for it: whoever repairs
that mends every finding that comes through there. So findings with the same breaks have one cause.

Read from the failed request that was kept of an experiment
(:class:`~ldfi.lineage.run_summary.Run`). Where none was kept, all that is known are the
points themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.points import Point
from ldfi.lineage.run_summary import Run, RunCall, Runs


@dataclass(frozen=True, slots=True)
class Break:
    """A call at which a failure got through to its caller.

    ``kind``: of the fault that began it. ``tries``: how often it was called side by side; 0 where
    no request was kept. ``waited``: seconds, the longest of them. ``answered``: it was only slow.
    ``stands_in``: only called because something else had failed. ``code``: where its caller makes
    it, as far as spans say.
    """

    point: str
    callee: str
    kind: str
    tries: int = 0
    waited: float = 0.0
    answered: bool = False
    stands_in: bool = False
    code: str = ""

    @property
    def caller(self) -> str:
        """The service that lets the failure through."""
        return Point.parse(self.point).caller


def breaks(faults: Sequence[str], runs: Runs, callees: Mapping[str, str]) -> tuple[Break, ...]:
    """Find where these faults got through, in the order in which they did."""
    run = runs.treated
    if run is None or run.success:
        return _by_name(faults, callees)
    found: dict[str, Break] = {}
    for place, call in enumerate(run.calls):
        if _is_one(call, faults):
            outer = _outermost(run, place)
            found.setdefault(outer.point, _break(outer, _kind(call, faults), runs, run))
    return tuple(found.values()) or _by_name(faults, callees)


def _by_name(faults: Iterable[str], callees: Mapping[str, str]) -> tuple[Break, ...]:
    """Take the points themselves; of a system that is down, only its name is known."""
    found = []
    for fault in faults:
        kind, _, where = fault.partition("@")
        reached = where if fault.startswith(DOWN) else callees.get(where) or Point.parse(where).peer
        found.append(Break(where, reached, kind))
    return tuple(found)


def _is_one(call: RunCall, faults: Iterable[str]) -> bool:
    if not call.fired:
        return False
    named = {fault.partition("@")[2] for fault in faults if not fault.startswith(DOWN)}
    return call.point in named or any(fault.startswith(DOWN) for fault in faults)


def _kind(call: RunCall, faults: Iterable[str]) -> str:
    at = (fault.partition("@") for fault in faults)
    return next((kind for kind, _, where in at if where == call.point), call.fired[0])


def _outermost(run: Run, place: int) -> RunCall:
    """Climb from a call through all that failed around it."""
    call = run.calls[place]
    while call.within is not None and run.calls[call.within].failed:
        call = run.calls[call.within]
    return call


def _break(call: RunCall, kind: str, runs: Runs, run: Run) -> Break:
    beside = [each for each in run.calls if (each.point, each.within) == (call.point, call.within)]
    usual = {each.point for each in runs.control.calls} if runs.control is not None else None
    return Break(
        point=call.point,
        callee=call.callee or Point.parse(call.point).peer,
        kind=kind,
        tries=len(beside),
        waited=max(each.duration for each in beside),
        answered=not any(each.failed for each in beside),
        stands_in=usual is not None and call.point not in usual,
        code=call.code,
    )
