"""Which calls run in traces of their own within requests: seen by when they run.

A thread that loses its context leaves a CLIENT span without a parent; a caller that nobody
instruments leaves a SERVER span that looks like a request from outside. Neither says whose it is.
Two signs tell such a call from work that goes on by itself, a poller or a health check say:

- *Within.* It runs within a request that may make it far more often than it would a few lengths of
  that request earlier or later, where it would meet the same traffic by chance alone.
- *Evenly.* Each such request has just as many of them within it.

Where neither speaks and every one runs within some request, nobody can tell: these are *unclear*,
and count only as what may be missing. Where some run while there is no such request, and the others
are no more than chance explains, they are *apart*: nobody's blindness. What an edge has marked, or
a device has reported, is known to come from outside, and so are probes.

A call is looked for within requests that its service took part in, by that service's own spans
where their times are known; an arrival within requests that entered elsewhere. Counts are of the
last half hour to hour. Pure: all times are those of spans.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median
from typing import Final, Literal, NamedTuple

from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.points import Point
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.operation import arrival_point
from ldfi.lineage.span import Span
from ldfi.lineage.unseen import NOTHING, Gap, Unseen, Why

Belongs = Literal["theirs", "unclear", "apart"]
"""Whether calls are of the requests that they run within."""

MOST: Final = 4_000
"""Requests that are held; the older half is counted when there are more."""
MOST_EVENTS: Final = 1_000
"""Calls of one name that are held."""
MOST_NAMES: Final = 200
"""Names of such calls that are told apart."""
GENERATION: Final = 1_800_000_000_000
"""Nanoseconds after which counts are put aside, and those put aside before are forgotten."""
BY_CHANCE: Final = 0.001
"""Probability up to which it is no chance that calls run within requests."""
CLEARLY: Final = 0.2
"""By which share of what is possible they must do so more often than by chance."""
EVEN: Final = 8
"""Requests from which on it says something that each has as many calls within it."""
ENOUGH: Final = 8
"""Calls that must have been moved before chance is known."""
MOSTLY: Final = 0.95
ALL: Final = 0.99
"""Shares that stand for nearly all, and for all but what was cut off at the rim."""
ELSEWHERE: Final = (-7.43, -4.19, -2.61, -1.37, 1.37, 2.61, 4.19, 7.43)
"""Lengths of a request by which a call is moved, to see what chance does. No multiples of each
other: traffic may have a beat."""
HOLES: Final = frozenset({"trace_incomplete", "trace_unanswered", "trace_short_of_calls"})
"""Why traces are no evidence of which the request is there (:func:`lineage.unusable`)."""
OVERLAPPING: Final = 100
"""Requests going on at once that are looked at for one call."""

_PROBE: Final = re.compile(
    r"(^|[/:.])(ready|readyz|readiness|live|livez|liveness|health|healthz|healthcheck|startupz|ping"
    r"|status|metrics|grpc\.health\.v1\.Health/(Check|Watch))(/(ready|readiness|live|liveness))?/?$"
)


class Event(NamedTuple):
    """A call whose request is not known. ``at``: what it reaches, a service or an address."""

    why: Why
    service: str
    at: str
    point: str
    start: int
    end: int

    @property
    def name(self) -> _Name:
        """Return what it has in common with others."""
        return _Name(self.why, self.service, self.at, self.point)


class _Name(NamedTuple):
    why: Why
    service: str
    at: str
    point: str


class _Way(NamedTuple):
    """What requests that went the same way have in common. ``callees`` is held for its identity."""

    callees: Mapping[str, str]
    service: str
    features: Features
    services: frozenset[str]
    """Those that serve in them."""
    parentless: frozenset[str]
    arrivals: Counter[str]
    """By service and by address, how many calls reached it."""
    calls: int
    arrives: str
    """By what name such a request counts as an arrival; empty: it came from outside."""


class _Request(NamedTuple):
    start: int
    end: int
    way: _Way
    inner: Mapping[str, tuple[int, int]]
    """By service, when it was at work in it, by its own clock, where that is known and wanted."""

    def when(self, service: str) -> tuple[int, int]:
        return self.inner.get(service, (self.start, self.end))


@dataclass(slots=True)
class _Tally:
    """Calls of one name: how many there were, and ran ``inside`` some request. ``hits`` of
    ``tries``: moved elsewhere they still did. ``within``: by class, how many of its requests had so
    many of them within."""

    events: int = 0
    inside: int = 0
    hits: int = 0
    tries: int = 0
    within: dict[str, Counter[int]] = field(default_factory=dict)

    def add(self, other: _Tally) -> None:
        self.events += other.events
        self.inside += other.inside
        self.hits += other.hits
        self.tries += other.tries
        for name, counts in other.within.items():
            self.within.setdefault(name, Counter()).update(counts)

    def calls(self, name: str) -> int:
        return sum(each * times for each, times in self.within.get(name, {}).items())

    @property
    def belongs(self) -> Belongs:
        chance = (self.hits + 1) / (self.tries + 2) if self.tries >= ENOUGH else 1.0
        excess = self.inside / max(1, self.events) - chance
        by_chance = _at_least(self.inside, self.events, chance)
        if self._even or (excess >= CLEARLY * (1 - chance) > 0 and by_chance <= BY_CHANCE):
            return "theirs"
        return "unclear" if self.inside >= ALL * self.events else "apart"

    @property
    def _even(self) -> bool:
        """Return whether nearly all of them are in classes that have just as many in each request,
        and each is within one request alone."""
        made = {name: self.calls(name) for name in self.within}
        even = sum(calls for name, calls in made.items() if _is_even(self.within[name]))
        alone = sum(made.values()) == self.inside >= MOSTLY * self.events
        return alone and even >= MOSTLY * self.inside > 0


@dataclass(slots=True)
class _Counts:
    """What was counted within some time. ``seen``: by class, calls by what they reach, and under
    the empty name all of them. ``requests``, ``holes``: by class. ``parentless``: by class, in how
    many requests a service's spans name no parents."""

    since: int = 0
    tallies: dict[_Name, _Tally] = field(default_factory=dict)
    seen: dict[str, Counter[str]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    holes: Counter[str] = field(default_factory=Counter)
    parentless: dict[str, Counter[str]] = field(default_factory=dict)

    def note(self, name: str, way: _Way, times: int) -> None:
        """Count requests of a class that went one way."""
        self.requests[name] += times
        seen = self.seen.setdefault(name, Counter())
        for at, calls in way.arrivals.items():
            seen[at] += calls * times
        seen[""] += way.calls * times
        if way.parentless:
            lost = self.parentless.setdefault(name, Counter())
            lost.update(dict.fromkeys(way.parentless, times))

    def add(self, other: _Counts) -> None:
        for calls, tally in other.tallies.items():
            self.tallies.setdefault(calls, _Tally()).add(tally)
        for name, counts in other.seen.items():
            self.seen.setdefault(name, Counter()).update(counts)
        for name, counts in other.parentless.items():
            self.parentless.setdefault(name, Counter()).update(counts)
        self.requests.update(other.requests)
        self.holes.update(other.holes)


class Sightings:
    """Takes every trace, and says of each class what its traces do not tell.

    ``class_of`` names the class of a request by its features and the service it enters; None where
    it has none.
    """

    def __init__(self, class_of: Callable[[Features, str], str | None]) -> None:
        self.serving: set[str] = set()
        """Services that were seen to serve requests."""
        self.seen: set[str] = set()
        """Services of which some trace has told."""
        self._class_of = class_of
        self._ways: dict[int, _Way] = {}
        self._requests: deque[_Request] = deque()
        self._events: OrderedDict[_Name, deque[Event]] = OrderedDict()
        self._roots: OrderedDict[str, Event] = OrderedDict()
        """By trace, arrivals that a device may still report."""
        self._wanted: set[str] = set()
        """Services whose own times are kept."""
        self._settled = _Counts()
        self._before = _Counts()
        self._changed = 0
        self._weighed: tuple[int, _Counts] = (-1, _Counts())

    def take(self, lineage: Lineage, *, reported: bool = False) -> None:
        """Add a whole trace. ``reported``: a device has reported it."""
        self._changed += 1
        start, end = lineage.start, lineage.start + round(lineage.duration * 1e9)
        self.serving.update(lineage.callees.values())
        self.seen.add(lineage.service)
        for event in loose_of(lineage):
            self.take_event(event)
        if lineage.loose and lineage.service in self.serving:
            return  # else it may be where requests begin, in a browser say
        way = self._way(lineage)
        inner = _at_work(lineage, self._wanted & way.services) if self._wanted else {}
        self._requests.append(_Request(start, end, way, inner))
        if not reported and way.arrives:
            at = lineage.service
            self._roots[lineage.trace_id] = Event("arrival", at, at, way.arrives, start, end)
            if len(self._roots) > MOST:
                self._roots.popitem(last=False)
        if len(self._requests) > MOST:
            self._settle()

    def take_event(self, event: Event) -> None:
        """Take a call whose request is not known."""
        self._changed += 1
        self._wanted.add(event.service)
        held = self._events.setdefault(event.name, deque(maxlen=MOST_EVENTS))
        held.append(event)
        self._events.move_to_end(event.name)
        if len(self._events) > MOST_NAMES:
            self._events.popitem(last=False)

    def reported(self, trace_id: str) -> None:
        """Note that a device has reported a trace: its request came from outside."""
        if self._roots.pop(trace_id, None) is not None:
            self._changed += 1

    def take_hole(self, features: Features, service: str) -> None:
        """Count a trace that lacks announced spans."""
        name = self._class_of(features, service)
        if name is not None:
            self._changed += 1
            self._settled.holes[name] += 1

    def figures(self, said: Mapping[str, bool] | None = None) -> Figures:
        """Return what is missing, as far as is known now. ``said``: by point, whether a person has
        said that such calls are of the requests that they run within, or of none."""
        if self._weighed[0] != self._changed:
            counts = _Counts()
            for each in (self._before, self._settled, self._counted()):
                counts.add(each)
            self._weighed = self._changed, counts
        return Figures(self._weighed[1], said or {})

    def _way(self, lineage: Lineage) -> _Way:
        known = self._ways.get(id(lineage.callees))
        if known is None:
            if len(self._ways) >= MOST:
                self._ways.clear()
            known = self._ways[id(lineage.callees)] = _way_of(lineage)
            self.serving |= known.services
            self.seen.update(span.operation.service for span in lineage.trace.spans)
        return known

    def _settle(self) -> None:
        """Count the older half for good, and with it the calls that ran meanwhile."""
        until = sorted(each.start for each in self._requests)[len(self._requests) // 2]
        if until - self._settled.since > GENERATION:
            self._before, self._settled = self._settled, _Counts(until)
        self._settled.add(self._counted(until))
        self._requests = deque(each for each in self._requests if each.start > until)
        for name, events in self._events.items():
            self._events[name] = deque((e for e in events if e.start > until), MOST_EVENTS)
        for trace_id in [each for each, event in self._roots.items() if event.start <= until]:
            del self._roots[trace_id]

    def _counted(self, until: int = 1 << 64) -> _Counts:
        """Return the counts of what began until then (nanoseconds)."""
        counts, names = _Counts(), dict[int, str | None]()
        ways = Counter(id(each.way) for each in self._requests if each.start <= until)
        for way in {id(each.way): each.way for each in self._requests}.values():
            name = names[id(way)] = self._class_of(way.features, way.service)
            if name is not None and id(way) in ways:
                counts.note(name, way, ways[id(way)])
        by_name: dict[_Name, list[Event]] = {}
        events = (each for held in self._events.values() for each in held)
        for event in (*events, *self._roots.values()):
            if event.start <= until:
                by_name.setdefault(event.name, []).append(event)
        prepared: dict[tuple[Why, str], _Able] = {}
        for each, found in by_name.items():
            if each[:2] not in prepared:
                prepared[each[:2]] = _Able(each, self._requests)
            if prepared[each[:2]].requests:
                counts.tallies[each] = _tallied(found, prepared[each[:2]], names, until)
        return counts


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known to be missing, of every class."""

    _counts: _Counts
    _said: Mapping[str, bool]

    def of(self, name: str, known: frozenset[str] = frozenset()) -> Unseen:
        """Return what cannot be seen of one class. ``known``: points that its lineage names
        although they run in traces of their own."""
        counts = self._counts
        seen = counts.seen.get(name, Counter())
        gaps = [*self._calls(name, seen, known), *self._requests(name)]
        unseen = sum(gap.calls for gap in gaps if gap.why in ("loose", "arrival"))
        return Unseen.of(gaps, seen[""] + unseen) if gaps or seen else NOTHING

    def theirs(self, name: str) -> frozenset[str]:
        """Return the points that a person has assigned to the requests they run within, of which
        this class has some."""
        return frozenset(
            each.point
            for each, tally in self._counts.tallies.items()
            if self._said.get(each.point) and tally.calls(name)
        )

    def proposals(self) -> Iterator[Proposal]:
        """Return all calls in traces of their own, and what is known of whose they are."""
        for name, tally in sorted(self._counts.tallies.items()):
            yield Proposal(
                *(*name, tally.events, tally.inside),
                tally.belongs,
                tuple(sorted(each for each in tally.within if tally.calls(each))),
                self._said.get(name.point),
            )

    def _calls(self, name: str, seen: Counter[str], known: frozenset[str]) -> Iterator[Gap]:
        for each, tally in self._counts.tallies.items():
            calls = min(tally.calls(name), tally.events)  # one may run within several requests
            said = self._said.get(each.point)
            belongs = "theirs" if said else tally.belongs
            if not calls or said is False or each.point in known or belongs == "apart":
                continue
            if belongs == "unclear" and each.why == "arrival" and not seen[each.at]:
                continue  # who is called by nobody else may well be an edge
            yield Gap(*each, calls, calls + seen[each.at], belongs == "theirs")

    def _requests(self, name: str) -> Iterator[Gap]:
        requests, holes = self._counts.requests[name], self._counts.holes[name]
        if holes:
            yield Gap("holes", name, "", "", holes, holes + requests)
        for service, times in self._counts.parentless.get(name, {}).items():
            yield Gap("parentless", service, service, "", times, requests)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Calls of one name whose request nobody knows. ``inside``: how many ran within requests of
    these ``classes``. ``said``: what a person has said, whether they are these requests'."""

    why: Why
    service: str
    at: str
    point: str
    calls: int
    inside: int
    belongs: Belongs
    classes: tuple[str, ...]
    said: bool | None


def loose_of(lineage: Lineage) -> list[Event]:
    """Return the calls of a trace without a request as events; none for any other trace."""
    end = lineage.start + round(lineage.duration * 1e9)
    spans = lineage.trace.spans if lineage.loose else ()
    events = []
    for point in lineage.loose:
        made = [(each.start, each.end) for each in spans if each.operation.point == point]
        at = lineage.callees.get(point) or Point.parse(point).peer
        for began, ended in made or [(lineage.start, end)]:
            events.append(Event("loose", lineage.service, at, point, began, ended))
    return events


def arrival_of(lineage: Lineage) -> list[Event]:
    """Return a request as an event, if it need not have come from outside; else none."""
    point = _arrives(lineage)
    end = lineage.start + round(lineage.duration * 1e9)
    at = lineage.service
    return [Event("arrival", at, at, point, lineage.start, end)] if point else []


def _arrives(lineage: Lineage) -> str:
    """Name a request as an arrival; empty where an edge tells of it, it is a probe, or no request
    at all."""
    known = {span.span_id for span in lineage.trace.spans}
    root = next((s for s in lineage.trace.spans if _begins(s, known, lineage.service)), None)
    if root is None or root.operation.edge:
        return ""
    said = root.operation.route, root.operation.name, lineage.features.get("path", "")
    return "" if any(map(_PROBE.search, said)) else arrival_point("unknown", root.operation)


def _begins(span: Span, known: Container[str], service: str) -> bool:
    what = span.operation
    return what.kind == "server" and what.service == service and span.parent_id not in known


def _way_of(lineage: Lineage) -> _Way:
    arrivals, calls, serving = Counter[str](), 0, set[str]()
    for span in lineage.trace.spans:
        what = span.operation
        if what.kind == "server":
            serving.add(what.service)
        if what.point is not None:
            calls += 1
            to = lineage.callees.get(what.point) or Point.parse(what.point).peer
            arrivals[to] += 1
    return _Way(
        *(lineage.callees, lineage.service, lineage.features, frozenset(serving)),
        *(lineage.parentless, arrivals, calls, _arrives(lineage)),
    )


def _at_work(lineage: Lineage, services: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return when services were at work in a request, where the trace has its own times."""
    spans = [span for span in lineage.trace.spans if span.operation.kind == "server"]
    if not any(span.start == lineage.start for span in spans):
        return {}
    found = {}
    for service in services:
        mine = [span for span in spans if span.operation.service == service]
        if mine:
            found[service] = min(s.start for s in mine), max(s.end for s in mine)
    return found


def _may_make(way: _Way, name: _Name) -> bool:
    """Return whether such requests may make such calls."""
    return (name.service in way.services) if name.why == "loose" else (name.service != way.service)


class _Able:
    """Requests that may make some calls, by when they, or the service that makes them, were at
    work."""

    def __init__(self, name: _Name, requests: Iterable[_Request]) -> None:
        of = name.service if name.why == "loose" else ""
        found = ((*each.when(of), each) for each in requests if _may_make(each.way, name))
        self.requests = sorted(found, key=lambda each: each[:2])
        self._starts = [start for start, _, _ in self.requests]
        self._latest = list(accumulate((end for _, end, _ in self.requests), max))
        self.usual = median(e - s for s, e, _ in self.requests) if self.requests else 0
        self._ways = Counter[int]()

    def around(self, event: Event) -> Iterator[tuple[int, int, _Request]]:
        """List the requests that a call runs within, the one that began last first."""
        place = bisect_right(self._starts, event.start) - 1
        for at in range(place, max(-1, place - OVERLAPPING), -1):
            if self._latest[at] < event.end:
                return
            if self.requests[at][1] >= event.end:
                yield self.requests[at]

    def of_class(self, classes: Mapping[int, str | None], until: int) -> Iterator[tuple[str, int]]:
        """Count by class those that began until then. ``until`` is the same each time."""
        if not self._ways:
            self._ways.update(id(each.way) for _, _, each in self.requests if each.start <= until)
        counts = Counter[str]()
        for way, many in self._ways.items():
            name = classes.get(way)
            if name is not None:
                counts[name] += many
        yield from counts.items()

    def holds(self, start: int, end: int) -> bool | None:
        """Return whether some request is under way from one time to another; None if unknown,
        for it is before the first or after the last."""
        if start < self._starts[0] or end > self._latest[-1]:
            return None
        return end <= self._latest[bisect_right(self._starts, start) - 1]


def _tallied(
    events: Sequence[Event], able: _Able, classes: Mapping[int, str | None], until: int
) -> _Tally:
    """Hold calls of one name against the requests that may make them. ``classes``: by the identity
    of their ways; of those that began ``until`` then is told how many they have within."""
    within, made = Counter[int](), dict[int, _Request]()
    tally = _Tally(events=len(events))
    for event in events:
        around = list(able.around(event))
        tally.inside += bool(around)
        for _, _, each in around:
            within[id(each)] += 1
            made[id(each)] = each
        length = max((end - start for start, end, _ in around), default=able.usual)
        for times in ELSEWHERE:
            moved = round(times * max(length, event.end - event.start, 1))
            hit = able.holds(event.start + moved, event.end + moved)
            tally.tries += hit is not None
            tally.hits += hit is True
    tally.within = {name: Counter({0: many}) for name, many in able.of_class(classes, until)}
    for each in made.values():
        name = classes.get(id(each.way)) if each.start <= until else None
        if name is not None:
            tally.within[name][0] -= 1
            tally.within[name][within[id(each)]] += 1
    return tally


def _at_least(found: int, tried: int, chance: float) -> float:
    """Return the probability that so many of ``tried`` or more happen by chance, bounded from above
    (Chernoff, Hoeffding 1963)."""
    share = found / tried if tried else 0.0
    if share <= chance:
        return 1.0
    if share >= 1.0:
        return float(chance**tried)
    odds = (chance / share) ** share * ((1 - chance) / (1 - share)) ** (1 - share)
    return float(odds**tried)


def _is_even(counts: Counter[int]) -> bool:
    """Return whether nearly all requests of a class have as many within, and some."""
    usual, times = counts.most_common(1)[0]
    requests = counts.total()
    return usual > 0 and requests >= EVEN and times >= MOSTLY * requests
