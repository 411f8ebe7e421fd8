"""The map: what do we rely on, and what would be lost if it went down? Pure.

One graph of services over all request classes. A service is what answers calls; points inside a
service reach none, and are not drawn. What stands here follows from evidence alone, as soundly as
``docs/what-a-run-teaches.md`` says; *down* means that every call fails at once. That a caller
fails because what it calls does is not known from that, and not said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.dashboards.words import listed
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.lifecycle import HURTING
from ldfi.experiments.domain.gates.whatif import WhatIf, what_if
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.store.schema import FindingRow
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.kinds import kind_of, outlasted
from ldfi.fit.protocol.points import Point

Standing = Literal["hurts", "together", "survived", "untried", "unreached", "down", "lost", "entry"]
Fate = Literal["", "lost", "near", "unknown", "holds"]

STANDINGS: Final[Mapping[Standing, str]] = {
    "hurts": "hurts users alone",
    "together": "hurts with another",
    "survived": "survived",
    "untried": "never tried",
    "unreached": "no injector",
}
"""What a service can be while nothing is down, the gravest first, and how it is called."""

STANDINGS_DOWN: Final[Mapping[Standing, str]] = {
    "down": "down",
    "together": "hurts if it fails too",
    "untried": "unknown",
    "survived": "holds",
    "lost": "its requests are lost anyway",
}
"""The same while something is down."""

_HURTING: Final[frozenset[Standing]] = frozenset({"hurts", "together", "down"})

FATES: Final[Mapping[Fate, str]] = {
    "lost": "lost",
    "near": "one failure from pain",
    "unknown": "nobody knows",
    "holds": "holds",
}


@dataclass(frozen=True, slots=True)
class Looked:
    """A request class. ``share``: of all requests, 0 to 1; 0 where nobody asks for anything."""

    knowledge: Knowledge
    share: float

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.knowledge.name


@dataclass(frozen=True, slots=True)
class MappedClass:
    """A request class on the map, which services it enters by, and what becomes of it.

    ``failing``: its points that are down. ``near``: what then hurts if it fails too; ``always``:
    what hurts with nothing else down as well; ``unknown``: of which nobody knows. By the names of
    services, or of points that reach none.
    """

    name: str
    share: float
    entries: tuple[str, ...]
    fate: Fate = ""
    failing: frozenset[str] = frozenset()
    near: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """``said``: what happens if it goes down (too), behind its name. ``share``: of all requests,
    those that this is about. ``classes``: the classes that call it, the busiest first; ``hurt``:
    those of them that it hurts."""

    name: str
    standing: Standing
    said: str
    share: float
    classes: tuple[str, ...]
    hurt: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One service calls another. ``stands_in``: only when something else has failed."""

    above: str
    below: str
    stands_in: bool


