"""What a good run leaves unproved, although its support does not hold it.

A run that survived a set of faults shows, as far as more faults never help, that whatever is
disjoint from its support is survived as well. Two things are known to break that rule, so their
faults join the clause of such a run all the same:

**Masked delays.** Where a call fails at once, nothing below it is reached, and the run says nothing
about how slow that might have been: a delay that hurts where an error is handled is the plainest
case. So a clause also holds the delay of every point that a run with fewer failures called and
this one did not; unless it stands behind a call that was itself delayed until its caller gave up.
No slowness further down can hold up a caller for longer than its own patience.

**Shared fate.** A service whose database is down may well answer, only less; what stands in for the
service when it fails outright then never gets its turn. One such answer is bearable, all of them
at once may not be, and nothing but trying tells. So a fault domain counts as survived only in runs
in which all of it failed. In the solver's words: it has a member of its own, its ``token``, that no
run proves away by itself.

**Answers never given.** Where a call is refused, its callee never comes to work. What it would have
answered, had something failed below it, is another kind of failure, and whoever masks the one may
not mask the other. So a clause also holds the error of every point behind a call that was refused;
unless it stands behind one that was answered with an error, for then that answer was survived.

That a service answers alike whatever fails below it, remains an assumption.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.lineage.outcome import answered, unasked

Faults = frozenset[str]


def token(system: str) -> str:
    """Name the member that a fault domain has besides the faults of its points."""
    return f"shared@{system}"


@dataclass(slots=True)
class Unproven:
    """Groups of good runs, by the faults they survived, and what they leave unproved.

    ``domains``: system → the errors of which it consists. ``given_up``: points whose callers were
    seen to give up on a delay.
    """

    domains: Mapping[str, Faults]
    topology: Topology
    given_up: frozenset[str]
    _called: defaultdict[Faults, set[str]] = field(default_factory=lambda: defaultdict(set))
    _ended: defaultdict[Faults, set[str]] = field(default_factory=lambda: defaultdict(set))
    _told: defaultdict[Faults, set[str]] = field(default_factory=lambda: defaultdict(set))
    _known: set[str] = field(default_factory=set)
    _more: set[Faults] = field(default_factory=set)
    """The groups of which more is known than when they were looked at last."""
    _all: bool = True
    """Whether every group has to be looked at."""
    _behind: dict[frozenset[str], set[str]] = field(default_factory=dict)
    _changes: int = -1
    """As of which change of the topology that is."""

    def add(self, survived: Faults, called: frozenset[str], ended: Faults = frozenset()) -> None:
        """Note that runs which survived these faults called these points.

        ``ended``: how calls failed in them with nothing failed above (``kind@point``).
        """
        fresh = survived not in self._called
        if fresh or not (called <= self._called[survived] and ended <= self._ended[survived]):
            self._more.add(survived)
            self._called[survived] |= called
            self._ended[survived] |= ended
        if not called <= self._known:
            self._known |= called
            self._all = True

    def news(self) -> Iterator[tuple[Faults, Faults]]:
        """(faults survived, faults that must join the clause of those runs), each pair once."""
        if self._changes != self.topology.changes:
            self._changes, self._all = self.topology.changes, True
            self._behind.clear()
        # What a group leaves unproved depends on the groups of fewer failures besides.
        groups = [
            each
            for each in (self._called if self._all or self._more else ())
            if self._all or any(more <= each for more in self._more)
        ]
        self._all = False
        self._more.clear()
        for survived in groups:
            unproved = self._unproved(survived) - self._told[survived]
            if unproved:
                self._told[survived] |= unproved
                yield survived, frozenset(unproved)

    def _unproved(self, survived: Faults) -> set[str]:
        outwaited = frozenset(p for p in self.given_up if f"delay@{p}" in survived)
        outwaited |= {fault.partition("@")[2] for fault in survived if fault[:8] == "timeout@"}
        masked = self._masked(survived) - self._no_way_but(outwaited)
        unproved = {f"delay@{point}" for point in masked}
        unanswered = self._unanswered(survived) & self._known
        unproved |= {f"error@{point}" for point in unanswered}
        unproved |= {token(name) for name, errors in self.domains.items() if not errors <= survived}
        return unproved - survived

    def _unanswered(self, survived: Faults) -> set[str]:
        ended = [fault.partition("@") for fault in self._ended[survived]]
        refused = frozenset(point for kind, _, point in ended if unasked(kind))
        spoke = frozenset(point for kind, _, point in ended if answered(kind))
        return self._no_way_but(refused) - refused - self._no_way_but(spoke)

    def _masked(self, survived: Faults) -> set[str]:
        fewer = (called for less, called in self._called.items() if less < survived)
        return set().union(*fewer) - self._called[survived]

    def _no_way_but(self, points: frozenset[str]) -> set[str]:
        """Return what lies behind these points; computed once."""
        if points not in self._behind:
            self._behind[points] = self.topology.behind(points)
        return self._behind[points]
