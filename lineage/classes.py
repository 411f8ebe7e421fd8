"""Request classes: requests that behave the same, told apart by what is known on arrival.

Requests of one entry point (service, method, path) usually rely on the same points; then the
entry point is the class. Where they do not, whatever else an edge knows of a request may tell
which is which: a shallow decision tree over query parameters and headers is asked, and its leaves
become the classes. What no feature explains (``/owners/99`` has no pets, so nobody asks for their
visits) stays together. Where requests merely vary, what only some of them call is a part of the
class, with its share. Where the parts contradict each other (:mod:`ldfi.lineage.class_parts`), it
is marked unfit for exploration: two things are asked for under one name, and no edge can choose
one.

What fails in nearly every good request is down already: such requests are what the class is without
it, and no less unperturbed.

A class is a predicate that an edge evaluates in microseconds; nothing in it is known only to the
trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.lineage.class_parts import ClassPart, contradiction, parts
from ldfi.lineage.shapes import Shape
from ldfi.lineage.splitting import split
from ldfi.lineage.varieties import Variety, varieties

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
    parts: tuple[ClassPart, ...] = ()
    """What only some of its requests rely on."""
    down: frozenset[str] = frozenset()
    """Points that fail in nearly every good request."""
    unfit: str = ""
    """Why the class must not be explored; empty where it may."""
    varieties: tuple[Variety, ...] = ()
    """The ways in which its requests go, where they scatter."""

    @property
    def name(self) -> str:
        """The predicate in words."""
        return str(self.predicate)

    @property
    def traces(self) -> int:
        """Return how many requests were seen."""
        return sum(shape.count for shape in self.shapes)

    @property
    def last_seen(self) -> int:
        """Return when the latest of them began: nanoseconds since the epoch."""
        return max(shape.last for shape in self.shapes)


Entry = tuple[str | None, ...]
"""Where a request enters: the service, and the operation or else the method, the path (or its
template) and what is called there, where that has a name."""

CALLED = ("graphql.operation", "graphql.hash", "jsonrpc.method")
"""What names the call at an address where all calls go."""

_WHERE = ("operation", "method", "path", *CALLED)


def entry_of(service: str, features: Features) -> Entry:
    """Return where a request enters, by what the edge knows of it."""
    get = features.get
    path = get("route") or get("path")
    return (service, get("operation"), get("method"), path, *map(get, CALLED))


@lru_cache(maxsize=4096)
def features_of(predicate: Predicate) -> Features:
    """Return what a predicate asks for by its value: enough to tell where its requests enter."""
    exact = {c.feature: c.value for c in predicate.conditions if c.value and not c.negated}
    return {**exact, "path": exact["route"]} if "route" in exact else exact


def entry_features(where: Entry) -> dict[str, str]:
    """Return the features by which requests enter there."""
    return {name: value for name, value in zip(_WHERE, where[1:], strict=True) if value}


def left_out(one: Predicate, other: Predicate) -> Condition | None:
    """Return what an edge must leave out of one class since it is another one's; None where the
    first takes in nothing of the other.

    A template takes in paths that have a class of their own, an address the calls that have one.
    """
    placed = _placed(one)
    if not all(condition.holds(features_of(other)) for condition in placed):
        return None
    more = next((c for c in _placed(other) if c.feature in _APART and c not in placed), None)
    return None if more is None else Condition(more.feature, more.value, negated=True)


_APART = frozenset({*CALLED, "path", "route"})


@lru_cache(maxsize=4096)
def _placed(predicate: Predicate) -> tuple[Condition, ...]:
    """List the conditions that say where requests enter."""
    return tuple(
        c for c in predicate.conditions if c.feature in {*_WHERE, "route"} and not c.negated
    )


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
    if any("route" in shape.features for shape in entry):
        path = Condition("path", features["path"])
        conditions = [Condition("route", c.value) if c == path else c for c in conditions]
    conditions += [Condition(name, features.get(name), negated=name not in features) for name in by]
    whole = describe(Predicate.of(conditions), entry)
    if whole.consistency >= CONSISTENT or whole.sample < ENOUGH:
        return [whole]
    return refined(whole)


def refined(whole: RequestClass) -> list[RequestClass]:
    """Divide a class whose requests scatter further; the class alone, where nothing tells them
    apart."""
    raced = _raced(whole.shapes)
    leaves = split([_without(raced, shape) for shape in teaching(whole.shapes)])
    parts = [
        describe(Predicate.of([*whole.predicate.conditions, *leaf]), matching)
        for leaf in leaves
        if (matching := [s for s in whole.shapes if all(c.holds(s.features) for c in leaf)])
    ]
    return parts if len(parts) > 1 else [whole]


def describe(predicate: Predicate, shapes: Sequence[Shape]) -> RequestClass:
    """Measure how well the requests of these shapes (one at least), all of one service, hold
    together."""
    supports: Counter[frozenset[str]] = Counter()
    raced, taught = _raced(shapes), teaching(shapes)
    for shape in taught:
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
        parts=parts(supports),
        down=frozenset().union(*(s.lineage.failed - s.lineage.support for s in taught)),
        unfit=why_unfit(predicate, sample, consistency, supports),
        varieties=varieties(supports) if consistency < CONSISTENT else (),
    )


def teaching(shapes: Iterable[Shape]) -> list[Shape]:
    """List the shapes that show what a class relies on: good requests in which nothing was lost but
    what is down already."""
    good = [shape for shape in shapes if shape.outcome == "good" and not shape.disturbed]
    lost: Counter[str] = Counter()
    for shape in good:
        lost.update(dict.fromkeys(shape.lineage.failed - shape.lineage.support, shape.count))
    enough = CONSISTENT * sum(shape.count for shape in good)
    down = {point for point, count in lost.items() if count >= enough}
    return [shape for shape in good if shape.lineage.failed - shape.lineage.support == down]


def _raced(shapes: Iterable[Shape]) -> frozenset[str]:
    """List the points of consumers that outlasted some of these requests.

    Where they were over in time, it was by chance; no class is inconsistent for that. They count
    in clauses all the same, for a request may wait, and give up after a while.
    """
    return frozenset().union(*(shape.lineage.detached for shape in teaching(shapes)))


def _without(points: frozenset[str], shape: Shape) -> Shape:
    support = shape.lineage.support
    if not points & support:
        return shape
    return replace(shape, lineage=replace(shape.lineage, support=support - points))


def why_unfit(
    predicate: Predicate,
    sample: int,
    consistency: float,
    supports: Mapping[frozenset[str], int],
    wanted: float = CONSISTENT,
) -> str:
    """Return why a class must not be explored; empty where it may.

    ``wanted``: the consistency with which it may, even if parts of it contradict each other.
    """
    if any(condition.feature == "operation" for condition in predicate.conditions):
        return "no HTTP or gRPC request: an edge does not see it arrive"
    if sample < ENOUGH:
        return f"only {sample} good requests without failures; {ENOUGH} say something"
    against = contradiction(supports) if consistency < wanted else ()
    if against:
        either = " or on ".join(f"{min(part.points)} ({part.share:.0%})" for part in against[:6])
        return (
            f"supports scatter: its {sample} requests rely either on {either}, and nothing known on"
            " arrival tells them apart"
        )
    return ""


def _hit_rate(shapes: Sequence[Shape], expected: frozenset[str]) -> float:
    reached = total = 0
    for shape in shapes:
        if shape.outcome != "refused":
            reached += shape.count * len(expected & shape.lineage.called)
            total += shape.count * len(expected)
    return reached / total if total else 1.0