@dataclass(frozen=True)
class ServiceMap:
    """``classes``: the busiest first. ``services``: the gravest first. ``inside``: points that
    reach no service. ``ways``: for each service that hurts, what leads to it from where the
    requests that it hurts come in."""

    classes: tuple[MappedClass, ...]
    services: tuple[Service, ...]
    calls: tuple[Call, ...]
    down: tuple[str, ...]
    inside: tuple[str, ...]
    called: Called = BY_THEIR_NAMES
    ways: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def by_standing(self) -> dict[Standing, list[Service]]:
        """The services of each standing, in their order."""
        found: dict[Standing, list[Service]] = defaultdict(list)
        for each in self.services:
            found[each.standing].append(each)
        return found

    @cached_property
    def by_fate(self) -> dict[Fate, list[MappedClass]]:
        """The classes of each fate."""
        found: dict[Fate, list[MappedClass]] = defaultdict(list)
        for each in self.classes:
            found[each.fate].append(each)
        return found

    @property
    def hurting(self) -> list[Service]:
        """What hurts or is down; what is down first, then the gravest first."""
        found = [each for each in self.services if each.standing in _HURTING]
        return sorted(found, key=lambda each: each.standing != "down")

    def only_hurting(self, services: int, classes: int) -> ServiceMap:
        """Return what hurts, the classes that it hurts, and one way to it for each of them: at most
        so many ``services`` that hurt, the gravest, and ``classes``, the busiest."""
        hurting = self.hurting[:services]
        kept = {each.name for each in hurting}.union(
            *(self.ways.get(each.name, ()) for each in hurting)
        )
        hurt = {name for each in hurting for name in each.hurt}
        drawn = [each for each in self.classes if each.name in hurt][:classes]
        names = {each.name for each in drawn}
        return replace(
            self,
            classes=tuple(drawn),
            services=tuple(
                each
                for each in self.services
                if each.name in kept and not names.isdisjoint(each.classes)
            ),
        )

    @property
    def title(self) -> str:
        """Say what the map answers."""
        if self.down:
            return f"If {listed(self.down)} {'is' if len(self.down) == 1 else 'are'} down"
        count, hurting = len(self.services), len(self.by_standing.get("hurts", ()))
        services = "1 service" if count == 1 else f"{count:,} services"
        if not hurting:
            untried = len(self.by_standing.get("untried", ()))
            more = f", {untried:,} never tried" if untried else ""
            return f"{services}: none is known to hurt users alone{more}"
        return f"{services}: {hurting:,} can {'each ' if hurting > 1 else ''}hurt users alone"

    @property
    def verdict(self) -> str:
        """Say what becomes of requests with all that is down."""
        lost = [self.called.name(mapped.name) for mapped in self.by_fate.get("lost", ())]
        if lost:
            return f"{listed(lost)} would be lost"
        if self.by_fate.get("unknown"):
            return "Nobody knows whether anything would be lost"
        if self.by_fate.get("near"):
            return "Nothing would be lost, until one more thing fails"
        return "Nothing that is known would be lost"


def service_map(
    looked: Iterable[Looked],
    findings: Iterable[FindingRow],
    injectors: Injectors,
    down: Sequence[str] = (),
    called: Called = BY_THEIR_NAMES,
) -> ServiceMap:
    """Draw up the map of these classes, with everything that ``down`` names being down."""
    hurting = list(findings)
    busiest = sorted(looked, key=lambda each: (-each.share, each.name))
    classes = tuple(_mapped(each, down) for each in busiest)
    reached = {each.name: reached_by(each.knowledge) for each in busiest}
    if down:
        fates = {mapped.name: mapped for mapped in classes}
        tell = _Down(busiest, reached, fates, tuple(down), called).service
    else:
        tell = _Up(busiest, reached, _weak(hurting, busiest), injectors, called).service
    answering = dict.fromkeys(name for systems in reached.values() for name in systems)
    entries = dict.fromkeys(
        name for mapped in classes for name in mapped.entries if name not in answering
    )
    services = [tell(name) for name in answering] + [
        _entry(name, classes, down) for name in entries
    ]
    order = list(STANDINGS_DOWN if down else STANDINGS)
    order += ["entry"]
    services.sort(key=lambda each: (order.index(each.standing), -each.share, each.name))
    return ServiceMap(
        classes,
        tuple(services),
        tuple(_calls(busiest)),
        tuple(down),
        _inside(busiest),
        called,
        _ways(services, {e.name: (e.knowledge, reached[e.name]) for e in busiest}, hurting),
    )


