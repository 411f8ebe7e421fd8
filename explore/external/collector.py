"""The spans of one run, waited for until its trace is whole: by the service's own rules.

What comes in while the test runs is held back; when the test is over it goes into the assembler
together with the test's own spans, and what comes later follows. So it is run by run where several
go on at a time. What a system's traces look like is learned from run to run, so one collector
serves a whole session.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence, Set
from threading import Condition
from typing import Final

from ldfi.experiments.domain.traffic.waiting_times import Waiting
from ldfi.lineage.assembly import Assembler, concerns
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.span import Span, Trace

HELD: Final = 100_000
"""Spans that are held back at most: the oldest go first."""
STRAYS: Final = 5_000
"""Traces of no run that are kept at most."""
REMEMBERED: Final = 50
"""Runs that were judged, and are known in case that more of them comes."""


class Collector:
    """Joins what services export with what the test itself has seen."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting
        self.strangers: Counter[str] = Counter()
        """Spans of no run of ours, by service: nobody has told it the test's traceparent."""
        self.strays: dict[str, list[Span]] = {}
        """The same by trace, of this session: perhaps calls that lost the test's context."""
        self.services: set[str] = set()
        """Services that have exported anything."""
        self.late = 0
        """Spans that came when their run had been judged already, and might have said otherwise."""
        self._news = Condition()
        self._held: deque[tuple[float, Span]] = deque(maxlen=HELD)
        self._known: set[str] = set()
        self._running: set[str] = set()
        self._dismissed: set[str] = set()
        self._whole: dict[str, Trace] = {}
        """Traces that somebody else came upon, until whoever waits for them sees it."""
        self._judged: OrderedDict[str, Trace] = OrderedDict()
        self._assembler = Assembler(
            waiting.quiet,
            waiting.request,
            patience=waiting.patience,
            expected=Expectations(),
        )

    def take(self, spans: Sequence[Span]) -> None:
        """Take exported spans; from any thread."""
        now = time.monotonic()
        with self._news:
            self._held.extend((now, span) for span in spans)
            self.services |= {span.operation.service for span in spans}
            self._news.notify_all()

    def begin(self, trace_id: str) -> None:
        """Expect the spans of a run."""
        with self._news:
            self._feed()
            self.strangers.clear()
            self._known.add(trace_id)
            self._running.add(trace_id)

    def whole(self, trace_id: str, own: Sequence[Span]) -> Trace:
        """Wait for the whole trace of a run that is over, and return it. ``own``: spans of the
        test itself."""
        with self._news:
            self._running.discard(trace_id)
            self._feed()
            self._assembler.add(own, time.monotonic())
            while True:
                self._whole |= {t.trace_id: t for t in self._assembler.pop(time.monotonic())}
                if trace_id in self._whole:
                    return self._remembered(self._whole.pop(trace_id))
                self._news.wait(self.waiting.quiet / 4)
                self._feed()

    def dismiss(self, trace_id: str) -> None:
        """Ignore what still comes of a run that is made again."""
        with self._news:
            self._dismissed.add(trace_id)

    def await_other(self, known: Set[str], seconds: float) -> None:
        """Wait until a service has exported that is not one of these, so long at most."""
        with self._news:
            self._news.wait_for(lambda: not self.services <= known, seconds)

    def feed(self) -> None:
        """Process the spans that came since the last run."""
        with self._news:
            self._feed()

    def _feed(self) -> None:
        held, self._held = self._held, deque(maxlen=HELD)
        for arrived, span in held:
            if span.trace_id in self._running:
                self._held.append((arrived, span))
            elif span.trace_id in self._dismissed:
                continue
            elif span.trace_id not in self._known:
                self.strangers[span.operation.service] += 1
                if len(self.strays) < STRAYS or span.trace_id in self.strays:
                    self.strays.setdefault(span.trace_id, []).append(span)
            elif late := self._assembler.add([span], arrived):
                judged = self._judged.get(span.trace_id)
                self.late += judged is None or concerns(judged, late)

    def _remembered(self, trace: Trace) -> Trace:
        self._judged[trace.trace_id] = trace
        if len(self._judged) > REMEMBERED:
            self._judged.popitem(last=False)
        return trace
