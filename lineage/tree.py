"""The call tree of one request: which calls were made, by whom, within which, and how they ended.

A *call* is an injection point reached: a CLIENT or PRODUCER span joined with the SERVER span it
caused, a decorated function, or a SERVER span whose caller recorded nothing. Everything else is
transparent: what happens inside an internal span happens inside the call around it.

Traces are rarely whole, and the tree survives what is missing. A span whose parent was never
exported is a root; of several, the earliest SERVER span is the request and what belongs under it
but hangs in the air is put under it (and counted: such a tree has gaps, and a support read from
it may be too small). Only parent links decide what is inside what, never clocks; times are
compared among siblings, which share a clock, and where it must be told whether a consumer outlasted
the request (:mod:`ldfi.lineage.waiting`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.points import Point
from ldfi.lineage.attributes import SERVING
from ldfi.lineage.exporters import exports
from ldfi.lineage.layers import is_phase, transports
from ldfi.lineage.naming import CALLING
from ldfi.lineage.operation import Operation, arrival_point
from ldfi.lineage.parentless import find
from ldfi.lineage.shared_ids import parents
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.unsaid_kinds import with_kinds
from ldfi.lineage.waiting import Waits, outliving, waits

_SYSTEMS = ("db:", "message:", "cache:", "faas:")
"""Kinds of call whose other side is a system and no service that writes spans."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One injection point reached once."""

    point: str
    service: str
    """The caller."""
    callee: str
    """What answered: a service where its SERVER span was recorded, or the system (a database, a
    broker, a cache) that never records one. Empty where nobody said: an address is no callee."""
    route: str
    """What the callee calls this kind of request, where its SERVER span was recorded."""
    failed: bool
    detached: bool
    """Nobody waits for it, so the outcome does not rely on it."""
    start: int
    end: int
    fired: tuple[str, ...]
    would_fire: tuple[str, ...]
    calls: tuple[Call, ...] = ()
    failure: str = ""
    """How it failed, as its caller could see: a kind of fault. Empty where it did not."""
    code: str = ""
    """Where its caller makes it: ``src/play.py:41 (start)``, as far as spans say."""
    attempts: tuple[bool | None, ...] = ()
    """Whether each of the answers that its callee recorded failed, as far as it says: several
    where a client or a proxy that leaves no spans of its own tried again."""
    library: str = ""
    """Which client library made it; empty where its span does not say."""
    doubtful: bool = False
    """It did not fail, as far as is known, and something speaks for it: a mark that is overruled,
    or an answer that its caller cannot have waited for."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The call tree of one request."""

    trace_id: str
    service: str
    """The service that the request entered."""
    route: str
    features: Features
    failed: bool
    """Whether the request's own root span says that it failed. A 200 may still hide an error."""
    refused: bool
    """Whether the answer was of the class 4xx: neither a failure nor the outcome asked for."""
    start: int
    end: int
    calls: tuple[Call, ...]
    experiment: str = ""
    arm: str = ""
    spans: int = 0
    orphans: int = 0
    """Spans whose parent is missing although it is not the root's, and the root itself where it is
    a call or a message: the tree has gaps."""
    strangers: int = 0
    """Other requests in the same trace, and spans caught in circles: not in the tree."""
    loose: tuple[str, ...] = ()
    """The points of the outermost calls, where no request is: they run in a trace of their own."""
    rejoined: frozenset[str] = frozenset()
    """Services whose spans had lost their parents, and were put under the calls around them."""
    parentless: frozenset[str] = frozenset()
    """Those whose spans could not be: they are among the strangers."""


@dataclass(slots=True)
class _Links:
    """Parent links by index into the trace's spans."""

    children: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    parents: dict[int, int] = field(default_factory=dict)
    roots: list[int] = field(default_factory=list)


