"""Assembly: spans in any order, in any batches, twice or late, become traces.

Nobody announces the end of a trace. It is taken to be whole when it has been quiet for a while and
no call in it is still inside something not yet heard of (a span ends after those inside it, and may
end seconds later); it is handed over as it stands when it has been open for too long. Memory is
bounded whatever arrives: a flood of traces that never finish pushes out those that have been quiet
longest. A trace that follows others by links waits for them, and they for it to be quiet
(:mod:`ldfi.lineage.joining`). What is lost is counted by reason, for a trace with a hole must not
pass for evidence.

No clock in here: callers say what time it is, in seconds that never run backwards.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Container, Iterable
from typing import Final, Literal, NamedTuple

from ldfi.lineage.joining import Follows, grafts
from ldfi.lineage.operation import Operation
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.waiting import outliving

Drop = Literal["late", "evicted", "oversize", "linked_late", "linked_nowhere"]

POPPED_PER_OPEN: Final = 4
"""Traces handed over are remembered, to recognise late spans: so many for each that may be open."""

MOST_LATE: Final = 1_000
"""Spans that came too late that are kept for those who ask what they were."""


class Late(NamedTuple):
    """What came too late: a span, and the request that it is of, where that is known."""

    request: Operation | None
    span: Span


class _Open:
    __slots__ = ("first", "heard", "last", "spans")

    def __init__(self, now: float) -> None:
        self.first = now
        self.heard = now
        self.last = now
        self.spans: list[Span] = []


class Assembler:
    """Collects spans into traces.

    ``quiet``: seconds without a span after which a trace is whole. ``max_age``: seconds after its
    first span at which it is handed over regardless. ``dropped`` counts lost spans by reason:
    ``late`` (its trace is gone), ``evicted`` (too many traces open), ``oversize`` (its trace has
    more spans than ``max_spans_per_trace`` and is given up as a whole). Links of consumers with a
    trace of their own are counted where they lead nowhere: to a trace that is gone
    (``linked_late``) or never came (``linked_nowhere``).
    """

    def __init__(
        self,
        quiet: float = 2.0,
        max_age: float = 60.0,
        max_traces: int = 50_000,
        max_spans_per_trace: int = 10_000,
    ) -> None:
        if quiet < 0 or max_age < quiet or max_traces < 1 or max_spans_per_trace < 1:
            raise ValueError(
                f"quiet={quiet}, max_age={max_age}, max_traces={max_traces},"
                f" max_spans_per_trace={max_spans_per_trace}: all positive, quiet <= max_age"
            )
        self.quiet = quiet
        self.max_age = max_age
        self.max_traces = max_traces
        self.max_spans_per_trace = max_spans_per_trace
        self.dropped: Counter[Drop] = Counter()
        self._by_activity: OrderedDict[str, _Open] = OrderedDict()
        self._by_age: dict[str, _Open] = {}  # in the order in which they were opened
        self._gone: OrderedDict[str, Operation | None] = OrderedDict()
        self._late: list[Late] = []
        self._follows = Follows()

    def __len__(self) -> int:
        """Count the traces that are open."""
        return len(self._by_age)

    def __contains__(self, trace_id: str) -> bool:
        """Tell whether a trace is open."""
        return trace_id in self._by_age

    @property
    def oldest(self) -> float | None:
        """When the oldest open trace got its first span; None where nothing is open."""
        return next(iter(self._by_age.values())).first if self._by_age else None

    def add(self, spans: Iterable[Span], now: float) -> None:
        """Take spans that have just arrived."""
        find, limit = self._by_age.get, self.max_spans_per_trace
        for span in spans:
            trace = find(span[0])
            if trace is None or trace.last != now:
                trace = self._touch(span, trace, now)
                if trace is None:
                    continue
            collected = trace.spans
            collected.append(span)
            if span[6]:
                self._follow(span)
            if len(collected) > limit and not self._compact(span[0], trace):
                self._drop(span[0], "oversize")

    def pop(self, now: float) -> list[Trace]:
        """Hand over the traces that are quiet or too old, in the order in which they began."""
        due: dict[str, _Open] = {}
        unfinished: list[str] = []
        for trace_id, trace in self._by_activity.items():
            if now - trace.last < self.quiet:
                break
            if _finished(trace.spans) and self._joins(trace_id, due, now):
                due[trace_id] = trace
            else:
                unfinished.append(trace_id)
        for trace_id in unfinished:  # look again when it has been quiet for as long once more
            self._by_age[trace_id].last = now
            self._by_activity.move_to_end(trace_id)
        for trace_id, trace in self._by_age.items():
            if now - trace.first < self.max_age:
                break
            due[trace_id] = trace
        return self._take(due)

    def take_late(self) -> list[Late]:
        """Take what has come too late since the last time, of what processes serve; at most
        :data:`MOST_LATE`. All of it is counted."""
        late, self._late = self._late, []
        return late

    def flush(self) -> list[Trace]:
        """Hand over everything that is open, as at the end of a file."""
        return self._take(dict(self._by_age))

    def _touch(self, span: Span, trace: _Open | None, now: float) -> _Open | None:
        """Note that a trace has got a span; None where that span comes too late."""
        trace_id = span.trace_id
        if trace is not None:
            trace.last = trace.heard = now
            self._by_activity.move_to_end(trace_id)
            return trace
        if trace_id in self._gone:
            self.dropped["late"] += 1
            self._note_late(trace_id, span)
            return None
        return self._open(trace_id, now)

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
            self._late.append(Late(self._gone[trace_id], span))

    def _joins(self, trace_id: str, due: Container[str], now: float) -> bool:
        """Tell whether all has come that follows a trace, and all that it follows is handed over
        or follows it in turn."""
        followers = self._follows.followers(trace_id)
        for each in followers:
            trace = self._by_age.get(each)
            if trace and (now - trace.heard < self.quiet or not _finished(trace.spans)):
                return False
        return all(
            each in followers or each in self._gone or each in due
            for each in self._follows.followed(trace_id)
        )

    def _joined(self, trace_id: str, spans: list[Span]) -> Trace:
        """Join what followed a trace to it, as far as there is room."""
        more = self._follows.joined(trace_id, self._spans)
        if len(spans) + len(more) > self.max_spans_per_trace:
            self.dropped["oversize"] += len(more)
            more = []
        return Trace.of(trace_id, [*spans, *more] if more else spans)

    def _hand_on(self, trace_id: str, spans: list[Span], due: Container[str]) -> None:
        """Leave what a trace did with those that it follows and that are still open."""
        for each in self._follows.followed(trace_id):
            followed = self._by_age.get(each)
            if followed is None and each not in self._gone:
                self.dropped["linked_nowhere"] += 1
            elif followed is not None and each not in due:
                followed.spans += grafts(spans, each, each)

    def _spans(self, trace_id: str) -> list[Span]:
        trace = self._by_age.get(trace_id)
        return trace.spans if trace is not None else []

    def _compact(self, trace_id: str, trace: _Open) -> bool:
        """Make room by removing duplicates; False where there are too few of them to help."""
        trace.spans = list(Trace.of(trace_id, trace.spans).spans)
        return len(trace.spans) <= self.max_spans_per_trace // 2

    def _drop(self, trace_id: str, reason: Drop) -> None:
        trace = self._by_age.pop(trace_id)
        del self._by_activity[trace_id]
        self.dropped[reason] += len(trace.spans)
        self._forget(trace_id)

    def _take(self, due: dict[str, _Open]) -> list[Trace]:
        oldest_first = sorted(due.items(), key=lambda item: item[1].first)
        taken = [self._joined(trace_id, trace.spans) for trace_id, trace in oldest_first]
        for trace_id, trace in due.items():
            self._hand_on(trace_id, trace.spans, due)
        for trace_id, trace in due.items():
            del self._by_age[trace_id]
            del self._by_activity[trace_id]
            request = _request(trace.spans)
            self._forget(trace_id, request.operation if request else None)
        return taken

    def _forget(self, trace_id: str, request: Operation | None = None) -> None:
        self._gone[trace_id] = request
        self._follows.forget(trace_id)
        if len(self._gone) > POPPED_PER_OPEN * self.max_traces:
            self._gone.popitem(last=False)


def _finished(spans: Iterable[Span]) -> bool:
    """Tell whether nothing is still going on, as far as the spans themselves can tell.

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
    request = _request(spans) if going_on else None
    return not going_on or (request is not None and going_on <= outliving(spans, request))


def _request(spans: Iterable[Span]) -> Span | None:
    """Find the span of the request itself; None where it has not come."""
    entries = (s for s in spans if s.parent_id is None and s.operation.kind == "server")
    return min(entries, key=lambda span: (span.start, span.span_id), default=None)
