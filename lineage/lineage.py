"""The lineage of one request: everything a trace teaches, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ldfi.fit.features import Features
from ldfi.lineage import evidence
from ldfi.lineage.recognition import MEMORY, Shelf
from ldfi.lineage.span import Trace
from ldfi.lineage.tree import Tree, build


@dataclass(frozen=True, slots=True)
class Lineage:
    """What one request touched, what failed in it, and what it relied on."""

    trace_id: str
    start: int
    """Nanoseconds since the epoch."""
    duration: float
    """Seconds."""
    service: str
    """The service that the request entered."""
    route: str
    features: Features
    """What the edge knew of the request."""
    root_error: bool
    """The root span failed. Where it did not, the user may still have been hurt."""
    refused: bool
    """The request was refused (4xx): no failure, but no evidence of what the outcome needs."""
    support: frozenset[str]
    """Points on whose success the outcome relied (if it was good)."""
    called: frozenset[str]
    """Every point that was called and waited for, also below calls that failed."""
    failed: frozenset[str]
    """Points that failed with nothing failed above them."""
    fired: frozenset[str]
    """Faults (``kind@point``) that were injected and fired."""
    would_fire: frozenset[str]
    """The same for the control arm: faults that would have fired."""
    timed_out: frozenset[str]
    """Points where a delay fired and the caller gave up."""
    relied_on: frozenset[str]
    """The clause of this run, if it was good, before what fired is taken out."""
    experiment: str
    arm: str
    callees: Mapping[str, str]
    """Point → the service, database or host that it reaches."""
    spans: int
    orphans: int
    """Spans hanging in the air: where there are any, the support may be too small to be used."""
    strangers: int
    """Spans of other requests in the same trace."""
    trace: Trace

    @property
    def tree(self) -> Tree:
        """The call tree, built anew each time: few traces are ever looked at that closely."""
        tree = build(self.trace)
        assert tree is not None, "a lineage is only made of traces that have a tree"  # noqa: S101
        return tree


_shelf = Shelf()
_known: dict[tuple[int, int], Lineage] = {}


def learn(trace: Trace) -> Lineage | None:
    """Learn all that one trace teaches; None for a trace without a root (a circle of parents)."""
    number = _shelf.number(trace.spans)
    if number is None:
        return learn_in_full(trace)
    known = _known.get((_shelf.generation, number))
    if known is None:
        known = learn_in_full(trace)
        if len(_known) > MEMORY:
            _known.clear()
        if known is not None:
            _known[_shelf.generation, number] = known
        return known
    root = trace.spans[0]
    return Lineage(
        trace.trace_id,
        root.start,
        (root.end - root.start) / 1e9,
        known.service,
        known.route,
        known.features,
        known.root_error,
        known.refused,
        known.support,
        known.called,
        known.failed,
        known.fired,
        known.would_fire,
        known.timed_out,
        known.relied_on,
        known.experiment,
        known.arm,
        known.callees,
        len(trace.spans),
        0,
        0,
        trace,
    )


def learn_in_full(trace: Trace) -> Lineage | None:
    """Learn from a trace of a shape not seen before, as :func:`learn` does from any."""
    tree = build(trace)
    if tree is None:
        return None
    return Lineage(
        trace_id=tree.trace_id,
        start=tree.start,
        duration=(tree.end - tree.start) / 1e9,
        service=tree.service,
        route=tree.route,
        features=tree.features,
        root_error=tree.failed,
        refused=tree.refused,
        support=evidence.support(tree),
        called=evidence.called(tree),
        failed=evidence.failed(tree),
        fired=evidence.fired(tree),
        would_fire=evidence.would_fire(tree),
        timed_out=evidence.timed_out(tree),
        relied_on=evidence.relied_on(tree),
        experiment=tree.experiment,
        arm=tree.arm,
        callees=evidence.callees(tree),
        spans=tree.spans,
        orphans=tree.orphans,
        strangers=tree.strangers,
        trace=trace,
    )
