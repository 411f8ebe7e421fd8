"""Shapes: what is kept of traffic. Not spans, not traces: the distinct ways in which requests went.

Two requests have the same shape when an edge could not tell them apart, the outcome was the same,
and the same points were called, failed and relied on. A system has few shapes and many requests;
each shape carries how often it was seen, when, and the first few trace ids as exemplars.
Collecting is commutative: shapes from several workers are merged into the same whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ldfi.fit.protocol.features import Features
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.span import Trace

ShapeOutcome = Literal["good", "failed", "refused"]
EXEMPLARS = 5


@dataclass(frozen=True, slots=True)
class Shape:
    """One way in which requests went."""

    lineage: Lineage
    """Of the first request of this shape; stands for all of them."""
    outcome: ShapeOutcome
    hidden: bool
    """The request failed although its own root span says that it did not."""
    told: frozenset[str]
    """Faults that somebody says were injected, without proof in the trace."""
    count: int
    first: int
    last: int
    """When requests of this shape began: nanoseconds since the epoch."""
    traces: tuple[tuple[int, str], ...]
    """The first few: (start, trace id)."""
    known: int = 0
    """Of how many of these requests somebody wrote down what their users saw."""

    @property
    def features(self) -> Features:
        """Return the features that an edge knew of these requests."""
        return self.lineage.features

    @property
    def disturbed(self) -> bool:
        """Return whether something was injected into these requests, as far as anybody says."""
        return bool(self.lineage.fired or self.told)

    @property
    def unperturbed(self) -> bool:
        """Return whether nothing was lost in these requests and nothing injected."""
        return not self.disturbed and self.lineage.failed <= self.lineage.support

    @property
    def teaches(self) -> bool:
        """Return whether these requests show what a class relies on: good ones, with nothing
        lost."""
        return self.outcome == "good" and self.unperturbed


_Key = tuple[object, ...]


class _Tally:
    """A shape while it is counted. Most requests are of a shape that has all its exemplars, all of
    them earlier, and only add to its counts."""

    __slots__ = ("_count", "_known", "_last", "_latest", "_shape")

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._count, self._known, self._last = shape.count, shape.known, shape.last
        self._latest = shape.traces[-1] if len(shape.traces) >= EXEMPLARS else None

    def more(self, at: int, trace_id: str, known: int) -> bool:
        """Count a request that is no exemplar; False for one that may be."""
        if self._latest is None or (at, trace_id) <= self._latest:
            return False
        self._count += 1
        self._known += known
        self._last = max(self._last, at)
        return True

    def shape(self) -> Shape:
        """Return the shape with all that was counted."""
        if self._count == self._shape.count:
            return self._shape
        return replace(self._shape, count=self._count, known=self._known, last=self._last)


class Shapes:
    """The distinct shapes of some traffic.

    At most ``limit`` of them; what does not fit is counted in ``overflow``: traffic without
    structure must not exhaust memory, and could teach nothing. Without ``spans`` the lineages are
    kept without their traces, a tenth of the memory; then there is no tree to be had from them.
    """

    def __init__(self, limit: int = 50_000, spans: bool = True) -> None:
        self.limit = limit
        self.spans = spans
        self.overflow = 0
        self._tallies: dict[_Key, _Tally] = {}

    def __iter__(self) -> Iterator[Shape]:
        """List every shape, in an order that depends only on what they are."""
        return iter(sorted(self._all(), key=_rank))

    def __len__(self) -> int:
        return len(self._tallies)

    def add(
        self, run: Lineage, success: bool | None = None, told: frozenset[str] = frozenset()
    ) -> None:
        """Take one request. ``success``: what its user saw, where that is known."""
        failed = run.root_error if success is None else not success
        outcome: ShapeOutcome = "failed" if failed else "good"
        if success is None and run.refused and not failed:
            outcome = "refused"
        at = run.start
        hidden = failed and not run.root_error
        known = int(success is not None)
        key = _key(run, outcome, hidden, told)
        tally = self._tallies.get(key)
        if tally is None or not tally.more(at, run.trace_id, known):
            one = ((at, run.trace_id),)
            self._take(key, Shape(run, outcome, hidden, told, 1, at, at, one, known))

    def merge(self, other: Shapes) -> None:
        """Take everything another collection has seen."""
        self.overflow += other.overflow
        for shape in other._all():
            self._take(_key_of(shape), shape)

    def renamed(self, rename: Callable[[Lineage], Lineage]) -> Shapes:
        """Rename the points of the same traffic; shapes may fall together."""
        result = Shapes(self.limit, self.spans)
        result.overflow = self.overflow
        for shape in self._all():
            renamed = replace(shape, lineage=rename(shape.lineage))
            result._take(_key_of(renamed), renamed)
        return result

    def _all(self) -> Iterator[Shape]:
        return (tally.shape() for tally in self._tallies.values())

    def _take(self, key: _Key, shape: Shape) -> None:
        known = self._tallies.get(key)
        if known is not None:
            self._tallies[key] = _Tally(self._kept(_together(known.shape(), shape)))
        elif len(self._tallies) < self.limit:
            self._tallies[key] = _Tally(self._kept(shape))
        else:
            self.overflow += shape.count

    def _kept(self, shape: Shape) -> Shape:
        run = shape.lineage
        if self.spans or not run.trace.spans:
            return shape
        return replace(shape, lineage=replace(run, trace=Trace(run.trace_id, ())))


def _key_of(shape: Shape) -> _Key:
    return _key(shape.lineage, shape.outcome, shape.hidden, shape.told)


def _key(run: Lineage, outcome: ShapeOutcome, hidden: bool, told: frozenset[str]) -> _Key:
    features = run.features
    return (
        run.service,
        tuple(sorted(features.items())) if features else (),
        outcome,
        hidden,
        told,
        run.support,
        run.called,
        run.survived,
        run.fired,
        run.detached,
        run.unseen,
        run.ends if outcome == "failed" else None,  # whom it blames may be further in
    )


def _together(one: Shape, other: Shape) -> Shape:
    kept = one if one.traces <= other.traces else other
    traces = tuple(sorted({*one.traces, *other.traces})[:EXEMPLARS])
    return Shape(  # said in full: `replace` takes several times as long
        kept.lineage,
        kept.outcome,
        kept.hidden,
        kept.told,
        one.count + other.count,
        min(one.first, other.first),
        max(one.last, other.last),
        traces,
        one.known + other.known,
    )


def _rank(shape: Shape) -> tuple[object, ...]:
    run = shape.lineage
    ways = (run.support, run.called, run.survived, run.fired, run.detached, run.unseen, run.ends)
    sets = tuple(sorted(points) for points in ways)
    features = tuple(sorted(run.features.items()))
    return (run.service, features, shape.outcome, sets, shape.hidden, sorted(shape.told))
