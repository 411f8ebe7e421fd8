"""Names learned from traffic, for systems whose spans nobody prepared.

The rules of :mod:`ldfi.fit.protocol.points` wildcard what looks like an identifier.
``/users/alice`` does not, and a call that never got through has no address. Seen many at once, both
give themselves away: a place in a path that holds dozens of different words holds names; a call
without a peer is the same as the only one like it that has one. Calls that differ by address alone
went to replicas of one service, where that one answered, or where the full method of a procedure
says which it is. For display and analysis only: no edge and no client could know these names, so
points that carry ``fit.point`` are better off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ldfi.fit.protocol.points import Point, is_address
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.shared_ids import parents
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.unsaid_kinds import with_kinds

MANY = 12
"""Different words in one place of a path above which they are taken for names."""


def learned_names(
    points: Iterable[str], callees: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Learn names for points: from each that gets one to its learned name. ``callees``: what
    answered at which point, where that is known."""
    given = sorted(set(points))
    parsed = {name: Point.parse(name) for name in given}
    parsed = {name: point for name, point in parsed.items() if str(point) == name}
    wild = _with_one_address(_with_wildcards(parsed), callees or {})
    return {name: new for name in parsed if (new := str(_with_peer(wild[name], wild))) != name}


def _with_wildcards(parsed: Mapping[str, Point]) -> dict[str, Point]:
    current = dict(parsed)
    depth = max((point.template.count("/") for point in parsed.values()), default=0)
    for place in range(1, depth + 1):
        words: dict[tuple[object, ...], set[str]] = defaultdict(set)
        for point in current.values():
            segments = point.template.split("/")
            if place < len(segments):
                words[_without(point, segments, place)].add(segments[place])
        for name, point in current.items():
            segments = point.template.split("/")
            if place < len(segments) and len(words[_without(point, segments, place)]) >= MANY:
                segments[place] = "*"
                current[name] = replace(point, template="/".join(segments))
    return current


def _with_one_address(parsed: Mapping[str, Point], callees: Mapping[str, str]) -> dict[str, Point]:
    """Give replicas of one service one address, or the name that some call them by."""
    alike: dict[Point, list[str]] = defaultdict(list)
    for name, point in parsed.items():
        if point.peer:
            alike[replace(point, peer="")].append(name)
    current = dict(parsed)
    for bare, names in alike.items():
        answered = {callees.get(name, "") for name in names}
        known = answered - {""}
        same = len(known) <= 1 if bare.kind == "rpc" else len(known) == len(answered) == 1
        peers = {parsed[name].peer for name in names}
        called = {peer for peer in peers if not is_address(peer)}
        if same and len(called) <= 1 < len(peers):
            peer = min(called or peers)
            current.update({name: replace(parsed[name], peer=peer) for name in names})
    return current


def _without(point: Point, segments: list[str], place: int) -> tuple[object, ...]:
    rest = (*segments[:place], *segments[place + 1 :])
    return (point.caller, point.kind, point.operation, point.peer, place, len(segments), rest)


def _with_peer(point: Point, known: Mapping[str, Point]) -> Point:
    if point.peer:
        return point
    alike = {other for other in known.values() if other.peer and replace(other, peer="") == point}
    return alike.pop() if len(alike) == 1 else point


def renamed(run: Lineage, names: Mapping[str, str]) -> Lineage:
    """Rename the points of a lineage."""
    if not names.keys() & (run.called | run.detached | run.callees.keys()):
        return run

    def each(points: frozenset[str]) -> frozenset[str]:
        return frozenset(names.get(point, point) for point in points)

    def faults(items: frozenset[str]) -> frozenset[str]:
        split = (fault.partition("@") for fault in items)
        return frozenset(f"{kind}@{names.get(point, point)}" for kind, _, point in split)

    return replace(
        run,
        support=each(run.support),
        called=each(run.called),
        failed=each(run.failed),
        detached=each(run.detached),
        unseen=each(run.unseen),
        timed_out=each(run.timed_out),
        survived=faults(run.survived),
        ends=faults(run.ends),
        fired=faults(run.fired),
        would_fire=faults(run.would_fire),
        relied_on=faults(run.relied_on),
        loose=tuple(names.get(point, point) for point in run.loose),
        callees={names.get(point, point): callee for point, callee in run.callees.items()},
        libraries=_together(run.libraries, names),
        trace=_trace(run.trace, names),
    )


def _together(
    libraries: Mapping[str, frozenset[str]], names: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """Rename points; those that are one now have the libraries of all."""
    found: dict[str, frozenset[str]] = {}
    for point, each in libraries.items():
        name = names.get(point, point)
        found[name] = found.get(name, frozenset()) | each
    return dict(sorted(found.items()))


def _trace(trace: Trace, names: Mapping[str, str]) -> Trace:
    spans = with_kinds(trace.spans, parents(trace.spans))  # of some, that alone makes them points
    return Trace(trace.trace_id, tuple(_span(span, names) for span in spans))


def _span(span: Span, names: Mapping[str, str]) -> Span:
    what = span.operation
    name = names.get(what.point) if what.point else None
    return span._replace(operation=replace(what, point=name)) if name else span
