"""What the page of a request class shows, from what is known of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldfi.analysis.phrases import said_fault, said_point, said_shortly
from ldfi.analysis.words import happens
from ldfi.dashboards.lineage_graph import LineageGraph, class_graph
from ldfi.dashboards.proved import Stand, runs_of, stand_of
from ldfi.dashboards.roles import ROLES, Role, roles_of
from ldfi.dashboards.words import listed
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.current_state import CurrentState, unwell
from ldfi.experiments.domain.traffic.catalogue import KnownClass, Look
from ldfi.experiments.domain.traffic.observed_kinds import shown_often
from ldfi.fit.protocol.predicate import Condition, Predicate

SHOWN = 12
"""Open hypotheses, and failures seen in traffic, that are spelt out."""


@dataclass(frozen=True, slots=True)
class Proved:
    """What nature has tried: ``said`` failed by itself, and the request went well."""

    said: str
    requests: int
    proves: bool
    trace_id: str


@dataclass(frozen=True, slots=True)
class WayToGo:
    """A variety: how many requests went so, and on what they rely that not all of them do."""

    requests: int
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClassStory:
    """Everything that is said of one request class."""

    known: KnownClass
    predicate: str
    differs: str
    """By what its requests differ from others that enter at the same place; empty: by nothing."""
    varieties: tuple[WayToGo, ...]
    graph: LineageGraph
    roles: Counter[Role]
    proved: tuple[Proved, ...]
    more_proved: int
    shown: tuple[str, ...]
    """How calls failed by themselves, by point: tried there without being asked."""
    stand: Stand
    looks: tuple[Look, ...]


STEADY_STATE: Final = "steady state does not hold"
"""How the reason begins where the requests of a class fail by themselves."""

DONE: Final[Mapping[str, str]] = {
    "class created": "It was seen for the first time",
    "class changed": "What it relies on has changed",
    "class expired": "It had no traffic for too long, and was forgotten",
    "class released": "An operator let it be explored again",
}
"""What has happened to a class, as the audit log has it, for people."""


def class_story(known: KnownClass, knowledge: Knowledge, certificate: dict[str, Any]) -> ClassStory:
    """Tell the story of a class. ``certificate``: of this knowledge."""
    roles = roles_of(knowledge)
    callees = known.traffic.topology.callees
    survived = known.traffic.survived()
    return ClassStory(
        known=known,
        predicate=said_predicate(known.predicate),
        differs=said_difference(known.predicate),
        varieties=_varieties(known),
        graph=class_graph(known.traffic, roles),
        roles=Counter({role: [*roles.values()].count(role) for role in ROLES}),
        proved=tuple(
            Proved(
                said_shortly(sorted(each.failed), callees),
                each.requests,
                each.proves,
                each.trace_id,
            )
            for each in survived[:SHOWN]
        ),
        more_proved=max(0, len(survived) - SHOWN),
        shown=tuple(
            f"{said_point(point, callees)} {', '.join(map(happens, kinds))}"
            for point, kinds in shown_often((e.failed, e.requests) for e in survived).items()
        ),
        stand=stand_of(certificate, callees),
        looks=tuple(known.looks),
    )


def stopped_by(
    knowledge: Knowledge, current_state: CurrentState, waiting: Iterable[str]
) -> tuple[str, ...]:
    """List why nothing is tried on a class now, the cause first; empty where something may be.
    ``waiting``: what campaigns wait for there."""
    ill = unwell(knowledge, current_state)
    reasons = [] if ill is None else [ill.removeprefix(f"{knowledge.name}: ")]
    reasons += [each for each in waiting if not (reasons and each.startswith(STEADY_STATE))]
    if not reasons:
        return ()
    causes = (e.words for e in current_state.signs.failing if knowledge.points & {*e.points})
    return tuple(dict.fromkeys([*causes, *reasons]))


def _varieties(known: KnownClass) -> tuple[WayToGo, ...]:
    found = known.varieties()
    if len(found) < 2:
        return ()
    common = frozenset.intersection(*(each.support for each in found))
    callees = known.traffic.topology.callees
    return tuple(
        WayToGo(each.requests, tuple(said_point(p, callees) for p in sorted(each.support - common)))
        for each in found
    )


@dataclass(frozen=True, slots=True)
class Tried:
    """One experiment or natural failure in which a point was among the faults."""

    said: str
    result: str
    origin: str
    count: int


@dataclass(frozen=True, slots=True)
class PointStory:
    """What is known of one point of a class."""

    point: str
    said: str
    role: Role
    meaning: str
    share: float
    callee: str
    around: tuple[str, ...]
    tried: tuple[Tried, ...]
    open: tuple[str, ...]


def point_story(
    known: KnownClass, knowledge: Knowledge, certificate: dict[str, Any], point: str
) -> PointStory:
    """Tell the history of one point: what its failing did, by nature or by injection."""
    topology, callees = known.traffic.topology, known.traffic.topology.callees
    role = roles_of(knowledge).get(point, "untested")
    good = known.traffic.good
    mine = [each for each in certificate["open"] if _has(each, point)]
    return PointStory(
        point=point,
        said=said_point(point, callees),
        role=role,
        meaning=ROLES[role],
        share=known.traffic.reached()[point] / good if good else 0.0,
        callee=callees.get(point, ""),
        around=tuple(sorted({each for path in topology.paths.get(point, ()) for each in path})),
        tried=tuple(_tried(certificate, point, callees)),
        open=tuple(said_shortly(each, callees) for each in mine[:SHOWN]),
    )


def _tried(certificate: dict[str, Any], point: str, callees: dict[str, str]) -> Iterable[Tried]:
    """List what came of runs in which this point failed, of what hurt first, one for each set."""
    times: Counter[tuple[bool, str, tuple[str, ...]]] = Counter()
    for run in runs_of(certificate):
        if run["good"] is not None and _has(run["failed"], point):
            times[not run["good"], run["origin"], tuple(run["failed"])] += run["count"]
    for (hurt, origin, failed), count in sorted(times.items(), key=lambda item: not item[0][0]):
        said = _others(failed, point, callees)
        yield Tried(said, "hurt" if hurt else "survived", origin, count)


def _others(faults: Sequence[str], point: str, callees: dict[str, str]) -> str:
    """Say the faults of a run in words, this point's own short."""
    real = [fault for fault in faults if not fault.startswith("shared@")]
    own = [f"it {happens(fault.partition('@')[0])}" for fault in real if _has([fault], point)]
    return " and ".join([*own, *(said_fault(f, callees) for f in real if not _has([f], point))])


