"""Assembly: spans in any order, in any batches, twice or late, become traces.

Nobody announces the end of a trace. It is taken to be whole when it has been quiet for a while and
nothing that is known to belong to it is still to come (:mod:`ldfi.lineage.expectations`). When
patience is over it is handed over all the same, and says what it misses: a trace with a hole must
not pass for evidence. Memory is bounded whatever arrives: a flood of traces that never finish
pushes out those that have been quiet longest. What is lost is counted by reason.

A trace that follows others by links waits for them, and they for it to be quiet
(:mod:`ldfi.lineage.joining`); what they miss is looked for in all that is joined.

A span that comes after its trace was handed over is late. While nobody has used that trace it can
be given back (:meth:`Assembler.reopen`); else somebody may want to know what it was
(:meth:`Assembler.take_late`).

No clock in here: callers say what time it is, in seconds that never run backwards.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter, OrderedDict
from collections.abc import Container, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

from ldfi.lineage.expectations import Expectations, Hole, Parts
from ldfi.lineage.joining import Follows, grafts
from ldfi.lineage.message_waits import outlasts, outliving
from ldfi.lineage.operation import Operation
from ldfi.lineage.packed_spans import Packed, Plain, recognise, usual
from ldfi.lineage.parentless import repaired
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import beyond

Drop = Literal["late", "evicted", "oversize", "linked_late", "linked_nowhere"]

Fate = Literal["whole", "rootless", "cut", "late"]
"""What became of a trace. ``late``: it had passed as whole when another span of it came."""

FATES: Final = get_args(Fate)

POPPED_PER_OPEN: Final = 4
"""Traces handed over are remembered, to recognise late spans: so many for each that may be open."""

MOST_LATE: Final = 1_000
"""Spans that came too late that are kept for those who ask what they were."""


class Late(NamedTuple):
    """What came too late: a span, and the request that it is of, where that is known."""

    request: Operation | None
    span: Span


class _Gone(NamedTuple):
    """A trace that was handed over: the request that it is of, and whether it passed as whole."""

    request: Operation | None = None
    whole: bool = False


class _Open:
    """Spans of one trace: as the extension holds them (``parts``) until somebody looks at them, or
    one comes that is no part of that kind."""

    __slots__ = (
        "_held",
        "_spans",
        "first",
        "handed_on",
        "heard",
        "last",
        "learned",
        "parts",
        "plain",
        "reopened",
    )

    def __init__(self, now: float) -> None:
        self.first = now
        self.heard = now  # when a span has come
        self.last = now  # the same, or when it was last found unfinished
        self.reopened = False
        self.learned = False  # what it shows of the system is known
        self.handed_on: list[Span] = []  # what those did that followed it, and are gone
        self.parts: list[Any] = []
        self.plain: Plain | None = None  # what the parts are, once that is known
        self._held = 0  # how many spans are in the parts
        self._spans: list[Span] = []

    @property
    def spans(self) -> list[Span]:
        if self.parts:
            self._spans += Packed(self.parts)
            self.parts, self.plain, self._held = [], None, 0
        return self._spans

    @spans.setter
    def spans(self, spans: list[Span]) -> None:
        self._spans = spans

    def __len__(self) -> int:
        return self._held + len(self._spans)

    def recognised(self) -> Plain | None:
        if self.plain is None:
            self.plain = recognise(self.parts)
        return self.plain

    def take(self, part: Any, most: int) -> bool:
        """Take a part; False where these would be more spans than that."""
        size = len(part)
        if self._held + len(self._spans) + size > most:
            return False
        if self._spans:
            self._spans += Packed((part,))
        else:
            self.parts.append(part)
            self._held += size
            self.plain = None
        return True


class Assembler:
    """Collects spans into traces.

    ``quiet``: seconds without a span after which a trace is whole, where nothing is missing.
    ``patience``: seconds without a span after which what can only be on its way is given up, by
    default ``max_age``. ``max_age``: seconds after its first span at which a trace is handed over
    regardless, for a span that has not ended may end at any time. ``expected``: what is known of
    the system; without it only missing parents are missed, as of files, which nobody waits for.

    ``dropped`` counts lost spans by reason: ``late`` (its trace is gone), ``evicted`` (too many
    traces open), ``oversize`` (its trace has more spans than ``max_spans_per_trace`` and is given
    up as a whole). ``fates`` counts traces.
    Links of consumers with a trace of their own are counted where they lead nowhere: to a trace
    that is gone (``linked_late``) or never came (``linked_nowhere``).
    """

    def __init__(
        self,
        quiet: float = 2.0,
        max_age: float = 60.0,
        max_traces: int = 50_000,
        max_spans_per_trace: int = 10_000,
        *,
        patience: float | None = None,
        expected: Expectations | None = None,
    ) -> None:
        patience = max_age if patience is None else patience
        if not 0 <= quiet <= patience <= max_age or max_traces < 1 or max_spans_per_trace < 1:
            raise ValueError(
                f"quiet={quiet}, patience={patience}, max_age={max_age}, max_traces={max_traces},"
                f" max_spans_per_trace={max_spans_per_trace}: all positive,"
                " quiet <= patience <= max_age"
            )
        self.quiet = quiet
        self.patience = patience
        self.max_age = max_age
        self.max_traces = max_traces
        self.max_spans_per_trace = max_spans_per_trace
        self.dropped: Counter[Drop] = Counter()
        self.fates: Counter[Fate] = Counter()
        self._expected = expected
        self._by_activity: OrderedDict[str, _Open] = OrderedDict()
        self._by_age: dict[str, _Open] = {}  # in the order in which they were opened
        self._gone: OrderedDict[str, _Gone] = OrderedDict()
        self._late: list[tuple[str, Late]] = []
        self._follows = Follows()

    def __len__(self) -> int:
        """Count the traces that are open."""
        return len(self._by_age)

    def __contains__(self, trace_id: str) -> bool:
        """Return whether a trace is open."""
        return trace_id in self._by_age

    @property
    def oldest(self) -> float | None:
        """Return when the oldest open trace got its first span; None where nothing is open."""
        return next(iter(self._by_age.values())).first if self._by_age else None

    def add(self, spans: Iterable[Span], now: float) -> list[Span]:
        """Take spans that have just arrived; returns those that come too late for their traces."""
        if isinstance(spans, Packed):
            return self._add_parts(spans, now)
        find, limit = self._by_age.get, self.max_spans_per_trace
        late: list[Span] = []
        for span in spans:
            trace = find(span[0])
            if trace is None or trace.last != now:
                trace = self._touch(span[0], trace, now)
                if trace is None:
                    self._lose(span)
                    late.append(span)
                    continue
            collected = trace.spans
            collected.append(span)
            if span[6]:
                self._follow(span)
            if len(collected) > limit and not self._compact(span[0], trace):
                self._drop(span[0], "oversize")
        return late

    def _add_parts(self, spans: Packed, now: float) -> list[Span]:
        find, most = self._by_age.get, self.max_spans_per_trace
        late: list[Span] = []
        for part in spans.parts:
            trace_id = part.trace_id
            trace = find(trace_id)
            if trace is None or trace.last != now:
                trace = self._touch(trace_id, trace, now)
            if trace is None or not trace.take(part, most):
                late += self.add(list(Packed((part,))), now)
        return late

    def reopen(self, trace: Trace, late: Iterable[Span], now: float) -> None:
        """Take back a whole trace that nobody has used, and what :meth:`add` has found late: it is
        late no longer."""
        late = list(late)
        self._late = [each for each in self._late if each[0] != trace.trace_id]
        del self._gone[trace.trace_id]
        self.fates["late"] -= 1
        self.dropped["late"] -= len(late)
        again = self._open(trace.trace_id, now)
        again.reopened = True
        again.spans.extend((*trace.spans, *late))

    def pop(self, now: float, most: int = sys.maxsize) -> list[Trace]:
        """Hand over the traces that are whole or too old, in the order in which they began.

        Of those that are whole and stand by themselves at most so many: the others stay open.
        """
        due: dict[str, str] = {}
        unfinished: list[str] = []
        for trace_id, trace in self._by_activity.items():
            if now - trace.last < self.quiet or len(due) >= most:
                break
            missing = self._judged(trace_id, trace, due, now)
            if missing is None:
                unfinished.append(trace_id)
            else:
                due[trace_id] = missing
        for trace_id in unfinished:  # look again when it has been quiet for as long once more
            self._by_age[trace_id].last = now
            self._by_activity.move_to_end(trace_id)
        for trace_id, trace in self._by_age.items():
            if now - trace.first < self.max_age:
                break
            if trace_id not in due:
                due[trace_id] = self._missing(trace_id, trace)
        return self._take(due)

    def newest(self, most: int) -> list[Trace]:
        """Look at open traces as they are, at most so many."""
        newest = itertools.islice(reversed(self._by_activity.items()), most)
        return [Trace.of(each, open_.spans, heard=open_.heard) for each, open_ in newest]

    def take_late(self) -> list[Late]:
        """Take what has come too late since the last time, of what processes serve; at most
        :data:`MOST_LATE`. All of it is counted."""
        late, self._late = self._late, []
        return [each for _, each in late]

    def flush(self) -> list[Trace]:
        """Hand over everything that is open, as at the end of a file."""
        return self._take(dict.fromkeys(self._by_age, ""))

    def _judged(self, trace_id: str, trace: _Open, due: Container[str], now: float) -> str | None:
        """Return what a quiet trace misses: nothing where it is whole; None where it shall wait."""
        if not self._joins(trace_id, trace, due, now):
            return None
        plain = self._plain(trace_id, trace)
        if self._expected is None:
            return "" if plain or _finished(trace.spans, _request(trace.spans)) else None
        if plain is not None and _tells(plain):
            return _judged_plain(trace, self._expected, waited=now - trace.heard >= self.patience)
        parts, hole = self._hole(trace_id, trace, self._expected)
        waited = now - trace.heard >= self.patience
        lost = hole is not None and hole.lost and now - trace.heard >= 2 * self.quiet
        if hole is not None and not lost and (hole.running or not waited):
            return None
        if not trace.learned:
            self._expected.learn(parts, waited=waited)
            trace.learned = True
        if hole is not None and hole.missing == "root":
            if self._expected.unsure(parts):
                return None
            hole = self._expected.hole(parts)
        return _announced(hole)

    def _plain(self, trace_id: str, trace: _Open) -> Plain | None:
        """Recognise a trace that the extension holds as a whole, and that nothing followed."""
        if not trace.parts or trace.handed_on or self._follows.followers(trace_id):
            return None
        return trace.recognised()

    def _missing(self, trace_id: str, trace: _Open) -> str:
        """Return what a trace misses that is too old to wait any longer."""
        if self._expected is None:
            return ""
        parts, hole = self._hole(trace_id, trace, self._expected)
        self._expected.learn(parts, waited=False)
        return _announced(hole)

    def _hole(
        self, trace_id: str, trace: _Open, expected: Expectations
    ) -> tuple[Parts, Hole | None]:
        """Sort out a trace's own spans, from which alone is learned what usually comes in a trace,
        and find out what it misses with all that is joined to it."""
        parts = Parts(repaired(trace.spans))
        joined = self._joined(trace_id, trace)
        return parts, expected.hole(parts if joined is trace.spans else Parts(repaired(joined)))

    def _touch(self, trace_id: str, trace: _Open | None, now: float) -> _Open | None:
        """Note that a trace has got a span; None where that span comes too late."""
        if trace is not None:
            trace.last = trace.heard = now
            self._by_activity.move_to_end(trace_id)
            return trace
        return None if trace_id in self._gone else self._open(trace_id, now)

    def _lose(self, span: Span) -> None:
        """Count a span that comes too late."""
        trace_id = span.trace_id
        self.dropped["late"] += 1
        gone = self._gone[trace_id]
        self.fates["late"] += gone.whole
        self._gone[trace_id] = gone._replace(whole=False)  # a trace is late once
        self._note_late(trace_id, span)

    def _open(self, trace_id: str, now: float) -> _Open:
        if len(self._by_age) >= self.max_traces:
            self._drop(next(iter(self._by_activity)), "evicted")
        trace = _Open(now)
        self._by_age[trace_id] = self._by_activity[trace_id] = trace
        return trace

    def _follow(self, span: Span) -> None:
        for followed in self._follows.note(span):
            if followed in self._gone:
                self.dropped["linked_late"] += 1
                self._note_late(followed, span)

    def _note_late(self, trace_id: str, span: Span) -> None:
        if span.operation.serves and len(self._late) < MOST_LATE:
            self._late.append((trace_id, Late(self._gone[trace_id].request, span)))

    def _joins(self, trace_id: str, trace: _Open, due: Container[str], now: float) -> bool:
        """Return whether all has come that follows a trace, and all that it follows is handed over
        or follows it in turn."""
        followers = self._follows.followers(trace_id)
        if followers:
            request = _request(trace.spans, self._expected)
            for each in followers:
                other = self._by_age.get(each)
                if other and (
                    now - other.heard < self.quiet or not _finished(other.spans, request)
                ):
                    return False
        return all(
            each in followers or each in self._gone or each in due
            for each in self._follows.followed(trace_id)
        )

    def _joined(self, trace_id: str, trace: _Open) -> list[Span]:
        """Join what followed a trace to it; its own spans where nothing did."""
        more = [*trace.handed_on, *self._follows.joined(trace_id, self._spans)]
        return [*trace.spans, *more] if more else trace.spans

    def _hand_on(self, trace_id: str, due: Container[str]) -> None:
        """Leave what a trace did with those that it follows and that are still open."""
        for each in self._follows.followed(trace_id):
            followed = self._by_age.get(each)
            if followed is None and each not in self._gone:
                self.dropped["linked_nowhere"] += 1
            elif followed is not None and each not in due:
                followed.handed_on += grafts(self._spans(trace_id), each, each)

    def _spans(self, trace_id: str) -> list[Span]:
        trace = self._by_age.get(trace_id)
        return [*trace.spans, *trace.handed_on] if trace is not None else []

    def _compact(self, trace_id: str, trace: _Open) -> bool:
        """Make room by removing duplicates; False where there are too few of them to help."""
        trace.spans = list(Trace.of(trace_id, trace.spans).spans)
        return len(trace.spans) <= self.max_spans_per_trace // 2

    def _drop(self, trace_id: str, reason: Drop) -> None:
        trace = self._by_age.pop(trace_id)
        del self._by_activity[trace_id]
        self.dropped[reason] += len(trace)
        self._forget(trace_id, _Gone())

    def _take(self, due: dict[str, str]) -> list[Trace]:
        oldest_first = sorted(due.items(), key=lambda item: self._by_age[item[0]].first)
        taken = []
        for trace_id, missing in oldest_first:
            own = self._by_age[trace_id]
            plain = self._plain(trace_id, own)
            if plain is not None:
                packed = Packed(own.parts, plain)
                taken.append(Trace(trace_id, packed, missing, own.heard))
                continue
            spans = self._joined(trace_id, own)
            if len(spans) > self.max_spans_per_trace:  # there is no room for what followed it
                self.dropped["oversize"] += len(spans) - len(own.spans)
                spans = own.spans
            taken.append(Trace.of(trace_id, spans, missing, own.heard))
        for trace_id in due:
            self._hand_on(trace_id, due)
        for trace_id, missing in due.items():
            trace = self._by_age.pop(trace_id)
            del self._by_activity[trace_id]
            self._forget(trace_id, _Gone(_entered(trace, self._expected), not missing))
            if missing or not trace.reopened:  # else it was counted when it was whole first
                self.fates["rootless" if missing == "root" else "cut" if missing else "whole"] += 1
        return taken

    def _forget(self, trace_id: str, gone: _Gone) -> None:
        self._gone[trace_id] = gone
        self._follows.forget(trace_id)
        if len(self._gone) > POPPED_PER_OPEN * self.max_traces:
            self._gone.popitem(last=False)


def concerns(trace: Trace, late: Sequence[Span]) -> bool:
    """Return whether what has come late may change what a trace says: not what was begun when the
    request was over, and nobody waited for."""
    request = _request(trace.spans)
    if request is None:
        return True
    apart = beyond([*trace.spans, *late], request)
    return any(s.span_id not in apart or not outlasts(s.start, request) for s in late)


def reopens(trace: Trace, late: Sequence[Span]) -> bool:
    """Return whether to give back a trace for what has come late: it passed as whole, and that may
    change what it says."""
    return not trace.missing and concerns(trace, late)


def _tells(plain: Plain) -> bool:
    """Return whether a plain tree is a request as the edge saw it, of which nothing but answers can
    be missing."""
    return plain.outermost and plain.root.kind == "server" and not plain.announces


def _judged_plain(trace: _Open, expected: Expectations, *, waited: bool) -> str | None:
    """Return what such a trace misses; None where it shall wait."""
    said = usual(trace.parts)
    hole = expected.plain_hole(said)
    if hole is not None and not waited:
        return None
    expected.learn_plain(said, waited=waited)
    return _announced(hole)


def _entered(trace: _Open, expected: Expectations | None) -> Operation | None:
    """Find the request that a trace is of."""
    plain = trace.plain
    if plain is not None and (plain.outermost or expected is None):
        return plain.root if plain.outermost and plain.root.kind == "server" else None
    request = _request(trace.spans, expected)
    return request.operation if request else None


def _announced(hole: Hole | None) -> str:
    return hole.missing if hole is not None and hole.announced else ""


def _finished(spans: Iterable[Span], request: Span | None) -> bool:
    """Return whether nothing is still going on, as far as the spans themselves can tell.

    A call whose parent is missing was made by a process that has not yet exported that parent.
    Only what a process serves may have a parent that nobody ever exports. What goes on when the
    request is over holds nobody up.
    """
    spans = list(spans)
    known = {span.span_id for span in spans}
    going_on = {
        span.parent_id
        for span in spans
        if span.parent_id is not None and span.parent_id not in known and not span.operation.serves
    }
    return not going_on or (request is not None and going_on <= outliving(spans, request))


def _request(spans: Sequence[Span], expected: Expectations | None = None) -> Span | None:
    """Find the span of the request itself; None where it has not come."""
    spans = repaired(spans)
    entries = [s for s in spans if s.parent_id is None and s.operation.kind == "server"]
    if not entries and expected is not None:
        return expected.request(Parts(spans))
    return min(entries, key=lambda span: (span.start, span.span_id), default=None)
