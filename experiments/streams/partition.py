"""The work on one partition: spans and device metrics in, observations out, and how far it is safe.

Both topics have the same partitions and keys, so everything of a request is here. Nothing in here
outlives its owner. Whoever takes over reads again from the *safe* offsets, which stand behind the
oldest message of a request that is not finished: joined and acknowledged, or given up. That next
owner may see the rest of a request whose beginning is finished, and may finish a request once more;
who counts observations leaves out those that it knows (:mod:`ldfi.experiments.streams.intake`).

No clock in here but the logs' own (:mod:`ldfi.experiments.streams.log_time`).
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from ldfi.experiments.domain.traffic.cut import CutRequest, cut_of, proves
from ldfi.experiments.domain.traffic.observation import Observation, Outcome, root_outcome, worst
from ldfi.experiments.domain.traffic.waiting import Waiting
from ldfi.experiments.streams.wire import Halves, write_event, write_hole
from ldfi.fit.protocol.mark import Mark
from ldfi.fit.protocol.scenario import PREFIX
from ldfi.lineage.assembly import Assembler, Fate, reopens
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.killed import Death, deaths, marks
from ldfi.lineage.lineage import Lineage, learn, unusable
from ldfi.lineage.sightings import HOLES, arrival_of, loose_of
from ldfi.lineage.span import Span, Trace

_log = logging.getLogger("ldfi")

Half = Literal["spans", "metrics"]

MARKS: Final = 4
"""So many spans at most come with a mark, which is flushed by itself: of more nobody looks."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds of the log. ``quiet``: without a span, until a trace is whole. ``missing``: without a
    span, until what it misses is given up. ``max_age``: until it is given up whatever goes on in
    it. ``other_half``: how long one half of a request waits for the other; ``outcome``: the same
    for the device's half, where its trace may take longer. ``traces``, ``halves``: how many may be
    open at most, for each partition."""

    quiet: float = 2.0
    max_age: float = 60.0
    other_half: float = 30.0
    traces: int = 50_000
    halves: int = 100_000
    missing: float | None = None
    outcome: float | None = None

    @classmethod
    def of(cls, waiting: Waiting) -> Self:
        """Return the patience that the times of the service give."""
        return cls(
            quiet=waiting.quiet,
            max_age=waiting.request,
            other_half=waiting.report,
            missing=waiting.patience,
            outcome=waiting.outcome,
        )

    @property
    def step(self) -> float:
        """Return the most seconds that a pause of the log counts: writers may have been unable
        to."""
        return self.quiet / 2


class _Offsets:
    """Of one topic: the messages of requests that may not be finished, first and last of each."""

    def __init__(self) -> None:
        self.next: int | None = None
        self._of: OrderedDict[str, list[int]] = OrderedDict()

    def take(self, trace_id: str, offset: int) -> None:
        self._of.setdefault(trace_id, [offset, offset])[1] = offset

    def last(self, trace_id: str) -> int:
        found = self._of.get(trace_id)
        return found[1] if found is not None else -1

    def forget(self, trace_id: str) -> None:
        self._of.pop(trace_id, None)

    def oldest(self) -> Iterator[tuple[str, int]]:
        """Name the request whose first message is oldest, again and again while it is forgotten."""
        while self._of:
            trace_id, (first, _) = next(iter(self._of.items()))
            yield trace_id, first


class PartitionWork:
    """What an owner of a partition has in memory.

    With ``believes_root`` outcomes are read from root spans and nobody waits for devices.
    ``expected``: what is known of the system, from other partitions too.
    """

    def __init__(
        self,
        patience: Patience,
        believes_root: bool = False,
        expected: Expectations | None = None,
    ) -> None:
        self.dropped: Counter[str] = Counter()
        """Requests that were given up, by reason; :meth:`drops` counts spans, too."""
        self._patience = patience
        self._believes_root = believes_root
        self._times: dict[Half, LogTime] = {
            "spans": LogTime(patience.step),
            "metrics": LogTime(patience.step),
        }
        self._offsets: dict[Half, _Offsets] = {"spans": _Offsets(), "metrics": _Offsets()}
        self.committed: dict[Half, int] = {"spans": 0, "metrics": 0}
        """From where a next owner will begin; 0 where nobody knows, which is always safe."""
        self._assembler = Assembler(
            patience.quiet,
            patience.max_age,
            patience.traces,
            patience=patience.missing,
            expected=Expectations() if expected is None else expected,
        )
        self._lineages: OrderedDict[str, tuple[float, Lineage]] = OrderedDict()
        self._outcomes: OrderedDict[str, tuple[float, Outcome]] = OrderedDict()
        self._joined: dict[str, Observation] = {}
        self.cut: list[CutRequest] = []
        """Requests under experiment whose trace had a hole, not written yet. Should we die before,
        nobody counts them."""
        self.marks: list[tuple[str, Mark, int]] = []
        """Faults that are about to fire, or would, not written yet: trace id, mark, when."""
        self.told: list[tuple[str, str, list[Death]]] = []
        """Traces that are whole of which a mark had come, not written yet: trace id, experiment,
        processes that died."""
        self.reports: list[tuple[str, str]] = []
        """What injectors said that they can reach, not written yet: trace id, report."""
        self.unseen: list[tuple[str, bytes]] = []
        """What requests' traces do not tell, not written yet: trace id, and the message."""
        self._done: OrderedDict[str, None] = OrderedDict()
        self._unusable: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        """Count the requests that are neither finished nor given up."""
        return len(self._assembler) + len(self._lineages) + len(self._outcomes) + len(self._joined)

    def read(self, half: Half, offset: int, written: float, now: float) -> None:
        """Note that a message was read, whatever it holds; call it before its content is taken."""
        self._times[half].read(written, now)
        self._offsets[half].next = offset + 1

    def idle(self, half: Half, end: int, now: float) -> None:
        """Note that everything before offset ``end`` has been read, and nothing is written
        beyond."""
        self._times[half].idle(now)
        self._offsets[half].next = end

    def take_spans(self, trace_id: str, spans: Sequence[Span], offset: int) -> None:
        """Take spans of one trace."""
        now = self._times["spans"].now
        if len(spans) <= MARKS:
            self.marks += ((trace_id, mark, span.start) for span, mark in marks(spans))
        late = self._assembler.add(spans, now)
        _, waiting = self._lineages.get(trace_id, (now, None))
        if late and waiting is not None and reopens(waiting.trace, late):
            del self._lineages[trace_id]
            self._assembler.reopen(waiting.trace, late, now)
        if trace_id in self._assembler or trace_id in self._lineages or trace_id in self._joined:
            self._offsets["spans"].take(trace_id, offset)

    def take_outcome(self, outcome: Outcome, offset: int) -> None:
        """Take a device's report."""
        trace_id = outcome.trace_id
        if trace_id in self._done:
            self.dropped["join_duplicate"] += 1
            return
        if trace_id in self._joined or trace_id in self._outcomes:
            self._take_another(outcome)
            return
        if trace_id in self._unusable:
            self._give_up_outcome(trace_id)
            return
        self._offsets["metrics"].take(trace_id, offset)
        waiting = self._lineages.pop(trace_id, None)
        if waiting is not None:
            self._joined[trace_id] = Observation(waiting[1], outcome)
        else:
            self._outcomes[trace_id] = (self._times["spans"].now, outcome)

    def _take_another(self, outcome: Outcome) -> None:
        """Take one more report on a request that is not written yet: the worse counts."""
        joined = self._joined.get(outcome.trace_id)
        since, before = (0.0, joined.outcome) if joined else self._outcomes[outcome.trace_id]
        told = worst((before, outcome))
        same = before.badness == outcome.badness
        self.dropped["join_duplicate" if same else "join_contradiction"] += 1
        if joined is not None:
            self._joined[outcome.trace_id] = Observation(joined.lineage, told)
        else:
            self._outcomes[outcome.trace_id] = since, told

    def advance(self) -> None:
        """Finish traces that are whole, and give up those that waited too long."""
        for trace in self._assembler.pop(self._times["spans"].now):
            try:
                self._take_trace(trace)
            except Exception:  # noqa: BLE001 - one bad trace must not hold up the others
                self.dropped["trace_unreadable"] += 1
                about = {"trace": trace.trace_id}
                _log.exception("nothing can be learned from trace %s", trace.trace_id, extra=about)
        self._expire()

    def joined(self) -> list[tuple[Observation, Halves]]:
        """Return what is to be written and acknowledged; all of it, until :meth:`acknowledged`."""
        spans, metrics = self._offsets["spans"], self._offsets["metrics"]
        committed = (self.committed["spans"], self.committed["metrics"])
        return [
            (observation, Halves(spans.last(trace_id), metrics.last(trace_id), *committed))
            for trace_id, observation in self._joined.items()
        ]

    def acknowledged(self, trace_ids: Iterable[str]) -> None:
        """Forget the observations of these requests, which are where they cannot be lost."""
        for trace_id in trace_ids:
            del self._joined[trace_id]
            self._done[trace_id] = None
        while len(self._done) > self._patience.halves:
            self._done.popitem(last=False)

    def safe(self, half: Half) -> int | None:
        """Find the offset up to which everything is finished: a next owner may begin there. None
        where nothing is known yet."""
        offsets = self._offsets[half]
        for trace_id, first in offsets.oldest():
            if self._unfinished(half, trace_id):
                return first
            offsets.forget(trace_id)
        return offsets.next

    def drops(self) -> Counter[str]:
        """Count everything that was read and could not be used, by reason."""
        spans = {f"span_{reason}": count for reason, count in self._assembler.dropped.items()}
        return self.dropped + Counter(spans)

    def fates(self) -> Counter[Fate]:
        """Return the number of traces by fate."""
        return self._assembler.fates

    def _unfinished(self, half: Half, trace_id: str) -> bool:
        if trace_id in self._joined:
            return True
        if half == "metrics":
            return trace_id in self._outcomes
        return trace_id in self._assembler or trace_id in self._lineages

    def _take_trace(self, trace: Trace) -> None:
        lineage = learn(trace)
        if lineage is not None and lineage.reach:
            self.reports.append((trace.trace_id, lineage.reach))
        if lineage is not None and lineage.is_report:
            return
        if lineage is not None and lineage.experiment.startswith(PREFIX):
            self._take_replayed(lineage)
            return
        reason = unusable(trace, lineage)
        if reason:
            self.dropped[reason] += 1
            if lineage is not None and reason in HOLES:
                self.unseen.append((trace.trace_id, write_hole(lineage.service, lineage.features)))
            cut = cut_of(trace, lineage)
            if cut is not None:
                self.cut.append(cut)
        if lineage is not None and (not reason or proves(lineage)):
            if lineage.experiment and marks(trace.spans):
                self.told.append((trace.trace_id, lineage.experiment, deaths(trace.spans)))
            self._take_lineage(lineage)
            return
        if trace.trace_id in self._outcomes:
            self._give_up_outcome(trace.trace_id)
        elif trace.trace_id not in self._done:
            self._unusable[trace.trace_id] = None
            if len(self._unusable) > self._patience.halves:
                self._unusable.popitem(last=False)

    def _take_replayed(self, lineage: Lineage) -> None:
        """Take a request that an engineer replayed: no device reports it, and its outcome is not
        counted."""
        self._outcomes.pop(lineage.trace_id, None)
        if lineage.trace_id not in self._done:
            self._joined[lineage.trace_id] = Observation(lineage, root_outcome(lineage))

    def _give_up_outcome(self, trace_id: str) -> None:
        """Drop a device's report on a trace that has a hole: it is finished."""
        self._outcomes.pop(trace_id, None)
        self._unusable.pop(trace_id, None)
        self._done[trace_id] = None
        self.dropped["join_trace_unusable"] += 1

    def _take_lineage(self, lineage: Lineage) -> None:
        trace_id = lineage.trace_id
        if trace_id in self._done:
            self.dropped["join_duplicate"] += 1
            return
        waiting = self._outcomes.pop(trace_id, None)
        if waiting is not None:
            self._joined[trace_id] = Observation(lineage, waiting[1])
        elif self._believes_root:
            self._joined[trace_id] = Observation(lineage, root_outcome(lineage))
        else:
            self._lineages[trace_id] = (self._times["metrics"].now, lineage)

    def _expire(self) -> None:
        """Give up on halves whose patience is over, by the time of the *other* topic, from which
        their half is missing."""
        patience = self._patience
        before = self._times["metrics"].now - patience.other_half
        while self._lineages:
            trace_id, (since, lineage) = next(iter(self._lineages.items()))
            if since >= before and len(self._lineages) <= patience.halves:
                break
            del self._lineages[trace_id]
            self.dropped["join_no_outcome"] += 1
            events = loose_of(lineage) or arrival_of(lineage)
            self.unseen += [(trace_id, write_event(event)) for event in events]
        wait = patience.other_half if patience.outcome is None else patience.outcome
        before = self._times["spans"].now - wait
        while self._outcomes:
            trace_id, (since, outcome) = next(iter(self._outcomes.items()))
            if since >= before and len(self._outcomes) <= patience.halves:
                break
            del self._outcomes[trace_id]
            if trace_id in self._assembler:  # its spans are here and not yet whole: it is not late
                self._outcomes[trace_id] = (self._times["spans"].now, outcome)
                if len(self._outcomes) > patience.halves:
                    break
                continue
            self.dropped["join_unknown_trace"] += 1