def _has(faults: Iterable[str], point: str) -> bool:
    return any(fault.partition("@")[2] == point for fault in faults)


_FEATURES: Final = {
    "method": "the method",
    "path": "the path",
    "route": "the path, by its template,",
    "device": "the device type",
    "protocol": "the protocol",
    "graphql.operation": "the operation of GraphQL",
    "graphql.hash": "the hash of the persisted query",
    "graphql.type": "the type of operation",
    "jsonrpc.method": "the method of JSON-RPC",
}
_GROUPS: Final = {
    "query": "query parameter",
    "header": "header",
    "cookie": "cookie",
    "baggage": "entry of the baggage",
    "falcor": "path prefix",
    "graphql": "GraphQL",
}


def said_predicate(predicate: Predicate) -> str:
    """Say ``Requests in which the method is GET, the path is /boot and there is no query
    parameter “page”.``"""
    if not predicate.conditions:
        return "Every request."
    return f"Requests in which {listed(map(_condition, predicate.conditions))}."


def said_difference(predicate: Predicate) -> str:
    """Say by what requests differ from others that enter at the same place: ``path prefix “videos”,
    no query parameter “page”``; empty where by nothing."""
    more = [c for c in predicate.conditions if c.feature not in _WHERE]
    return ", ".join(_told_apart(condition) for condition in more)


_WHERE: Final = frozenset(
    {"operation", "method", "path", "route", "graphql.operation", "graphql.hash", "jsonrpc.method"}
)


def _told_apart(condition: Condition) -> str:
    what = _named(condition.feature).removeprefix("the ")
    if condition.value is None:
        return f"no {what}" if condition.negated else what
    return f"{what} {'not ' if condition.negated else ''}{condition.value}"


def _named(feature: str) -> str:
    """Name a feature: ``the header “x-plan”``."""
    group, _, name = feature.partition(".")
    if feature in _FEATURES:
        return _FEATURES[feature]
    return f"the {_GROUPS.get(group, group)} “{name}”" if name else f"the feature “{feature}”"


def _condition(condition: Condition) -> str:
    what = _named(condition.feature)
    if condition.value is None:
        bare = what.removeprefix("the ")
        article = "no" if condition.negated else "an" if bare[0] in "aeiou" else "a"
        return f"there is {article} {bare}"
    return f"{what} is {'not ' if condition.negated else ''}{condition.value}"
