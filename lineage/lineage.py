"""The lineage of one request: everything a trace teaches, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from typing import Final

from ldfi.fit.protocol.features import Features
from ldfi.lineage import evidence
from ldfi.lineage.exporters import exports
from ldfi.lineage.operation import operation
from ldfi.lineage.packed import Packed
from ldfi.lineage.recognition import MEMORY, Shelf
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Tree, build


@dataclass(frozen=True, slots=True)
class Lineage:
    """What one request touched, what failed in it, and what it relied on.

    The last fields are the request's own (:data:`OWN`); the rest is the same for every request
    that went the same way.
    """

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
    survived: frozenset[str]
    """The same with how they failed (``kind@point``); if the run was good, that was survived."""
    ends: frozenset[str]
    """What failed at the bottom of each chain of failures, and how (``kind@point``), but for calls
    of which the same caller made another with success."""
    fired: frozenset[str]
    """Faults (``kind@point``) that were injected and fired."""
    would_fire: frozenset[str]
    """The same for the control arm: faults that would have fired."""
    timed_out: frozenset[str]
    """Points where a delay fired and the caller gave up."""
    relied_on: frozenset[str]
    """The clause of this run, if it was good, before what fired is taken out."""
    detached: frozenset[str]
    """Points that were only reached where nobody waited: the outcome says nothing about them."""
    unseen: frozenset[str]
    """Points that sent messages of which no consumer was seen."""
    experiment: str
    arm: str
    reach: str
    """What an injector says on a span of it that it can reach (:mod:`ldfi.fit.protocol.reach`)."""
    loose: tuple[str, ...]
    """The points of the outermost calls, where no request is: they run in a trace of their own."""
    rejoined: frozenset[str]
    """Services whose spans had lost their parents, and were put under the calls around them."""
    parentless: frozenset[str]
    """Those whose spans could not be: whatever they did is not known."""
    callees: Mapping[str, str]
    """Point → the service, database or host that it reaches."""
    libraries: Mapping[str, frozenset[str]]
    """Point → the client libraries that called it; an empty name for one that is not known."""
    orphans: int
    """Spans hanging in the air: where there are any, the support may be too small to be used."""
    strangers: int
    """Spans of other requests in the same trace."""
    trace_id: str
    start: int
    """Nanoseconds since the epoch."""
    duration: float
    """Seconds."""
    spans: int
    trace: Trace

    @property
    def again(self) -> bool:
        """Return whether it is not the first request of its device under its experiment. An edge
        that does not say so may not know."""
        return any(span.operation.again for span in self.trace.spans)

    @property
    def expired(self) -> bool:
        """Return whether a call of it was let through because its failure context had run out."""
        return any(span.operation.expired for span in self.trace.spans)

    @property
    def is_report(self) -> bool:
        """Return whether it is no request at all, but what an injector says that it can reach, or
        telemetry that is exported."""
        return (bool(self.reach) and self.spans == 1) or exports(self.features)

    @property
    def lost(self) -> frozenset[str]:
        """Return the failures that were survived (``kind@point``), less those a retry mended."""
        return frozenset(f for f in self.survived if f.partition("@")[2] not in self.support)

    @property
    def tree(self) -> Tree:
        """Build the call tree, anew each time: few traces are ever looked at that closely."""
        tree = build(self.trace)
        assert tree is not None, "a lineage is only made of traces that have a tree"  # noqa: S101
        return tree


OWN = 5
"""How many fields differ between requests that went the same way: the last ones."""

_shared = attrgetter(*(field.name for field in fields(Lineage)[:-OWN]))

Way = Callable[[str, int, float, int, Trace], Lineage]
"""Makes the lineage of a request of what is its own."""


def way_of(known: Lineage) -> Way:
    """Return what makes the lineages of further requests that went the same way as this one."""
    return partial(Lineage, *_shared(known))


def unusable(trace: Trace, run: Lineage | None) -> str:
    """Return why a trace is no evidence: what it misses; empty where it may be used."""
    missing = "root" if run is None else trace.missing or ("parent" if run.orphans else "")
    return _UNUSABLE.get(missing, "")


_UNUSABLE: Final = {
    "root": "trace_without_root",
    "parent": "trace_incomplete",
    "answer": "trace_unanswered",
    "call": "trace_short_of_calls",
}
_shelf = Shelf()
_known: dict[tuple[int, int], Way] = {}
_PACKED: Final = -1
"""In the place of a generation: the extension never gives a number twice."""


def learn(trace: Trace) -> Lineage | None:
    """Learn everything that one trace teaches; None for one without a root (parents in a circle).

    Of a trace of a known shape nothing is worked out again. (Such a shape is a plain tree: there
    are no orphans and no strangers.)
    """
    spans = trace.spans
    plain = spans.plain if isinstance(spans, Packed) else None
    number = _shelf.number(spans) if plain is None else plain.shape
    if number is None:
        return learn_in_full(trace)
    generation = _PACKED if plain is not None else _shelf.generation
    way = _known.get((generation, number))
    if way is None:
        learned = learn_in_full(trace)
        if len(_known) > MEMORY:
            _known.clear()
        if learned is not None:
            _known[generation, number] = way_of(learned)
        return learned
    root = plain or spans[0]
    duration = (root.end - root.start) / 1e9
    return way(trace.trace_id, root.start, duration, len(spans), trace)


def learn_in_full(trace: Trace) -> Lineage | None:
    """Do what :func:`learn` does, for a trace of a shape it has not seen before."""
    tree = build(trace)
    if tree is None:
        return None
    return Lineage(
        service=tree.service,
        route=tree.route,
        features=tree.features,
        root_error=tree.failed,
        refused=tree.refused,
        support=evidence.support(tree),
        called=evidence.called(tree),
        failed=evidence.failed(tree),
        survived=evidence.survived(tree),
        ends=evidence.ends(tree),
        fired=evidence.fired(tree),
        would_fire=evidence.would_fire(tree),
        timed_out=evidence.timed_out(tree),
        relied_on=evidence.relied_on(tree),
        detached=evidence.detached(tree),
        unseen=evidence.unseen(tree),
        experiment=tree.experiment,
        arm=tree.arm,
        reach=next(filter(None, (span.operation.reach for span in trace.spans)), ""),
        loose=tree.loose,
        rejoined=tree.rejoined,
        parentless=tree.parentless,
        callees=evidence.callees(tree),
        libraries=evidence.libraries(tree),
        orphans=tree.orphans,
        strangers=tree.strangers,
        trace_id=tree.trace_id,
        start=tree.start,
        duration=(tree.end - tree.start) / 1e9,
        spans=tree.spans,
        trace=trace,
    )


# A trace that is not whole, as far as it can be read: the calls of a request without its root.
#
# Services export at their own pace, and the root comes last: the request must end first, and its
# edge export. A call that failed is known earlier, from whoever made it. To read it where it
# stands, something is put in the place of each span that is missing above others, all of it within
# one request. What comes of that is good for who fails right now, and evidence of nothing.

_ABOVE = "what is to come"


def partial_trace(trace: Trace) -> Trace:
    """Complete a trace without a root; any other is returned as it is."""
    spans = trace.spans
    there = {span.span_id for span in spans}
    if not spans or any(span.parent_id is None for span in spans):
        return trace
    begin, end = min(span.start for span in spans), max(span.end for span in spans)
    service = spans[0].operation.service
    what = operation(service, _ABOVE, "server", 0, False, ())
    added = [Span(trace.trace_id, _ABOVE, None, begin, end, what)]
    missing = dict.fromkeys(s.parent_id for s in spans if s.parent_id not in there)
    for parent in missing:
        if parent is not None:
            mine = next(span for span in spans if span.parent_id == parent)
            within = operation(mine.operation.service, _ABOVE, "internal", 0, False, ())
            added.append(Span(trace.trace_id, parent, _ABOVE, begin, end, within))
    return Trace.of(trace.trace_id, [*added, *spans], trace.missing, trace.heard)
