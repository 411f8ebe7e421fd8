"""Request classes: requests that behave the same, told apart by what is known on arrival.

Requests of one entry point (service, method, path) usually rely on the same points; then the
entry point is the class. Where they do not, whatever else an edge knows of a request may tell
which is which: a shallow decision tree over query parameters and headers is asked, and its leaves
become the classes. What no feature explains (``/owners/99`` has no pets, so nobody asks for their
visits) stays together and is marked unfit for exploration: its supports scatter, and a scattered
clause would acquit points that only some of its requests rely on.

A class is a predicate that an edge evaluates in microseconds; nothing in it is known only to the
trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ldfi.fit.features import Features
from ldfi.fit.predicate import Condition, Predicate
from ldfi.lineage.shapes import Shape
from ldfi.lineage.splitting import split

CONSISTENT = 0.95
"""Share of requests with the expected support that makes a class fit for exploration."""

ENOUGH = 5
"""Good, unperturbed requests without which nothing can be said about consistency."""


@dataclass(frozen=True, slots=True)
class RequestClass:
    """One class of requests, and how well it holds together."""

    service: str
    """Where its requests enter."""
    predicate: Predicate
    shapes: tuple[Shape, ...]
    expected: frozenset[str]
    """The support of most of its good, unperturbed requests."""
    consistency: float
    """Share of the good, unperturbed requests with exactly the expected support."""
    sample: int
    """How many those are."""
    hit_rate: float
    """Share of the expected points that a request of the class reached, on average."""
    unfit: str = ""
    """Why the class must not be explored; empty where it may."""

    @property
    def name(self) -> str:
        """The predicate in words."""
        return str(self.predicate)

    @property
    def traces(self) -> int:
        """How many requests were seen."""
        return sum(shape.count for shape in self.shapes)

    @property
    def last_seen(self) -> int:
        """When the latest of them began: nanoseconds since the epoch."""
        return max(shape.last for shape in self.shapes)


Entry = tuple[str | None, ...]
"""Where a request enters: the service, and the operation or else the method and the path."""

_WHERE = ("operation", "method", "path")


def entry_of(service: str, features: Features) -> Entry:
    """Say where a request enters, by what the edge knows of it."""
    get = features.get
    return (service, get("operation"), get("method"), get("path"))


def discover(shapes: Iterable[Shape], by: Sequence[str] = ()) -> tuple[RequestClass, ...]:
    """Discover the classes of some traffic, the busiest first.

    ``by``: features by which requests are told apart in any case, besides method and path.
    """
    entries: dict[tuple[object, ...], list[Shape]] = defaultdict(list)
    for shape in shapes:
        told_apart = (shape.features.get(name) for name in by)
        entries[*entry_of(shape.lineage.service, shape.features), *told_apart].append(shape)
    found = [each for entry in entries.values() for each in _classes(entry, by)]
    return tuple(sorted(found, key=lambda each: (-each.traces, each.service, each.name)))


def _classes(entry: list[Shape], by: Sequence[str]) -> list[RequestClass]:
    features = entry[0].features
    conditions = [Condition(name, features[name]) for name in _WHERE if name in features]
    conditions += [Condition(name, features.get(name), negated=name not in features) for name in by]
    whole = describe(Predicate.of(conditions), entry)
    if whole.consistency >= CONSISTENT or whole.sample < ENOUGH:
        return [whole]
    raced = _raced(entry)
    leaves = split([_without(raced, shape) for shape in entry if shape.teaches])
    parts = [
        describe(Predicate.of([*conditions, *leaf]), matching)
        for leaf in leaves
        if (matching := [s for s in entry if all(c.holds(s.features) for c in leaf)])
    ]
    return parts if len(parts) > 1 else [whole]


def describe(predicate: Predicate, shapes: Sequence[Shape]) -> RequestClass:
    """Measure how well the requests of these shapes (one at least), all of one service, hold
    together."""
    supports: Counter[frozenset[str]] = Counter()
    raced = _raced(shapes)
    for shape in shapes:
        if shape.teaches:
            supports[shape.lineage.support - raced] += shape.count
    sample = supports.total()
    expected = min(supports, key=lambda s: (-supports[s], sorted(s)), default=frozenset[str]())
    consistency = supports[expected] / sample if sample else 0.0
    return RequestClass(
        service=shapes[0].lineage.service,
        predicate=predicate,
        shapes=tuple(shapes),
        expected=expected,
        consistency=consistency,
        sample=sample,
        hit_rate=_hit_rate(shapes, expected),
        unfit=why_unfit(predicate, sample, consistency),
    )


def _raced(shapes: Iterable[Shape]) -> frozenset[str]:
    """List the points of consumers that outlasted some of these requests.

    Where they were over in time, it was by chance; no class is inconsistent for that. They count
    in clauses all the same, for a request may wait, and give up after a while.
    """
    return frozenset().union(*(shape.lineage.detached for shape in shapes if shape.teaches))


def _without(points: frozenset[str], shape: Shape) -> Shape:
    support = shape.lineage.support
    if not points & support:
        return shape
    return replace(shape, lineage=replace(shape.lineage, support=support - points))


def why_unfit(
    predicate: Predicate, sample: int, consistency: float, wanted: float = CONSISTENT
) -> str:
    """Say why a class must not be explored; empty where it may.

    ``wanted``: the least consistency with which it may.
    """
    if any(condition.feature == "operation" for condition in predicate.conditions):
        return "no HTTP or gRPC request: an edge does not see it arrive"
    if sample < ENOUGH:
        return f"only {sample} good requests without failures; {ENOUGH} say something"
    if consistency < wanted:
        return (
            f"supports scatter: the commonest is that of {consistency:.0%} of {sample} requests,"
            f" {wanted:.0%} are wanted, and nothing known on arrival tells them apart"
        )
    return ""


def _hit_rate(shapes: Sequence[Shape], expected: frozenset[str]) -> float:
    reached = total = 0
    for shape in shapes:
        if shape.outcome != "refused":
            reached += shape.count * len(expected & shape.lineage.called)
            total += shape.count * len(expected)
    return reached / total if total else 1.0