def build(trace: Trace) -> Tree | None:
    """Build the call tree of a trace; None for a trace in which every span is inside another."""
    above = parents(trace.spans)
    spans = with_kinds(trace.spans, above)
    lost = find(spans, above)
    links = _link([lost.joined.get(i, parent) for i, parent in enumerate(above)])
    roots = [i for i in links.roots if i not in lost.apart]
    if not roots:
        return None
    root = min(roots, key=lambda i: _rank(spans[i]))
    entry = spans[root]
    order = _order(links)
    below = _calls(spans, links, order, waits(spans, links.parents, entry, order))
    loose = [i for i in links.roots if i != root]
    ongoing = outliving(spans, entry) if loose else frozenset()
    late = [i for i in loose if spans[i].parent_id in ongoing]
    orphans = [i for i in loose if i not in late and _belongs(spans[i], entry)]
    calls = [*below[root], *(call for i in orphans for call in below[i])]
    calls += [_detached(call) for i in late for call in below[i]]
    reached = _count(links, [root, *orphans, *late])
    experiment, arm = _experiment(spans)
    return Tree(
        trace_id=trace.trace_id,
        service=entry.operation.service,
        route=entry.operation.route,
        features=entry.operation.features,
        failed=entry.operation.failed is True,
        refused=entry.operation.refused,
        start=entry.start,
        end=entry.end,
        calls=tuple(sorted(calls, key=_by_start)),
        experiment=experiment,
        arm=arm,
        spans=len(spans),
        orphans=len(orphans) + (not _may_enter(entry)),
        strangers=len(spans) - reached,
        loose=_loose(entry, below[root]),
        rejoined=frozenset(spans[i].operation.service for i in lost.joined),
        parentless=frozenset(spans[i].operation.service for i in lost.apart),
    )


def beyond(spans: Sequence[Span], request: Span) -> frozenset[str]:
    """Name the spans, by what is there of a trace, that the request did not wait for."""
    above = parents(spans)
    given = with_kinds(spans, above)
    joined = find(given, above).joined
    links = _link([joined.get(i, parent) for i, parent in enumerate(above)])
    order = _order(links)
    detached = waits(given, links.parents, request, order).detached
    ongoing = outliving(given, request)
    found: set[int] = set()
    for i in order:
        parent = links.parents.get(i)
        apart = given[i].parent_id in ongoing if parent is None else parent in found
        if apart or i in detached:
            found.add(i)
    kept = {given[i].span_id for i in order if i not in found}  # Zipkin: two halves have one id
    return frozenset(given[i].span_id for i in found) - kept


def _experiment(spans: tuple[Span, ...]) -> tuple[str, str]:
    found = {(s.operation.experiment, s.operation.arm) for s in spans if s.operation.experiment}
    return min(found, default=("", ""))


def _link(above: Sequence[int | None]) -> _Links:
    links = _Links()
    for i, parent in enumerate(above):
        if parent is None:
            links.roots.append(i)
        else:
            links.children[parent].append(i)
            links.parents[i] = parent
    return links


def _rank(span: Span) -> tuple[bool, bool, int, str]:
    kind = span.operation.kind
    return (kind != "server", span.parent_id is not None, span.start, span.span_id)


def _belongs(span: Span, entry: Span) -> bool:
    """Return whether a root that is not the request's own hangs in the air below it; else it is
    another request."""
    missing = span.parent_id
    return missing is not None and missing != entry.parent_id


def _may_enter(span: Span) -> bool:
    """Return whether a span may be where a request enters. A call whose caller has not come yet is
    a part of something, and so is a message whose sender has not."""
    return span.parent_id is None or span.operation.kind in {"server", ""}


def _loose(entry: Span, calls: Sequence[Call]) -> tuple[str, ...]:
    """Name the calls of a trace that begins with one, or with work that nobody asked for: a span of
    kind INTERNAL without a parent, as a new root within a request leaves it."""
    what = entry.operation
    if what.kind in CALLING:
        return (what.point,) if what.point else ()
    if what.kind == "internal" and entry.parent_id is None:
        return tuple(sorted({call.point for call in calls if call.service == what.service}))
    return ()


def _count(links: _Links, starts: list[int]) -> int:
    pending, reached = list(starts), 0
    while pending:
        reached += 1
        pending.extend(links.children.get(pending.pop(), ()))
    return reached


def _order(links: _Links) -> list[int]:
    """List what hangs below some root, parents before children."""
    order = list(links.roots)
    for i in order:  # grows while we walk
        order.extend(links.children.get(i, ()))
    return order


def _calls(
    spans: tuple[Span, ...], links: _Links, order: list[int], waited: Waits
) -> dict[int, list[Call]]:
    """List, for each root, the calls that it and everything under it made, outermost first."""
    below: dict[int, list[Call]] = {}
    for i in reversed(order):
        children = links.children.get(i, ())
        inner = [call for child in children for call in below.pop(child)]
        parent = links.parents.get(i)
        above = None if parent is None else spans[parent].operation
        if i in waited.until:
            inner = _until(waited.until[i], spans[i].operation.service, inner)
        below_it = [spans[c] for c in children]
        found = _node(spans[i], above, inner, below_it, answered=i in waited.until)
        below[i] = [_detached(call) for call in found] if i in waited.detached else found
    return below


