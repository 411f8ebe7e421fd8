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

from ldfi.fit.features import Features
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
        """What an edge knew of these requests."""
        return self.lineage.features

    @property
    def unperturbed(self) -> bool:
        """Whether nothing was lost in these requests and nothing injected."""
        run = self.lineage
        return not run.fired and not self.told and run.failed <= run.support

    @property
    def teaches(self) -> bool:
        """Whether these requests show what a class relies on: good ones, with nothing lost."""
        return self.outcome == "good" and self.unperturbed


_Key = tuple[object, ...]


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
        self._shapes: dict[_Key, Shape] = {}

    def __iter__(self) -> Iterator[Shape]:
        """List every shape, in an order that depends only on what they are."""
        return iter(sorted(self._shapes.values(), key=_rank))

    def __len__(self) -> int:
        return len(self._shapes)

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
        self._take(Shape(run, outcome, hidden, told, 1, at, at, ((at, run.trace_id),), known))

    def merge(self, other: Shapes) -> None:
        """Take everything another collection has seen."""
        self.overflow += other.overflow
        for shape in other._shapes.values():
            self._take(shape)

    def renamed(self, rename: Callable[[Lineage], Lineage]) -> Shapes:
        """Rename the points of the same traffic; shapes may fall together."""
        result = Shapes(self.limit, self.spans)
        result.overflow = self.overflow
        for shape in self._shapes.values():
            result._take(replace(shape, lineage=rename(shape.lineage)))
        return result

    def _take(self, shape: Shape) -> None:
        key = _key(shape)
        known = self._shapes.get(key)
        if known is not None:
            self._shapes[key] = self._kept(_together(known, shape))
        elif len(self._shapes) < self.limit:
            self._shapes[key] = self._kept(shape)
        else:
            self.overflow += shape.count

    def _kept(self, shape: Shape) -> Shape:
        run = shape.lineage
        if self.spans or not run.trace.spans:
            return shape
        return replace(shape, lineage=replace(run, trace=Trace(run.trace_id, ())))


def _key(shape: Shape) -> _Key:
    run = shape.lineage
    features = tuple(sorted(run.features.items()))
    points = (run.support, run.called, run.survived, run.fired, run.detached, run.unseen)
    return (run.service, features, shape.outcome, shape.hidden, shape.told, *points)


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
    ways = (run.support, run.called, run.survived, run.fired, run.detached, run.unseen)
    sets = tuple(sorted(points) for points in ways)
    features = tuple(sorted(run.features.items()))
    return (run.service, features, shape.outcome, sets, shape.hidden, sorted(shape.told))
