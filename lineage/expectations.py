"""What is usually there, learned from traces: so that a trace can tell what it still waits for.

Nobody announces what belongs to a trace, but systems repeat themselves. Two things are counted:

- **Entries.** A SERVER span whose parent nobody exports may be the request as the edge saw it (a
  device has sent a ``traceparent``), or one inside a request whose outer spans are still to come.
  What ``fit`` has marked at the edge is an entry. Else an operation is one when it has been left
  alone at the end of patience more often than it was seen under a parent.
- **Calls.** Nothing is learned of these: of a request under experiment ``fit`` writes on each span
  how many calls were begun inside it.
- **Answers.** A call whose callee usually writes a SERVER or CONSUMER span waits for it. Calls that
  failed are counted apart: what was refused was never served.

That something is missing is counted only of traces that were waited for, for what is not there yet
may be on its way. Pure, and bounded: what was not met for longest is forgotten, and learned anew.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from ldfi.lineage.operation import Operation, calls_inside
from ldfi.lineage.span import Span

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
    a span that has not ended; else all that it takes is an export."""

    missing: Missing
    announced: bool = True
    running: bool = False


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
        """Tell whether a span without a known parent may be taken for a request at the edge."""
        if not what.serves:
            return False
        alone, under = self._entries.get((what.service, what.route))
        if what.edge:
            return not (under >= KNOWN and under > USUAL * (alone + under))
        return alone >= KNOWN and alone > under

    def answered(self, what: Operation) -> bool | None:
        """Tell whether a call like this one is usually answered with a span; None: who knows."""
        yes, no = self._answers.get((what.point or "", what.failed))
        if yes + no < KNOWN:
            return None if _remote(what.point or "") else yes > 0
        return yes >= USUAL * (yes + no)

    def hole(self, parts: Parts) -> Hole | None:
        """Find out what a trace still waits for; None where nothing is missing."""
        return self._hanging(parts) or _short_of_calls(parts) or self._unanswered(parts)

    def learn(self, parts: Parts, *, waited: bool) -> None:
        """Take a trace that is handed over. ``waited``: what has not come by now does not exist, or
        is lost."""
        for span in parts.serving:
            if span[2] in parts.ids:
                self._entries.add((span[5].service, span[5].route), False)
        if not parts.rooted and len(parts.loose) == 1 and parts.loose[0][5].serves:
            what = parts.loose[0][5]
            if waited or self.enters(what):
                self._entries.add((what.service, what.route), True)
        for call in parts.calls:
            answered = call[1] in parts.answered
            if answered or (waited and not _stopped(call[5])):
                counts = self._answers.add((call[5].point or "", call[5].failed), answered)
                if sum(counts) > RECENT:
                    counts[:] = [count // 2 for count in counts]

    def _hanging(self, parts: Parts) -> Hole | None:
        """Find a missing root or parent."""
        beside: str | None = None
        running = any(not span[5].serves for span in parts.loose)
        if not parts.rooted:
            entries = [span for span in parts.loose if self.enters(span[5])]
            if not entries:
                return Hole("root", running=running)
            beside = min(entries, key=_began)[2]
        hanging = [span for span in parts.loose if span[2] != beside]
        if any(not span[5].detached for span in hanging):
            return Hole("parent", running=running)
        return Hole("parent", announced=False) if hanging else None

    def _unanswered(self, parts: Parts) -> Hole | None:
        """Find a call whose callee usually writes a span, and has not."""
        unsure = False
        for call in parts.calls:
            what = call[5]
            if call[1] in parts.answered or _stopped(what):
                continue
            expected = self.answered(what)
            if expected:
                return Hole("answer")
            unsure = unsure or expected is None
        return Hole("answer", announced=False) if unsure else None


class Parts:
    """What matters here of a trace's spans, sorted out once."""

    __slots__ = ("announcing", "answered", "calls", "ids", "loose", "made", "rooted", "serving")

    def __init__(self, spans: Iterable[Span]) -> None:
        given = list(spans)
        self.ids = {span[1] for span in given}
        self.rooted = False
        self.loose: list[Span] = []
        self.serving: list[Span] = []
        self.calls: list[Span] = []
        self.announcing: list[tuple[str, int]] = []
        self.made: Counter[str | None] = Counter()
        for span in given:
            above, what = span[2], span[5]
            if above is None:
                self.rooted = True
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
        self.answered = {span[2] for span in self.serving}
        self.answered |= {span[1] for span in self.serving}  # Zipkin: both halves have one id


def _short_of_calls(parts: Parts) -> Hole | None:
    """Find a span that has announced more calls than there are."""
    made = parts.made
    short = any(made[span_id] < announced for span_id, announced in parts.announcing)
    return Hole("call") if short else None


def _remote(point: str) -> bool:
    return point.startswith(_REMOTE, point.find(">") + 1)


def _stopped(what: Operation) -> bool:
    """Tell whether a fault of ours has kept a call from its callee, as far as the span says."""
    return bool(what.fired) and what.failed is not False


def _began(span: Span) -> tuple[int, str]:
    return (span[3], span[1])