def reached_by(knowledge: Knowledge) -> dict[str, frozenset[str]]:
    """List the services and systems that a class reaches, each with the points that do."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for point in sorted(knowledge.points):
        system = knowledge.traffic.topology.callees.get(point, "")
        if system:
            found[system].add(point)
    return {name: frozenset(points) for name, points in found.items()}


@dataclass(frozen=True, slots=True)
class _Up:
    """Tells of services while nothing is down."""

    looked: Sequence[Looked]
    reached: Mapping[str, Mapping[str, frozenset[str]]]
    weak: Mapping[str, list[tuple[FindingRow, tuple[str, ...]]]]
    injectors: Injectors
    called: Called

    def service(self, name: str) -> Service:
        calling = [each for each in self.looked if name in self.reached[each.name]]
        classes = tuple(each.name for each in calling)
        points = {each.name: self.reached[each.name][name] for each in calling}
        judged = {each.name: each.knowledge.judge(points[each.name]) for each in calling}
        shares = {each.name: each.share for each in calling}
        lost = [each.name for each in calling if judged[each.name] == "failing"]
        slow = [
            row.request_class
            for row, others in self.weak.get(name, ())
            if not others and row.request_class in classes and row.request_class not in lost
        ]
        if lost or slow:
            said = f"means that {_lost(lost or slow, self.called)}"
            if not lost:
                said += f" {self._when(name)}"
            hurt = tuple(each for each in classes if each in {*lost, *slow})
            share = sum(shares[each] for each in hurt)
            return Service(name, "hurts", said, share, classes, hurt)
        pairs = [
            (shares.get(row.request_class, 0.0), others)
            for row, others in self.weak.get(name, ())
            if others
        ]
        if pairs:
            found_in = {row.request_class for row, others in self.weak[name] if others}
            share, others = min(pairs, key=lambda each: (len(each[1]), -each[0], each[1]))
            fails = "fails" if len(others) == 1 else "fail"
            said = f"hurts only if {listed(others)} {fails} too"
            hurt = tuple(each for each in classes if each in found_in) or classes
            return Service(name, "together", said, share, classes, hurt)
        if all(judgement == "safe" for judgement in judged.values()):
            return Service(name, "survived", "is survived", sum(shares.values()), classes)
        every = frozenset[str]().union(*points.values())
        lacking = self.injectors.without(every)
        if len(lacking) == len(every):
            said = f"cannot be tried without {next(iter(lacking.values()))}"
            return Service(name, "unreached", said, sum(shares.values()), classes)
        untried = sum(each.share for each in calling if judged[each.name] == "open")
        return Service(name, "untried", "was never tried", untried, classes)

    def _when(self, name: str) -> str:
        singles = [row.faults[0].partition("@")[0] for row, others in self.weak[name] if not others]
        if all(outlasted(kind_of(each)) for each in singles):
            return "when it is slow"
        return f"when its answer is {listed(sorted(set(singles)))}"


@dataclass(frozen=True, slots=True)
class _Down:
    """Tells of services while others are down."""

    looked: Sequence[Looked]
    reached: Mapping[str, Mapping[str, frozenset[str]]]
    mapped: Mapping[str, MappedClass]
    down: tuple[str, ...]
    called: Called

    def service(self, name: str) -> Service:
        calling = [each for each in self.looked if name in self.reached[each.name]]
        classes = tuple(each.name for each in calling)
        total = sum(each.share for each in calling)
        if matching(tuple(one.removeprefix(DOWN) for one in self.down), [name]) is not None:
            hurt = tuple(each for each in classes if self.mapped[each].fate == "lost") or classes
            return Service(name, "down", "is down", total, classes, hurt)
        left = [each for each in calling if self.mapped[each.name].fate != "lost"]
        if not left:
            return Service(name, "lost", "matters no more: its requests are lost", total, classes)
        judged = {each.name: self._judged(each, name) for each in left}
        lost = [each for each in left if judged[each.name] == "failing"]
        if lost:
            hurt = tuple(each.name for each in lost)
            said = f"means that {_lost(hurt, self.called)}"
            return Service(name, "together", said, sum(each.share for each in lost), classes, hurt)
        untried = [each for each in left if judged[each.name] == "open"]
        if untried:
            share = sum(each.share for each in untried)
            return Service(name, "untried", "was never tried beside it", share, classes)
        return Service(name, "survived", "is survived all the same", total, classes)

    def _judged(self, looked: Looked, name: str) -> str:
        points = self.reached[looked.name][name]
        return looked.knowledge.judge(points | self.mapped[looked.name].failing)


def _mapped(looked: Looked, down: Sequence[str]) -> MappedClass:
    knowledge = looked.knowledge
    topology = knowledge.traffic.topology
    first = [p for p in sorted(knowledge.points) if frozenset() in topology.paths.get(p, ())]
    entries = tuple(dict.fromkeys(Point.parse(point).caller for point in first))
    if not down:
        return MappedClass(looked.name, looked.share, entries)
    answer = what_if(knowledge, down)
    if answer is None:
        return MappedClass(looked.name, looked.share, entries, "holds")

    def named(points: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topology.callees.get(point) or point for point in points))

    return MappedClass(
        looked.name,
        looked.share,
        entries,
        _fate(answer),
        frozenset(answer.down),
        named(answer.hurts_now),
        named(answer.anyway),
        named(answer.unknown),
    )


def _fate(answer: WhatIf) -> Fate:
    if answer.already == "failing":
        return "lost"
    if answer.already == "open":
        return "unknown"
    return "near" if answer.hurts_now else "holds"


def _entry(name: str, classes: Sequence[MappedClass], down: Sequence[str]) -> Service:
    served = [mapped for mapped in classes if name in mapped.entries]
    said = "is where these requests come in"
    is_down = matching(tuple(one.removeprefix(DOWN) for one in down), [name]) is not None
    standing: Standing = "down" if is_down else "entry"
    share = sum(mapped.share for mapped in served)
    names = tuple(mapped.name for mapped in served)
    return Service(name, standing, said, share, names, names if is_down else ())


def _ways(
    services: Iterable[Service],
    classes: Mapping[str, tuple[Knowledge, Mapping[str, frozenset[str]]]],
    findings: Iterable[FindingRow],
) -> dict[str, frozenset[str]]:
    """Return what leads to each service that hurts. ``classes``: what is known of each, and by
    which points it reaches services."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in findings:
        if row.state in HURTING:
            found[row.request_class].update(fault.partition("@")[2] for fault in row.faults)
    ways: defaultdict[str, set[str]] = defaultdict(set)
    hurting = [each for each in services if each.standing in _HURTING]
    for name, (knowledge, reached) in classes.items():
        often = knowledge.traffic.usually_called()
        for each in hurting:
            if name in each.hurt:
                points = reached.get(each.name, frozenset())
                ways[each.name] |= _way(knowledge, points & found[name] or points, often)
    return {name: frozenset(way) for name, way in ways.items()}


