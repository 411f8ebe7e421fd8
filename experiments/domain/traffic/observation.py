"""One request as we know it: its lineage from the services, its outcome from the user's device.

The two halves arrive over different roads, in either order, once or twice or never. :class:`Join`
brings them together by trace id, within bounds on time and memory, and counts what it drops.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from ldfi.lineage.lineage import Lineage

Half = TypeVar("Half")

MOST_REPORTS: Final = 16
"""Reports on one request that are kept until its trace is whole, each of which says something
else."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a device saw of one request. ``device`` and ``member`` are hashed before they get here.

    ``duration`` is in seconds, as the user waited. ``degraded``: accepted, but something was
    missing from it; never beside a failure. ``mark``: the bits of the device by which edges draw
    (:mod:`ldfi.fit.protocol.allocation`); None where nobody says.
    """

    trace_id: str
    device: str
    member: str
    success: bool
    error_code: str | None = None
    duration: float = 0.0
    degraded: bool = False
    mark: int | None = None

    @property
    def badness(self) -> int:
        """Rank it: 0 for a success, 1 where something was missing, 2 for a failure."""
        return int(self.degraded) if self.success else 2

    def repeats(self, other: Outcome) -> bool:
        """Return whether this says of a request no more than the other does."""
        return (self.device, self.badness) == (other.device, other.badness)


@dataclass(frozen=True, slots=True)
class Observation:
    """A request whose lineage and outcome are both known."""

    lineage: Lineage
    outcome: Outcome


def worst(reports: Iterable[Outcome]) -> Outcome:
    """Return the worst report on one request; of equal ones the first."""
    return max(reports, key=lambda each: each.badness)


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

    def replace(self, trace_id: str, half: Half) -> None:
        """Put another half in the place of one that waits, and goes on waiting."""
        self._halves[trace_id] = (self._halves[trace_id][0], half)

    def expire(self, before: float) -> int:
        """Drop what is older than ``before``, and the oldest above the limit; return how many."""
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
    (``no_outcome``), second copies (``duplicate``), an outcome whose trace has a hole
    (``trace_unusable``), reports on one request that say different things (``contradiction``), and
    those of a device that the edge did not draw (``not_drawn``). ``trace``: seconds that an outcome
    waits for its trace, by default ``patience`` as well.

    Of contradictory reports the worse counts: of a request under experiment it is handed over once
    more where it comes last. ``drawn``: says whether a request under experiment can be of the
    device that reports on it.
    """

    def __init__(
        self,
        patience: float = 30.0,
        limit: int = 100_000,
        *,
        trace: float | None = None,
        drawn: Callable[[Lineage, Outcome], bool] = lambda _lineage, _outcome: True,
    ) -> None:
        self._drawn = drawn
        self._patience = patience
        self._trace = patience if trace is None else trace
        self._lineages: _Pending[Lineage] = _Pending(limit)
        self._outcomes: _Pending[tuple[Outcome, ...]] = _Pending(limit)
        self._done: OrderedDict[str, float] = OrderedDict()
        self._told: dict[str, Observation] = {}
        """What was handed over of requests under experiment, as long as worse may come."""
        self._unusable: OrderedDict[str, float] = OrderedDict()
        self._limit = limit
        self.dropped: Counter[str] = Counter()

    def add_lineage(self, lineage: Lineage, now: float) -> Observation | None:
        """Take the services' half."""
        if self._is_duplicate(lineage.trace_id):
            return None
        outcomes = self._outcomes.take(lineage.trace_id) or ()
        outcome = self._counting(lineage, outcomes)
        if outcome is None:
            if not self._lineages.put(lineage.trace_id, lineage, now):
                self.dropped["duplicate"] += 1
            return None
        return self._joined(lineage, outcome, now)

    def add_outcome(self, outcome: Outcome, now: float) -> Observation | None:
        """Take the device's half."""
        trace_id = outcome.trace_id
        if trace_id in self._done:
            return self._once_more(outcome)
        if self._unusable.pop(trace_id, None) is not None:
            self._done[trace_id] = now
            self.dropped["trace_unusable"] += 1
            return None
        lineage = self._lineages.get(trace_id)
        if lineage is None:
            self._keep(outcome, now)
            return None
        if self._counting(lineage, (outcome,)) is None:
            return None
        self._lineages.take(trace_id)
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
                self._told.pop(known.popitem(last=False)[0], None)

    def _is_duplicate(self, trace_id: str) -> bool:
        if trace_id not in self._done:
            return False
        self.dropped["duplicate"] += 1
        return True

    def _keep(self, outcome: Outcome, now: float) -> None:
        """Have a report wait for its trace, beside others that say something else."""
        trace_id = outcome.trace_id
        before = self._outcomes.get(trace_id)
        if before is None:
            self._outcomes.put(trace_id, (outcome,), now)
        elif len(before) == MOST_REPORTS or any(map(outcome.repeats, before)):
            self.dropped["duplicate"] += 1
        else:
            self._outcomes.replace(trace_id, (*before, outcome))

    def _counting(self, lineage: Lineage, reports: Sequence[Outcome]) -> Outcome | None:
        """Return the report that counts of those on one request; None where none does."""
        drawn = [each for each in reports if self._drawn(lineage, each)]
        self.dropped["not_drawn"] += len(reports) - len(drawn)
        self.dropped["contradiction"] += max(0, len(drawn) - 1)
        return worst(drawn) if drawn else None

    def _once_more(self, outcome: Outcome) -> Observation | None:
        """Take a late report on a request; hand the request over again if the report is worse."""
        told = self._told.get(outcome.trace_id)
        if told is not None and not self._drawn(told.lineage, outcome):
            self.dropped["not_drawn"] += 1
            return None
        if told is None or outcome.badness == told.outcome.badness:
            self.dropped["duplicate"] += 1
            return None
        self.dropped["contradiction"] += 1
        if outcome.badness < told.outcome.badness:
            return None
        self._told[outcome.trace_id] = worse = Observation(told.lineage, outcome)
        return worse

    def _joined(self, lineage: Lineage, outcome: Outcome, now: float) -> Observation:
        self._done[lineage.trace_id] = now
        found = Observation(lineage, outcome)
        if lineage.experiment:
            self._told[lineage.trace_id] = found
        return found


# The last resort among the sources of outcomes: the status of a request's root span.
#
# It says what the service believes, not what the user saw. An answer of 200 may hold an error, or
# an empty page; then a fault that hurts looks tolerated. Prefer device metrics.
def root_outcome(lineage: Lineage) -> Outcome:
    """Read the outcome that the root span tells of: bad when it failed.

    A trace does not say which device it came from, so each request counts as a device of its own:
    one that asks a hundred times counts a hundred times, and the tests' samples are less
    independent than they assume.
    """
    return Outcome(
        trace_id=lineage.trace_id,
        device=lineage.trace_id,
        member="",
        success=not lineage.root_error,
        error_code="root-span" if lineage.root_error else None,
        duration=lineage.duration,
    )
