"""Assembly: spans in any order, in any batches, twice or late, become traces.

Nobody announces the end of a trace. It is taken to be whole when it has been quiet for a while and
nothing that is known to belong to it is still to come (:mod:`ldfi.lineage.expectations`). When
patience is over it is handed over all the same, and says what it misses: a trace with a hole must
not pass for evidence. Memory is bounded whatever arrives: a flood of traces that never finish
pushes out those that have been quiet longest. What is lost is counted by reason.

A span that comes after its trace was handed over is late. While nobody has used that trace it can
be given back (:meth:`Assembler.reopen`).

No clock in here: callers say what time it is, in seconds that never run backwards.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, Literal, get_args

from ldfi.lineage.expectations import Expectations, Hole, Parts
from ldfi.lineage.span import Span, Trace

Drop = Literal["late", "evicted", "oversize"]

Fate = Literal["whole", "rootless", "cut", "late"]
"""What became of a trace. ``late``: it had passed as whole when another span of it came."""

FATES: Final = get_args(Fate)

POPPED_PER_OPEN: Final = 4
"""Traces handed over are remembered, to recognise late spans: so many for each that may be open."""


class _Open:
    __slots__ = ("first", "heard", "last", "reopened", "spans")

    def __init__(self, now: float) -> None:
        self.first = now
        self.heard = now  # when a span has come
        self.last = now  # the same, or when it was last found unfinished
        self.reopened = False
        self.spans: list[Span] = []


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
        self._gone: OrderedDict[str, bool] = OrderedDict()  # whether as a whole trace

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

    def add(self, spans: Iterable[Span], now: float) -> list[Span]:
        """Take spans that have just arrived; returns those that come too late for their traces."""
        find, limit = self._by_age.get, self.max_spans_per_trace
        late: list[Span] = []
        for span in spans:
            trace = find(span[0])
            if trace is None or trace.last != now:
                trace = self._touch(span[0], trace, now)
                if trace is None:
                    late.append(span)
                    continue
            collected = trace.spans
            collected.append(span)
            if len(collected) > limit and not self._compact(span[0], trace):
                self._drop(span[0], "oversize")
        return late

    def reopen(self, trace: Trace, late: Iterable[Span], now: float) -> None:
        """Take back a whole trace that nobody has used, and what :meth:`add` has found late."""
        late = list(late)
        del self._gone[trace.trace_id]
        self.fates["late"] -= 1
        self.dropped["late"] -= len(late)
        again = self._open(trace.trace_id, now)
        again.reopened = True
        again.spans.extend((*trace.spans, *late))

    def pop(self, now: float) -> list[Trace]:
        """Hand over the traces that are whole or too old, in the order in which they began."""
        due: dict[str, str] = {}
        unfinished: list[str] = []
        for trace_id, trace in self._by_activity.items():
            if now - trace.last < self.quiet:
                break
            missing = self._judged(trace, now)
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
                due[trace_id] = self._missing(trace)
        return self._take(due)

    def flush(self) -> list[Trace]:
        """Hand over everything that is open, as at the end of a file."""
        return self._take(dict.fromkeys(self._by_age, ""))

    def _judged(self, trace: _Open, now: float) -> str | None:
        """Tell what a quiet trace misses: nothing where it is whole; None where it shall wait."""
        if self._expected is None:
            return "" if _finished(trace.spans) else None
        parts = Parts(trace.spans)
        hole = self._expected.hole(parts)
        waited = now - trace.heard >= self.patience
        if hole is not None and (hole.running or not waited):
            return None
        self._expected.learn(parts, waited=waited)
        return _announced(hole)

    def _missing(self, trace: _Open) -> str:
        """Tell what a trace misses that is too old to wait any longer."""
        if self._expected is None:
            return ""
        parts = Parts(trace.spans)
        hole = self._expected.hole(parts)
        self._expected.learn(parts, waited=False)
        return _announced(hole)

    def _touch(self, trace_id: str, trace: _Open | None, now: float) -> _Open | None:
        """Note that a trace has got a span; None where that span comes too late."""
        if trace is not None:
            trace.last = trace.heard = now
            self._by_activity.move_to_end(trace_id)
            return trace
        if trace_id in self._gone:
            self.dropped["late"] += 1
            self.fates["late"] += self._gone[trace_id]
            self._gone[trace_id] = False  # a trace is late once
            return None
        return self._open(trace_id, now)

    def _open(self, trace_id: str, now: float) -> _Open:
        if len(self._by_age) >= self.max_traces:
            self._drop(next(iter(self._by_activity)), "evicted")
        trace = _Open(now)
        self._by_age[trace_id] = self._by_activity[trace_id] = trace
        return trace

    def _compact(self, trace_id: str, trace: _Open) -> bool:
        """Make room by removing duplicates; False where there are too few of them to help."""
        trace.spans = list(Trace.of(trace_id, trace.spans).spans)
        return len(trace.spans) <= self.max_spans_per_trace // 2

    def _drop(self, trace_id: str, reason: Drop) -> None:
        trace = self._by_age.pop(trace_id)
        del self._by_activity[trace_id]
        self.dropped[reason] += len(trace.spans)
        self._forget(trace_id, whole=False)

    def _take(self, due: dict[str, str]) -> list[Trace]:
        taken = [(self._by_age.pop(trace_id), trace_id, due[trace_id]) for trace_id in due]
        for trace, trace_id, missing in taken:
            del self._by_activity[trace_id]
            self._forget(trace_id, whole=not missing)
            if missing or not trace.reopened:  # else it was counted when it was whole first
                self.fates["rootless" if missing == "root" else "cut" if missing else "whole"] += 1
        taken.sort(key=lambda each: each[0].first)
        return [Trace.of(trace_id, trace.spans, missing) for trace, trace_id, missing in taken]

    def _forget(self, trace_id: str, *, whole: bool) -> None:
        self._gone[trace_id] = whole
        if len(self._gone) > POPPED_PER_OPEN * self.max_traces:
            self._gone.popitem(last=False)


def _announced(hole: Hole | None) -> str:
    return hole.missing if hole is not None and hole.announced else ""


def _finished(spans: Iterable[Span]) -> bool:
    """Tell whether nothing is still going on, as far as the spans themselves can tell.

    A call whose parent is missing was made by a process that has not yet exported that parent.
    Only what a process serves may have a parent that nobody ever exports.
    """
    spans = list(spans)
    known = {span.span_id for span in spans}
    return all(
        span.parent_id is None or span.parent_id in known or span.operation.serves for span in spans
    )
