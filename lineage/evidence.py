"""What one run teaches (the rules, and why each is sound).

**Support.** A point counts if its call succeeded and every call above it up to the root
succeeded too: what happened below a call that failed was thrown away. A point reached several
times counts if any of its calls counts: the retry that succeeded was needed.

**Surviving.** A call that failed and was survived proves its own kind of failure and no other,
whether that was injected, came by itself or came of something below: who masks an answer 500 may
know nothing of a refused connection. What nature shows of the kind that an injected fault would
have is the same evidence as that fault.

**Relying.** The clause of a good run is made of the faults that might have hurt it:

    error@p   for every p in its support, and every p that failed otherwise than by an error
    delay@p   for every p that was called at all

and of the other kinds a ``timeout`` as a delay, every other as an error is, each for itself, where
its point can have it. Delays need more than the support. A call below a failed call was thrown
away, but its caller *waited* for it: had it hung, the failure would have come late, and late may be
too late. An optional call with a slow first step, whose second step happened to fail, is such a
finding. And a call that failed fast could have hung instead.

What is below a call that was *answered* with an error needs no clause: whatever fails there, the
answer is an error again (of the same kind, as far as anyone knows), and that was survived. Below a
call that was refused it is otherwise: what that service answers when something fails below it
has not been seen. What a failure *prevents* from being called at all is a matter of several runs:
see :mod:`ldfi.lineage.clauses` and ``unproven`` in ``experiments``, where clauses are finished.

What nobody waits for is no part of any of this (:mod:`ldfi.lineage.message_waits`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ldfi.fit.protocol.kinds import KINDS, FaultKind, late
from ldfi.fit.protocol.native_kinds import native
from ldfi.fit.protocol.points import Point
from ldfi.lineage.tree import Call, Tree

_TAKING = frozenset({"receive", "process", "deliver", "settle", "poll"})
"""Operations on messages that send none."""


def walk(calls: Iterable[Call]) -> Iterator[Call]:
    """List every call that somebody waited for, also below calls that failed."""
    pending = list(calls)
    while pending:
        call = pending.pop()
        if not call.detached:
            yield call
            pending.extend(call.calls)


def frontier(calls: Iterable[Call]) -> Iterator[Call]:
    """List every call above which nothing failed: those that succeeded, and the first that
    failed."""
    pending = list(calls)
    while pending:
        call = pending.pop()
        if call.detached:
            continue
        yield call
        if not call.failed:
            pending.extend(call.calls)


def support(tree: Tree) -> frozenset[str]:
    """Find the points on whose success the outcome relied."""
    return frozenset(call.point for call in frontier(tree.calls) if not call.failed)


def failed(tree: Tree) -> frozenset[str]:
    """Find the points that failed although everything above them succeeded: what was survived."""
    return frozenset(call.point for call in frontier(tree.calls) if call.failed)


def survived(tree: Tree) -> frozenset[str]:
    """List what failed although everything above it succeeded, and how (``kind@point``)."""
    return frozenset(f"{c.failure}@{c.point}" for c in frontier(tree.calls) if c.failed)


def ends(tree: Tree) -> frozenset[str]:
    """List what failed at the bottom of each chain of failures, and how (``kind@point``), but for
    calls of which the same caller made another with success."""
    found: set[str] = set()
    pending: list[Sequence[Call]] = [tree.calls]
    while pending:
        siblings = pending.pop()
        works = {call.point for call in siblings if not call.failed and not call.detached}
        for call in siblings:
            if call.detached or (call.failed and call.point in works):
                continue
            inner = failures(call.calls)
            if call.failed and not inner:
                found.add(f"{call.failure}@{call.point}")
            pending.append(inner if call.failed else call.calls)
    return frozenset(found)


def failures(calls: Iterable[Call]) -> list[Call]:
    """List those of some calls that failed and were waited for."""
    return [call for call in calls if call.failed and not call.detached]


def _unproved(tree: Tree, kind: FaultKind) -> frozenset[str]:
    """Find the points of which it is not known what happens when they fail in this way."""
    return frozenset(call.point for call in frontier(tree.calls) if call.failure != kind)


def called(tree: Tree) -> frozenset[str]:
    """List every point that was called and waited for, whatever became of it."""
    return frozenset(call.point for call in walk(tree.calls))


def in_order(tree: Tree) -> tuple[str, ...]:
    """List the same points in the order in which they were first called."""
    calls = sorted(walk(tree.calls), key=lambda call: (call.start, -call.end))
    return tuple(dict.fromkeys(call.point for call in calls))


def detached(tree: Tree) -> frozenset[str]:
    """List the points that were only reached where nobody waited."""
    return frozenset(call.point for call in everything(tree)) - called(tree)


def unseen(tree: Tree) -> frozenset[str]:
    """List the points whose messages went out, and nobody saw what became of them."""
    return frozenset(
        call.point
        for call in walk(tree.calls)
        if not call.calls and not call.failed and _sends(Point.parse(call.point))
    )


def _sends(point: Point) -> bool:
    return point.kind == "message" and point.operation not in _TAKING


def doubted(tree: Tree) -> frozenset[str]:
    """Find the innermost calls of which it is doubtful whether they failed
    (:mod:`ldfi.lineage.outcome`); none where any call did."""
    calls = list(walk(tree.calls))
    if any(call.failed for call in calls):
        return frozenset()
    return frozenset(
        call.point
        for call in calls
        if call.doubtful and not any(inner.doubtful for inner in walk(call.calls))
    )


def relied_on(tree: Tree, kinds: Iterable[FaultKind] = KINDS) -> frozenset[str]:
    """List the faults (``kind@point``) that might have hurt this run, had it been good.

    Those that were injected into it and survived are still among them.
    """
    return frozenset(
        f"{kind}@{point}"
        for kind in kinds
        for point in (called(tree) if late(kind) else _unproved(tree, kind))
        if native(kind, point)
    )


def fired(tree: Tree) -> frozenset[str]:
    """List the faults that were injected into this run and fired while it could matter."""
    return frozenset(f"{kind}@{call.point}" for call in exposed(tree) for kind in call.fired)


def would_fire(tree: Tree) -> frozenset[str]:
    """List the faults that would have fired, had the request not been in the control arm."""
    return frozenset(f"{k}@{call.point}" for call in exposed(tree) for k in call.would_fire)


def timed_out(tree: Tree) -> frozenset[str]:
    """Find points where a delay fired and the call then failed: their caller does not wait forever.

    There a delay is an error that comes late.
    """
    return frozenset(c.point for c in exposed(tree) if "delay" in c.fired and c.failed)


def callees(tree: Tree) -> dict[str, str]:
    """Return for each point what it reaches, where that is known: a service, a database, a host."""
    return {c.point: c.callee for c in sorted(everything(tree), key=_name) if c.callee}


def libraries(tree: Tree) -> dict[str, frozenset[str]]:
    """Return for each point by which client libraries it was called; among them an empty name where
    a call does not say."""
    found: dict[str, set[str]] = {}
    for call in everything(tree):
        found.setdefault(call.point, set()).add(call.library)
    return {point: frozenset(found[point]) for point in sorted(found)}


def exposed(tree: Tree) -> Iterator[Call]:
    """List every call that could matter: waited for, or begun before the request was over.

    Not only those waited for: a fault may be what made a consumer outlast the request that waited
    for it and gave up. Leaving such requests out would leave out just those that were hurt.
    """
    pending = [(call, False) for call in tree.calls]
    while pending:
        call, apart = pending.pop()
        apart = apart or call.detached
        if not apart or call.start <= tree.end:
            yield call
        pending.extend((inner, apart) for inner in call.calls)


def everything(tree: Tree) -> Iterator[Call]:
    """List every call, also those nobody waited for."""
    pending = list(tree.calls)
    while pending:
        call = pending.pop()
        yield call
        pending.extend(call.calls)


def _name(call: Call) -> tuple[str, str]:
    return (call.point, call.callee)
