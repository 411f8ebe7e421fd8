"""What is usually there, learned from traces: so that a trace can tell what it still waits for.

Nobody announces what belongs to a trace, but systems repeat themselves. Two things are counted:

- **Entries.** A SERVER span whose parent nobody exports may be the request as the edge saw it (a
  device has sent a ``traceparent``), or one inside a request whose outer spans are still to come.
  What ``fit`` has marked at the edge is an entry. Else an operation is one when it has been left
  alone at the end of patience more often than it was seen under a parent.
- **Calls.** Nothing is learned of these: of a request under experiment ``fit`` writes on each span
  how many calls were begun inside it.
- **Answers.** A call whose callee usually writes a SERVER or CONSUMER span waits for it. Calls that
  failed are counted apart: what was refused was never served. What a fault of ours has stopped is
  not waited for, be it in the caller or in a proxy, whose span then stands below the caller's. A
  consumer that nobody waited for, and one with a trace of its own, is no answer: it may come
  minutes later, or elsewhere.

What goes on when the request is over, and nobody waited for (:func:`ldfi.lineage.tree.beyond`), is
neither waited for here nor missed: not its parent, nor its calls, nor their answers. What ended in
time is, even inside a consumer that has gone on since: its answer may be the reply that shows that
somebody did wait.

That something is missing is counted only of traces that were waited for, for what is not there yet
may be on its way. Pure, and bounded: what was not met for longest is forgotten, and learned anew.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from ldfi.fit.protocol.scenario import PREFIX
from ldfi.lineage.message_waits import outlasts
from ldfi.lineage.operation import Operation, calls_inside
from ldfi.lineage.packed_spans import Usual
from ldfi.lineage.span import Span
from ldfi.lineage.tree import beyond

Missing = Literal["root", "parent", "answer", "call"]
Key = TypeVar("Key")

KNOWN: Final = 3
"""So often something must have been seen before anything is concluded from it."""

USUAL: Final = 0.9
"""Share of calls that must have been answered for an answer to be expected. It is high since calls
are counted as unanswered only while answers are expected: the share then stays near this mark, and
few traces are given up for the sake of a callee that answers now and then."""

RECENT: Final = 1_000
"""Counts of answers are halved when there are so many: a callee may lose its instrumentation."""

_CALLING: Final = frozenset({"client", "producer"})
_REMOTE: Final = ("http:", "rpc:", "message:", "call:")
"""Kinds of point whose callee may write spans; of the others it is a surprise."""


class Hole(NamedTuple):
    """Something that has not come. ``announced``: we know that it exists. ``running``: it may be
    a span that has not ended; else all that it takes is an export. ``lost``: not even that would
    bring it, for its process has exported what came within it."""

    missing: Missing
    announced: bool = True
    running: bool = False
    lost: bool = False


class _Counts(Generic[Key]):
    """Pairs of counts, those not touched for longest forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._of: OrderedDict[Key, list[int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of)

    def get(self, key: Key) -> tuple[int, int]:
        found = self._of.get(key)
        return (found[0], found[1]) if found is not None else (0, 0)

    def add(self, key: Key, yes: bool) -> list[int]:
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = [0, 0]
            if len(self._of) > self._limit:
                self._of.popitem(last=False)
        else:
            self._of.move_to_end(key)
        found[0 if yes else 1] += 1
        return found


class Expectations:
    """What is known of a system. ``limit``: so many operations and so many points at most."""

    def __init__(self, limit: int = 10_000) -> None:
        self._entries: _Counts[tuple[str, str]] = _Counts(limit)
        self._answers: _Counts[tuple[str, bool | None]] = _Counts(limit)

    def __len__(self) -> int:
        """Count what is remembered."""
        return len(self._entries) + len(self._answers)

    def enters(self, what: Operation) -> bool:
        """Return whether a span without a known parent may be taken for a request at the edge."""
        if not what.serves:
            return False
        alone, under = self._entries.get((what.service, what.route))
        if what.edge:
            return not (under >= KNOWN and under > USUAL * (alone + under))
        return alone >= KNOWN and alone > under

    def unsure(self, parts: Parts) -> bool:
        """Return whether too little is known yet to say if a trace without a root is a request as
        the edge saw it: others like it may show that soon."""
        if parts.rooted or len(parts.loose) != 1 or not parts.loose[0][5].serves:
            return False
        what = parts.loose[0][5]
        if what.experiment.startswith(PREFIX):
            return False  # an engineer's own request, who waits for it: it teaches nothing
        alone, under = self._entries.get((what.service, what.route))
        return alone < KNOWN and not under

    def answered(self, what: Operation) -> bool | None:
        """Return whether a call like this one is usually answered with a span; None: who knows."""
        yes, no = self._answers.get((what.point or "", what.failed))
        if yes + no < KNOWN:
            return None if _remote(what.point or "") else yes > 0
        return yes >= USUAL * (yes + no)

    def hole(self, parts: Parts) -> Hole | None:
        """Find out what a trace still waits for; None where nothing is missing."""
        request = self.request(parts)
        apart = _beyond(parts, request)
        return (
            _hanging(parts, request, apart)
            or _short_of_calls(parts, apart)
            or self._unanswered(parts, request, apart)
        )

    def learn(self, parts: Parts, *, waited: bool) -> None:
        """Take a trace that is handed over. ``waited``: what has not come by now does not exist, or
        is lost."""
        apart = _beyond(parts, self.request(parts))
        waited_for = [span for span in parts.serving if span[1] not in apart]
        in_time = parts.answered if not apart else _answered(waited_for)
        for span in parts.serving:
            if span[2] in parts.ids:
                self._entries.add((span[5].service, span[5].route), False)
        if not parts.rooted and len(parts.loose) == 1 and parts.loose[0][5].serves:
            what = parts.loose[0][5]
            if waited or self.enters(what):
                self._entries.add((what.service, what.route), True)
        for call in parts.calls:
            if call[1] in apart:
                continue
            answered = call[1] in in_time
            known = waited or call[1] in parts.answered
            if answered or (known and call[1] not in parts.stopped):
                self._count(call[5], answered)

    def plain_hole(self, usual: Usual) -> Hole | None:
        """Do what :meth:`hole` does for a trace that is a plain tree below an outermost root: only
        answers can be missing, nothing goes on beside it, and no fault has stopped a call."""
        expected = [self.answered(call) for call, _ in usual.unanswered]
        if True in expected:
            return Hole("answer")
        return Hole("answer", announced=False) if None in expected else None

    def learn_plain(self, usual: Usual, *, waited: bool) -> None:
        """Do what :meth:`learn` does for such a trace."""
        for served, times in usual.under:
            for _ in range(times):
                self._entries.add((served.service, served.route), False)
        for call, times in usual.answered:
            self._count(call, True, times)
        for call, times in usual.unanswered if waited else ():
            self._count(call, False, times)

    def _count(self, call: Operation, answered: bool, times: int = 1) -> None:
        for _ in range(times):
            counts = self._answers.add((call.point or "", call.failed), answered)
            if sum(counts) > RECENT:
                counts[:] = [count // 2 for count in counts]

    def request(self, parts: Parts) -> Span | None:
        """Find the span of the request itself; None where it has not come."""
        entries = parts.roots
        if not parts.rooted:
            entries = [span for span in parts.loose if self.enters(span[5])]
        return min(entries, key=_began, default=None)

    def _unanswered(self, parts: Parts, request: Span | None, apart: frozenset[str]) -> Hole | None:
        """Find a call whose callee usually writes a span, and has not."""
        unsure = False
        for call in parts.calls:
            what = call[5]
            if call[1] in parts.answered or call[1] in parts.stopped:
                continue
            if request is not None and call[1] in apart and outlasts(call[4], request):
                continue
            expected = self.answered(what)
            if expected:
                return Hole("answer")
            unsure = unsure or expected is None
        return Hole("answer", announced=False) if unsure else None


class Parts:
    """What matters here of a trace's spans, sorted out once."""

    __slots__ = (
        "announcing",
        "answered",
        "calls",
        "detached",
        "ids",
        "loose",
        "made",
        "rooted",
        "roots",
        "serving",
        "spans",
        "stopped",
    )

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = list(spans)
        self.ids = {span[1] for span in self.spans}
        self.rooted = False
        self.detached = False
        self.roots: list[Span] = []
        self.loose: list[Span] = []
        self.serving: list[Span] = []
        self.calls: list[Span] = []
        self.announcing: list[tuple[str, int]] = []
        self.made: Counter[str | None] = Counter()
        for span in self.spans:
            above, what = span[2], span[5]
            self.detached = self.detached or what.detached
            if above is None:
                self.rooted = True
                if what.kind == "server":
                    self.roots.append(span)
            elif above not in self.ids:
                self.loose.append(span)
            announced = calls_inside(what)
            if announced:
                self.announcing.append((span[1], announced))
            if what.serves:
                self.serving.append(span)
            elif what.kind in _CALLING:
                self.made[above] += 1
                if what.point is not None:
                    self.calls.append(span)
            elif what.point is not None:
                self.made[above] += 1
        self.answered = _answered(self.serving)
        self.stopped = _stopped(self.calls)


def _answered(serving: Iterable[Span]) -> set[str | None]:
    """List the calls that these spans answer. Zipkin: both halves have one id."""
    return {span_id for span in serving for span_id in span[1:3]}


def _beyond(parts: Parts, request: Span | None) -> frozenset[str]:
    """Name the spans that the request did not wait for."""
    if request is None or not (parts.detached or parts.loose):
        return frozenset()
    return beyond(parts.spans, request)


def _hanging(parts: Parts, request: Span | None, apart: frozenset[str]) -> Hole | None:
    """Find a missing root or parent."""
    hanging = [span for span in parts.loose if span[1] not in apart]
    running = any(not span[5].serves for span in hanging)
    if request is None and not parts.rooted:
        return Hole("root", running=running)
    beside = None if parts.rooted or request is None else request[2]
    missed = any(span[2] != beside for span in hanging)
    return Hole("parent", running=running, lost=_lost(hanging, request)) if missed else None


def _lost(hanging: Iterable[Span], request: Span | None) -> bool:
    """Return whether what is missing around a fault that fired, or would have, never comes: it was
    over when the request was, and is of the process that told of the fault. A call that fails may
    be left without a span of its own, as Celery leaves a task that it cannot publish."""
    marked = [span for span in hanging if span[5].fired or span[5].would_fire]
    return (
        bool(marked)
        and request is not None
        and all(span[5].serves or span[4] <= request[4] for span in hanging)
    )


def _short_of_calls(parts: Parts, apart: frozenset[str]) -> Hole | None:
    """Find a span that has announced more calls than there are."""
    made = parts.made
    short = any(
        made[span_id] < announced and span_id not in apart
        for span_id, announced in parts.announcing
    )
    return Hole("call") if short else None


def _remote(point: str) -> bool:
    return point.startswith(_REMOTE, point.find(">") + 1)


def _stopped(calls: Iterable[Span]) -> set[str]:
    """List the calls that a fault of ours has kept from their callee, as far as spans say."""
    calls = [span for span in calls if span[5].failed is not False]
    fired = [span for span in calls if span[5].fired]
    beneath = {(span[2], span[5].point) for span in fired}
    return {span[1] for span in fired} | {
        span[1] for span in calls if beneath and (span[1], span[5].point) in beneath
    }


def _began(span: Span) -> tuple[int, str]:
    return (span[3], span[1])