def _until(answered: int, service: str, calls: list[Call]) -> list[Call]:
    """Return the calls, those detached that a consumer made after it had answered."""
    return [
        _detached(call) if call.service == service and call.start >= answered else call
        for call in calls
    ]


def _detached(call: Call) -> Call:
    return replace(call, detached=True)


def _node(
    span: Span, above: Operation | None, inner: list[Call], below: list[Span], answered: bool
) -> list[Call]:
    what = span.operation
    point, caller = what.point, what.service
    serving = [each for each in below if each.operation.kind == "server"]
    answer = min(serving, key=_best) if serving else None
    if point is None and what.serves and _arrives(what, above) and not exports(what.features):
        caller = above.service if above else "unknown"
        point, answer = arrival_point(caller, what), span
    if point is None or is_phase(what, above):
        return inner
    inner.sort(key=_by_start)
    callee = answer.operation if answer else None
    # it had answered: if it failed, it was later, or the answer said so
    failed = not answered and _failed(what, callee)
    same = transports(what, inner) if answer is None else []
    if same:
        doubt = (failed or what.doubtful) and not any(call.failed for call in same)
        return [replace(c, doubtful=c.doubtful or (doubt and c is same[-1])) for c in inner]
    return [
        Call(
            point=point,
            service=caller,
            callee=callee.service if callee else _system(point, what) or _elsewhere(what, below),
            route=callee.route if callee else "",
            failed=failed,
            detached=False,
            start=span.start,
            end=span.end,
            fired=what.fired,
            would_fire=what.would_fire,
            calls=tuple(inner),
            failure=_failure(what, callee) if failed else "",
            code=_code(what, above),
            library="" if what.serves else what.library,
            doubtful=not failed and not answered and _doubtful(span, answer),
            attempts=tuple(each.operation.failed for each in sorted(serving, key=_start)),
        )
    ]


def _elsewhere(call: Operation, below: list[Span]) -> str:
    """Name the service that was at work within a call, if it did not record how it was asked."""
    others = {each.operation.service for each in below} - {call.service}
    return min(others) if len(others) == 1 and call.kind == "client" else ""


def _code(call: Operation, above: Operation | None) -> str:
    """Return where a call is made: as its own span says, else the one of the same service around
    it. A SERVER span says nothing of who called it."""
    makers = [call] if call.kind not in SERVING else []
    if above is not None and (not makers or above.service == call.service):
        makers.append(above)
    return next((each.code for each in makers if each.code), "")


def _system(point: str, call: Operation) -> str:
    """Name the system that a call reaches which no SERVER span ever answers."""
    if not point.startswith(_SYSTEMS, point.find(">") + 1):
        return ""
    return call.peer or Point.parse(point).peer


def _best(answer: Span) -> tuple[bool, str, str]:
    """Rank an answer among several to one call (a proxy tried again): good ones first."""
    what = answer.operation
    return (what.failed is True, what.service, what.route)


def _failed(call: Operation, answered: Operation | None) -> bool:
    """Take the caller's word on whether a call failed; where it says nothing, the callee's.

    An HTTP call that was delayed and has neither code nor callee was cancelled by its caller.
    """
    if call.failed is not None:
        return call.failed
    if answered is not None:
        return answered.failed is True
    return "delay" in call.fired and "http:" in (call.point or "")


def _doubtful(call: Span, answer: Span | None) -> bool:
    """Return whether a call that did not fail, as far as is known, may have failed all the same.

    A callee that is at work for longer than its call lasted was given up, or works on behind its
    answer. No clock is needed to see it.
    """
    if call.operation.doubtful:
        return True
    if answer is None or answer is call:
        return False
    took, worked = call.end - call.start, answer.end - answer.start
    given_up = took > 0 and worked > took + WORKED_ON
    return given_up or answer.operation.failed is True or answer.operation.doubtful


WORKED_ON: Final = 1_000_000
"""Nanoseconds by which a callee outlasts its call at least; clocks are that coarse."""


def _failure(call: Operation, answered: Operation | None) -> str:
    """Return how a call failed: as its caller says, else as the callee does."""
    silent = call.failure == "failed" and answered is not None
    return answered.failure if silent and answered is not None else call.failure


def _arrives(what: Operation, above: Operation | None) -> bool:
    """Return whether a SERVER or CONSUMER span is the only record of a call."""
    if above is None:
        return False
    if what.kind == "consumer" and above.point is not None:
        return True
    return above.point is None and above.service != what.service


def _start(span: Span) -> tuple[int, str]:
    return (span.start, span.span_id)


def _by_start(call: Call) -> tuple[int, int, str]:
    return (call.start, call.end, call.point)
