"""Who is hurt beside an experiment: requests that nobody injects into, and that share something.

When a circuit breaker opens or a pool runs empty, those fail who have nothing to do with the
experiment, in its own class and in any other that reaches the same service or system, or one on the
way there: a call that fails further in makes the calls around it fail as well, and any of them may
have a breaker around it. So as long as it may inject, the outcomes of all of them are watched: of
bystanders, of the control group, and of treated devices whose requests did not reach the point.

Each outcome is weighed by how much likelier it is if failures are more frequent by δ than they
were in the worst spell of its class before (Page, "Continuous inspection schemes", Biometrika 41,
1954). It is the worst, for failures come in bursts, and a burst during the experiment is no harm of
its making (:mod:`ldfi.experiments.domain.traffic.baseline`). Evidence never falls below none, so a
calm beginning hides nothing. A device counts as failed once: one that tries again and again is one
device.

Work that is done for several requests at once (:class:`SharedWork`)
hits others for certain: the first of them who fails is enough.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ldfi.experiments.domain.traffic.baseline import Spell
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.points import Point
from ldfi.lineage.span import Span, Trace

# Who met a fault though nobody drew them: work was done for several requests at once.
#
# A batch, or a look-up that others wait for, runs in the context of one request. If that one is
# treated the others meet its fault too. It shows where the fault stands in a trace of theirs (a
# consumer of a batch belongs to each request whose message it took), or where spans of the two
# link to one another. Traces come in any order, so failures are kept until the other's trace has
# come.

LIMIT: Final = 10_000
"""Failures that are kept in case the trace of a treated request says that it worked for them."""


@dataclass(slots=True)
class SharedWork:
    """Of one experiment. ``met``: devices that met its faults though nobody drew them; ``hurt``:
    those of them that failed. ``most``: how often a fault fired in one treated request, at most;
    where that is often, it may have been for others."""

    met: set[str] = field(default_factory=set)
    hurt: set[str] = field(default_factory=set)
    most: int = 0
    _treated: set[str] = field(default_factory=set)
    _served: set[str] = field(default_factory=set)
    _failed: OrderedDict[str, tuple[str, frozenset[str]]] = field(default_factory=OrderedDict)

    def treat(self, observation: Observation) -> None:
        """Take in a treated request in which a fault fired."""
        trace, trace_id = observation.lineage.trace, observation.lineage.trace_id
        others = served(trace)
        self.most = max(self.most, most_fired(trace))
        self._treated.add(trace_id)
        self._served |= others
        for other, (device, links) in self._failed.items():
            if other in others or trace_id in links:
                self._meet(device, success=False)

    def look(self, observation: Observation, points: frozenset[str]) -> None:
        """Take in a request that was not to meet a fault at these points."""
        lineage, outcome = observation.lineage, observation.outcome
        fired = {fault.partition("@")[2] for fault in lineage.fired}
        if fired & points or lineage.trace_id in self._served:
            self._meet(outcome.device, success=outcome.success)
        elif not outcome.success:
            links = linked(lineage.trace)
            if links & self._treated:
                self._meet(outcome.device, success=False)
            else:
                self._failed[lineage.trace_id] = outcome.device, links
                if len(self._failed) > LIMIT:
                    self._failed.popitem(last=False)

    def counts(self) -> dict[str, int]:
        """Count them for the record and for people."""
        return {"met": len(self.met), "hurt": len(self.hurt), "most": self.most}

    def words(self) -> str | None:
        """Return a message that others failed with it; None where none did."""
        if not self.hurt:
            return None
        return (
            f"{len(self.met)} devices that nobody drew met the fault, and {len(self.hurt)} of them "
            "failed: what it hit is done for several requests at once (a batch, a shared look-up)"
        )

    def _meet(self, device: str, *, success: bool) -> None:
        self.met.add(device)
        if not success:
            self.hurt.add(device)


Spread = Literal["", "turned away", "in vain"]
"""How a harm reached bystanders: requests did not reach the point any more, as when a circuit
breaker has opened, or they did and failed there, as when a pool is exhausted."""

ENOUGH: Final = math.log(100_000)
"""Evidence at which they count as hurt. Where nothing changes, not one in a hundred experiments
with a thousand bystanders gets as far, whatever share of them fails by itself; three failures in a
row do, where none failed before."""

UNKNOWN: Final = 0.1
"""Share that may have failed before where nobody looked: a steady class has no more."""
NEWEST: Final = 20
"""Outcomes that must be as they were before it counts as over."""

COOL: Final = 1 / 20
"""For this part of ``apart`` after an experiment none starts that injects into the same, however it
went: both are for what may last."""
MINUTE: Final = 60.0
"""For how long after an experiment its bystanders are looked at, when none was hurt."""
LONGEST: Final = 600.0
"""For how long when some were. If they have not recovered by then it has other causes."""


def systems_of(points: Iterable[str], callees: Mapping[str, str]) -> frozenset[str]:
    """Return the services and systems that these points reach; the point itself where unknown."""
    return frozenset(callees.get(point) or Point.parse(point).peer or point for point in points)


@dataclass(frozen=True, slots=True)
class _Before:
    """The worst stretch of a class before the experiment, and the evidence of each outcome
    against a rise by δ."""

    worst: Spell
    usual: float
    of_failure: float
    of_success: float

    @classmethod
    def of(cls, worst: Spell, delta: float) -> _Before:
        # Laplace: none is never quite none
        usual = (worst.failed + 1) / (worst.total + 2) if worst.total else UNKNOWN
        worse = usual + delta * (1 - usual)
        return cls(worst, usual, math.log(worse / usual), math.log((1 - worse) / (1 - usual)))


@dataclass(slots=True)
class Bystanders:
    """Tests whether bystanders of one experiment are hurt. ``systems``: what its points reach.
    ``delta``: see ``Thresholds``. ``enough``: evidence at which they count as hurt. ``way``:
    what is called on the way there."""

    systems: frozenset[str] = frozenset()
    delta: float = 0.25
    enough: float = ENOUGH
    way: frozenset[str] = frozenset()
    work: SharedWork = field(default_factory=SharedWork)
    harmed: set[str] = field(default_factory=set)
    """Devices that saw a failure."""
    requests: int = 0
    failures: int = 0
    arrived: int = 0
    """Of those that failed, how many had come as far as what they share."""
    hurt: str | None = None
    """In words, as soon as there is enough evidence: how many had failed by then."""
    _before: dict[str, _Before] = field(default_factory=dict)
    newest: deque[bool] = field(default_factory=lambda: deque(maxlen=NEWEST))
    _evidence: float = 0.0

    @property
    def shared(self) -> frozenset[str]:
        """Return all systems that others may share with it."""
        return self.systems | self.way

    def knows(self, request_class: str) -> bool:
        """Return whether it is known how this class fared before."""
        return request_class in self._before

    def note(self, request_class: str, worst: Spell) -> None:
        """Take in how badly a class has fared by itself, before anything was injected."""
        self._before[request_class] = _Before.of(worst, self.delta)

    def add(self, request_class: str, device: str, *, success: bool, reached: bool) -> None:
        """Add one outcome of a class that is known. ``reached``: whether the request reached a
        shared system."""
        self.newest.append(success)
        if self.hurt is not None or (not success and device in self.harmed):
            if not success:
                self.harmed.add(device)
            return
        self.requests += 1
        before = self._before[request_class]
        if not success:
            self.harmed.add(device)
            self.failures += 1
            self.arrived += reached
        gained = before.of_success if success else before.of_failure
        self._evidence = max(0.0, self._evidence + gained)
        if self._evidence >= self.enough:
            self.hurt = self._words()

    def treat(self, observation: Observation) -> None:
        """Take in a treated request in which a fault fired: it may have worked for others."""
        self.work.treat(observation)
        self.hurt = self.hurt or self.work.words()

    def look(self, observation: Observation, points: frozenset[str]) -> None:
        """Take in a request that was not to meet a fault at these points, and may have."""
        self.work.look(observation, points)
        self.hurt = self.hurt or self.work.words()

    def spread(self) -> Spread:
        """Return how they were hurt; empty where they were not, or it is not known to be so."""
        if self.hurt is None:
            return ""
        return "turned away" if 2 * self.arrived < self.failures else "in vain"

    def recovered(self) -> bool:
        """Return whether the newest of them fail no more than before."""
        failed, usual = self.newest.count(False), self._usual()
        return len(self.newest) == NEWEST and failed <= max(1, usual * NEWEST)

    def felt(self, since_end: float) -> bool:
        """Return whether bystanders may still feel it so many seconds after its end."""
        return self.hurt is not None and since_end < LONGEST and not self.recovered()

    def _usual(self) -> float:
        return max((each.usual for each in self._before.values()), default=UNKNOWN)

    def _words(self) -> str:
        failed = sum(each.worst.failed for each in self._before.values())
        total = sum(each.worst.total for each in self._before.values())
        reached = ", ".join(sorted(self.systems))
        if on_the_way := ", ".join(sorted(self.way - self.systems)):
            reached += f" or, on the way there, {on_the_way}"
        return (
            f"{self.failures} of {self.requests} requests that nobody injected into failed, which "
            f"reach {reached} too; {failed} of {total} had before, at worst"
        )


# Work that was done for several requests at once: a batch, a look-up that others wait for.
#
# It runs in one request's context, so a fault that is meant for that one hits the others as well,
# and no context can tell them apart. Where spans link to one another (OpenTelemetry's data loaders
# and batching clients do so), it shows afterwards.
def served(trace: Trace) -> frozenset[str]:
    """List the other traces for which a call was made at which a fault fired: those that its span,
    or one around it, links to."""
    spans = {span.span_id: span for span in trace.spans}
    found: set[str] = set()
    seen: set[str] = set()
    for span in trace.spans:
        above: Span | None = span if span.operation.fired else None
        while above is not None and above.span_id not in seen:
            seen.add(above.span_id)
            found.update(trace_id for trace_id, _ in above.links)
            above = spans.get(above.parent_id or "")
    return frozenset(found - {trace.trace_id})


def linked(trace: Trace) -> frozenset[str]:
    """List all other traces that spans of this one link to."""
    there = {trace_id for span in trace.spans for trace_id, _ in span.links}
    return frozenset(there - {trace.trace_id})


def most_fired(trace: Trace) -> int:
    """Count how often the fault that fired most often did so."""
    counts: dict[str, int] = {}
    for span in trace.spans:
        for kind in span.operation.fired:
            fault = f"{kind}@{span.operation.point}"
            counts[fault] = counts.get(fault, 0) + 1
    return max(counts.values(), default=0)