# The time of a log: how long a partition has been quiet, as far as somebody who reads it can say.
#
# A trace is whole when nothing more of it has been written for a while. A reader cannot tell that
# by its own clock: it may be behind, or the broker away, and then everything is quiet. So time
# passes
#
# - by what is read: from the time at which one message was written to that of the next; - by our
# clock, but only when we know that there is nothing that we have not read.
#
# Never by more than a *step* at once: when nobody could write for a minute, that minute was not
# quiet at all. Only differences are used, so no two clocks are ever compared.
class LogTime:
    """The time of one partition, in seconds since we began to read it."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step
        self._written: float | None = None
        self._ours: float | None = None

    def read(self, written: float, ours: float) -> None:
        """Note that a message was read that was written then, by the broker's clock; it is
        ``ours`` now."""
        if self._written is not None:
            self._pass(written - self._written)
        self._written = max(written, self._written or written)
        self._ours = ours

    def idle(self, ours: float) -> None:
        """Note that by our clock it is ``ours``, and everything that was written has been read."""
        if self._ours is not None:
            self._pass(ours - self._ours)
            if self._written is not None:
                self._written += max(0.0, ours - self._ours)
        self._ours = ours

    def _pass(self, seconds: float) -> None:
        self.now += min(max(0.0, seconds), self._step)
