"""Clauses: what the good runs of one request class teach together.

Runs are grouped by what failed in them and how, by nature or by injection, and by the delays they
outlasted; each group makes one clause, the union of what its runs relied on, less the faults that
fired in them and were survived. The union, because variety is not redundancy: of two unperturbed
runs one may have found its answer in a cache and had no alternative.

**Masks.** An error can keep a delay from happening: where an optional call fails at once, nothing
below it is reached, and a good run says nothing about how slow that might have been. Monotony
("more faults never help") does not hold there; a delay that hurts where an error is handled is
the plainest case. So a group also relies on the *swiftness* of every point that some group with
fewer failures called and this one did not. Errors below a call that was answered with an error need
no such care: the answer would be an error again.

**What remains unsound**, and is why a sample of what was inferred is tried all the same: an error
below a call that failed here could have brought in a fallback never seen, which hangs; an error
below a call that was refused, for what its callee answers then is another kind of failure
(campaigns know what is behind what, and try it: ``unproven`` in ``experiments``); and whatever is
not deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.kinds import outlasted
from ldfi.lineage.lineage import Lineage

Origin = Literal["observed", "injected"]
Key = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Clause:
    """At least one of ``faults`` must happen for the outcome to fail, as far as this one knows."""

    faults: frozenset[str]
    origin: Origin
    """``injected``: faults of ours fired in its runs. ``observed``: nature's own experiment."""
    failed: frozenset[str]
    """Points that failed in every one of its runs, whenever called, and were survived."""
    survived: frozenset[str]
    """The same with how they failed (``kind@point``)."""
    outlasted: frozenset[str]
    """Delays (``delay@point``) that fired in its runs and were survived."""
    runs: int
    trace_id: str
    """One of its runs."""


@dataclass(slots=True)
class _Group:
    origin: Origin
    trace_id: str
    runs: int = 0
    faults: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)


@dataclass(slots=True)
class GoodRuns:
    """The good runs of one class, collected. Only shapes are kept, never runs."""

    _groups: dict[Key, _Group] = field(default_factory=dict)

    def add(self, run: Lineage, count: int = 1) -> None:
        """Take a good run (or ``count`` that look the same)."""
        delays = frozenset(fault for fault in run.fired if outlasted(fault.partition("@")[0]))
        lost = run.lost
        group = self._groups.get((lost, delays))
        if group is None:
            origin: Origin = "injected" if run.fired else "observed"
            group = self._groups[lost, delays] = _Group(origin, run.trace_id)
        group.runs += count
        group.faults |= run.relied_on - run.fired
        group.called |= run.called

    def clauses(self) -> tuple[Clause, ...]:
        """Make one clause of each group; the unperturbed ones first, then by number of failures."""
        return tuple(
            Clause(
                faults=frozenset(group.faults | self._masked(key)),
                origin=group.origin,
                failed=frozenset(fault.partition("@")[2] for fault in key[0]),
                survived=key[0],
                outlasted=key[1],
                runs=group.runs,
                trace_id=group.trace_id,
            )
            for key, group in sorted(self._groups.items(), key=lambda item: _size(item[0]))
        )

    def _masked(self, key: Key) -> set[str]:
        failed, delays = key
        here = self._groups[key].called
        fewer = (
            group.called
            for (less, slow), group in self._groups.items()
            if less <= failed and slow <= delays and (less, slow) != key
        )
        masked = set().union(*fewer) - here
        return {str(Fault(point, "delay")) for point in masked}


def _size(key: Key) -> tuple[int, list[str], list[str]]:
    return (len(key[0]) + len(key[1]), sorted(key[0]), sorted(key[1]))