def _way(knowledge: Knowledge, points: Iterable[str], often: frozenset[str]) -> set[str]:
    """Return the services on the shortest way in which a class was seen to come to one of these
    points, by calls that it makes ``often`` where there is such a way."""
    topology = knowledge.traffic.topology
    ways = [above | {point} for point in points for above in topology.paths.get(point, ())]
    way = min(ways, key=lambda each: (len(each - often), len(each), sorted(each)), default=())
    callers = {Point.parse(point).caller for point in way}
    return callers | {topology.callees.get(point, "") for point in way}


def _calls(classes: Iterable[Looked]) -> list[Call]:
    usual: dict[tuple[str, str], bool] = {}
    for each in classes:
        often = each.knowledge.traffic.usually_called()
        for system, points in reached_by(each.knowledge).items():
            for point in points:
                pair = (Point.parse(point).caller, system)
                usual[pair] = usual.get(pair, False) or point in often
    return [Call(above, below, not often) for (above, below), often in sorted(usual.items())]


def _inside(classes: Iterable[Looked]) -> tuple[str, ...]:
    found = {
        point
        for each in classes
        for point in each.knowledge.points
        if not each.knowledge.traffic.topology.callees.get(point)
    }
    return tuple(sorted(found))


def _weak(
    findings: Iterable[FindingRow], classes: Sequence[Looked]
) -> dict[str, list[tuple[FindingRow, tuple[str, ...]]]]:
    """List by service what hurts with it, each with what has to fail beside it."""
    callees = {each.name: each.knowledge.traffic.topology.callees for each in classes}
    found: defaultdict[str, list[tuple[FindingRow, tuple[str, ...]]]] = defaultdict(list)
    for row in findings:
        if row.state not in HURTING or row.request_class not in callees:
            continue
        known = callees[row.request_class]
        failing = dict.fromkeys(_what_fails(fault, known) for fault in row.faults)
        for name in failing:
            found[name].append((row, tuple(other for other in failing if other != name)))
    return found


def _what_fails(fault: str, callees: Mapping[str, str]) -> str:
    if fault.startswith(DOWN):
        return fault.removeprefix(DOWN)
    point = fault.partition("@")[2]
    return callees.get(point) or point


def _lost(classes: Sequence[str], called: Called) -> str:
    if any(each in called.losses for each in classes):
        return listed(dict.fromkeys(called.lost(each) for each in classes))
    names = list(dict.fromkeys(called.name(each) for each in classes))
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'} lost"
