"""One request as we know it: its lineage from the services, its outcome from the user's device.

The two halves arrive over different roads, in either order, once or twice or never. :class:`Join`
brings them together by trace id, within bounds on time and memory, and counts what it drops.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from ldfi.lineage.lineage import Lineage

Half = TypeVar("Half")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a device saw of one request. ``device`` and ``member`` are hashed before they get here.

    ``duration`` is in seconds, as the user waited. ``degraded``: accepted, but something was
    missing from it; never beside a failure.
    """

    trace_id: str
    device: str
    member: str
    success: bool
    error_code: str | None = None
    duration: float = 0.0
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """A request whose lineage and outcome are both known."""

    lineage: Lineage
    outcome: Outcome


class _Pending(Generic[Half]):
    """Halves that wait for the other one, oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._halves: OrderedDict[str, tuple[float, Half]] = OrderedDict()

    def put(self, trace_id: str, half: Half, now: float) -> bool:
        """Keep a half; False when there is one of that trace already."""
        if trace_id in self._halves:
            return False
        self._halves[trace_id] = (now, half)
        return True

    def take(self, trace_id: str) -> Half | None:
        found = self._halves.pop(trace_id, None)
        return found[1] if found else None

    def get(self, trace_id: str) -> Half | None:
        found = self._halves.get(trace_id)
        return found[1] if found else None

    def expire(self, before: float) -> int:
        """Drop what is older than ``before``, and the oldest above the limit; say how many."""
        dropped = 0
        while self._halves:
            _, (since, _half) = next(iter(self._halves.items()))
            if since >= before and len(self._halves) <= self._limit:
                break
            self._halves.popitem(last=False)
            dropped += 1
        return dropped


class Join:
    """Joins lineages and outcomes by trace id.

    ``patience`` is in seconds. ``dropped`` counts by reason: an outcome whose trace never came
    (``unknown_trace``; most of them where traces are sampled), a lineage no device reported on
    (``no_outcome``), second copies (``duplicate``), and an outcome whose trace has a hole
    (``trace_unusable``). ``trace``: seconds that an outcome waits for its trace, by default
    ``patience`` as well.
    """

    def __init__(
        self, patience: float = 30.0, limit: int = 100_000, *, trace: float | None = None
    ) -> None:
        self._patience = patience
        self._trace = patience if trace is None else trace
        self._lineages: _Pending[Lineage] = _Pending(limit)
        self._outcomes: _Pending[Outcome] = _Pending(limit)
        self._done: OrderedDict[str, float] = OrderedDict()
        self._unusable: OrderedDict[str, float] = OrderedDict()
        self._limit = limit
        self.dropped: Counter[str] = Counter()

    def add_lineage(self, lineage: Lineage, now: float) -> Observation | None:
        """Take the services' half."""
        if self._is_duplicate(lineage.trace_id):
            return None
        outcome = self._outcomes.take(lineage.trace_id)
        if outcome is None:
            if not self._lineages.put(lineage.trace_id, lineage, now):
                self.dropped["duplicate"] += 1
            return None
        return self._joined(lineage, outcome, now)

    def add_outcome(self, outcome: Outcome, now: float) -> Observation | None:
        """Take the device's half."""
        if self._is_duplicate(outcome.trace_id):
            return None
        if self._unusable.pop(outcome.trace_id, None) is not None:
            self._done[outcome.trace_id] = now
            self.dropped["trace_unusable"] += 1
            return None
        lineage = self._lineages.take(outcome.trace_id)
        if lineage is None:
            if not self._outcomes.put(outcome.trace_id, outcome, now):
                self.dropped["duplicate"] += 1
            return None
        return self._joined(lineage, outcome, now)

    def waiting(self, trace_id: str) -> Lineage | None:
        """Return a lineage that waits for its outcome."""
        return self._lineages.get(trace_id)

    def withdraw(self, trace_id: str) -> Lineage | None:
        """Give back a lineage that waits for its outcome: more of its trace has come."""
        return self._lineages.take(trace_id)

    def give_up(self, trace_id: str, now: float) -> None:
        """Expect no lineage of a trace any more: it has a hole."""
        if self._outcomes.take(trace_id) is None:
            self._unusable[trace_id] = now
        else:
            self._done[trace_id] = now
            self.dropped["trace_unusable"] += 1

    def expire(self, now: float) -> None:
        """Give up on halves that have waited too long."""
        before = now - self._patience
        self.dropped["unknown_trace"] += self._outcomes.expire(now - self._trace)
        self.dropped["no_outcome"] += self._lineages.expire(before)
        for known in (self._done, self._unusable):
            while known and (next(iter(known.values())) < before or len(known) > self._limit):
                known.popitem(last=False)

    def _is_duplicate(self, trace_id: str) -> bool:
        if trace_id not in self._done:
            return False
        self.dropped["duplicate"] += 1
        return True

    def _joined(self, lineage: Lineage, outcome: Outcome, now: float) -> Observation:
        self._done[lineage.trace_id] = now
        return Observation(lineage, outcome)
