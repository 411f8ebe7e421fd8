"""The ingest worker: reads spans and device metrics of its partitions, writes observations.

One of a group, in a thread or a process of its own. It may be killed at any instant: nothing that
Kafka has acknowledged is lost, because offsets are committed only behind the oldest request that
is not finished, and after its observation was acknowledged.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ldfi.errors import MessageTooLarge, StreamError, UnreadableMessage
from ldfi.experiments.domain.traffic.cut_traces import CutRequest
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.streams.dead_letters import DeadLetters
from ldfi.experiments.streams.partition import Half, PartitionWork, Patience
from ldfi.experiments.streams.stream import Message, Place, Stream, Topics
from ldfi.experiments.streams.wire import (
    HEADERS,
    Halves,
    ObservationWriter,
    read_outcome,
    write_cut,
    write_mark,
    write_report,
    write_told,
)
from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.assembly import Fate
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.killed_process import Death
from ldfi.lineage.packed_spans import traces_of
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.formats import read_message
from ldfi.lineage.readers.otlp import decode_together
from ldfi.lineage.span import Span

_log = logging.getLogger("ldfi")

GROUP = "ingest"
POLL_SECONDS = 0.2
WATCH_SECONDS = 0.25
"""How often is asked how far the partitions go."""

COMMIT_SECONDS = 1.0


@dataclass(slots=True)
class Seen:
    """What a worker has done and where it stands; read it at any time."""

    messages: int = 0
    spans: int = 0
    observations: int = 0
    dead_letters: int = 0
    lag: int = 0
    """Messages written and not yet read, in all partitions of this worker."""
    open: int = 0
    """Requests that are not finished."""
    partitions: int = 0
    watched_at: float = 0.0
    """When the broker last answered, by the worker's clock."""
    dropped: Counter[str] = field(default_factory=Counter)
    """What was read and could not be used, by reason."""

    fates: Counter[Fate] = field(default_factory=Counter)
    """What became of traces."""


class Worker:
    """``name``: of the group, without the prefix. ``clock``: our time, in seconds."""

    def __init__(
        self,
        stream: Stream,
        topics: Topics,
        patience: Patience,
        *,
        believes_root: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seen = Seen()
        self._gone: Counter[str] = Counter()
        self._topics = topics
        self._halves: dict[str, Half] = {topics.spans: "spans", topics.metrics: "metrics"}
        self._patience = patience
        self._believes_root = believes_root
        self._clock = clock
        self._works: dict[int, PartitionWork] = {}
        self._expected = Expectations()
        self._fates: Counter[Fate] = Counter()
        self._writer = ObservationWriter()
        self._dead_letters = DeadLetters(topics.dead_letters)
        self._next_watch = self._next_commit = 0.0
        self._read_at = self._settled_at = clock()
        self._producer = stream.producer()
        try:
            self._consumer = stream.group(topics.group(GROUP), [topics.spans, topics.metrics], self)
        except BaseException:
            self._producer.close()
            raise

    def step(self, seconds: float = POLL_SECONDS) -> None:
        """Read for so many seconds at most, and process what is due."""
        messages = self._consumer.poll(seconds)
        now = self._clock()
        if messages:
            self._read_at = now
        for message, batch in zip(messages, self._decoded(messages), strict=True):
            self._take(message, batch, now)
        if now >= self._next_watch:
            self._next_watch = now + WATCH_SECONDS
            self._watch(now)
        for work in self._works.values():
            work.advance()
        if self._write() and now >= self._next_commit:
            self._next_commit = now + COMMIT_SECONDS
            self._commit()

    def run(self, stopped: Callable[[], bool]) -> None:
        """Work until stopped, then hand over. What the broker refuses is tried again."""
        try:
            while not stopped():
                try:
                    self.step()
                except StreamError as error:
                    _log.warning("ingest: %s", error)
        except BaseException:
            self.leave()  # or our partitions would be nobody's
            raise
        self.close()

    def close(self) -> None:
        """Write what is finished, commit, and leave the group."""
        try:
            if self._write():
                self._commit()
        finally:
            self.leave()

    def leave(self) -> None:
        """Leave the group at once: the next owner reads again what is not committed."""
        for each in (self._consumer, self._producer):
            with suppress(StreamError):
                each.close()

    def stalled(self) -> float:
        """Return for how many seconds messages have waited unread, or could be neither written
        nor committed."""
        return max(0.0, self._clock() - min(self._read_at, self._settled_at))

    def silent(self) -> float:
        """Say for how many seconds the brokers have not answered."""
        return self._clock() - self.seen.watched_at

    def drops(self) -> Counter[str]:
        """Count everything that was read and could not be used, by reason."""
        return sum((work.drops() for work in self._works.values()), Counter(self._gone))

    def fates(self) -> Counter[Fate]:
        """Return the number of traces by fate."""
        return sum((work.fates() for work in self._works.values()), Counter(self._fates))

    def forget(self) -> None:
        """Forget the partitions that change hands: their owner reads again what is not finished."""
        for work in self._works.values():
            self._gone += work.drops()
            self._fates += work.fates()
        self._works.clear()

    def _work(self, number: int) -> PartitionWork:
        work = self._works.get(number)
        if work is None:
            work = self._works[number] = PartitionWork(
                self._patience, self._believes_root, self._expected
            )
        return work

    def _decoded(self, messages: Sequence[Message]) -> list[Batch | None]:
        """Read what the extension can read of these, all at once; None for the others."""
        bodies = [m.value if m.topic == self._topics.spans else b"" for m in messages]
        try:
            return decode_together(bodies)
        except Exception:  # noqa: BLE001 - whose fault it is comes out when each is read by itself
            return [None] * len(bodies)

    def _take(self, message: Message, batch: Batch | None, now: float) -> None:
        half, work = self._halves[message.topic], self._work(message.partition)
        work.read(half, message.offset, message.time, now)
        self.seen.messages += 1
        try:
            if half == "spans":
                trace_id, spans = _spans(message, batch)
                self.seen.spans += len(spans)
                work.take_spans(trace_id, spans, message.offset)
            else:
                outcome = read_outcome(message.value)
                _check_key(message, outcome.trace_id)
                work.take_outcome(outcome, message.offset)
        except (UnreadableTraces, UnreadableMessage) as error:
            self._bury(message, str(error))
        except Exception as error:  # noqa: BLE001 - whatever is in it must not hold up the others
            self._bury(message, repr(error))

    def _bury(self, message: Message, reason: str) -> None:
        self._dead_letters.bury(message, reason)
        self.seen.dead_letters = self._dead_letters.buried

    def _watch(self, now: float) -> None:
        """See how far the partitions go, and let time pass in those that are read to the end."""
        try:
            ends = self._consumer.ends()
        except StreamError as error:
            _log.warning("ingest: %s", error)
            return
        at = self._consumer.positions()
        self.seen.lag = sum(max(0, end - at.get(place, 0)) for place, end in ends.items())
        self.seen.partitions = len({number for _, number in at})
        self.seen.dropped = self.drops()
        self.seen.fates = self.fates()
        self.seen.open = sum(map(len, self._works.values()))
        self.seen.watched_at = now
        if not self.seen.lag:
            self._read_at = now
        for (topic, number), end in ends.items():
            if at.get((topic, number), -1) >= end:  # nothing is known of one that moved meanwhile
                self._work(number).idle(self._halves[topic], end, now)

    def _write(self) -> bool:
        """Write joined requests; return whether everything written so far is acknowledged."""
        works = dict(self._works)
        joined = {number: work.joined() for number, work in works.items()}
        for observation, halves in _flat(joined):
            key = observation.lineage.trace_id.encode()
            value = self._writer.write(observation, halves)
            try:
                self._producer.send(self._topics.observations, key, value, HEADERS)
            except MessageTooLarge:
                self._gone["observation_too_large"] += 1
        cut = {number: list(work.cut) for number, work in works.items()}
        marked = {number: list(work.marks) for number, work in works.items()}
        told = {number: list(work.told) for number, work in works.items()}
        for trace_id, value in _other_records(marked, told, cut):
            self._producer.send(self._topics.observations, trace_id.encode(), value, HEADERS)
        unseen = {number: list(work.unseen) for number, work in works.items()}
        for trace_id, value in (each for many in unseen.values() for each in many):
            self._producer.send(self._topics.observations, trace_id.encode(), value, HEADERS)
        said = {number: list(work.reports) for number, work in works.items()}
        for trace_id, report in (each for many in said.values() for each in many):
            value = write_report(report)
            self._producer.send(self._topics.observations, trace_id.encode(), value, HEADERS)
        letters = self._dead_letters.send(self._producer)
        try:
            self._producer.flush()
        except StreamError as error:
            _log.warning("ingest: %s; it is written once more", error)
            return False
        self._dead_letters.acknowledged(letters)
        for number, done in joined.items():
            self.seen.observations += len(done)
            works[number].acknowledged(each.lineage.trace_id for each, _ in done)
            del works[number].marks[: len(marked[number])]
            del works[number].told[: len(told[number])]
            del works[number].cut[: len(cut[number])]
            del works[number].reports[: len(said[number])]
            del works[number].unseen[: len(unseen[number])]
        return True

    def _commit(self) -> None:
        offsets: dict[Place, int] = {}
        for number, work in self._works.items():
            for topic, half in self._halves.items():
                safe = work.safe(half)
                if safe is not None and safe != work.committed[half]:
                    offsets[topic, number] = safe
        if offsets:
            try:
                self._consumer.commit(offsets)
            except StreamError as error:
                _log.warning("ingest: not committed: %s", error)
                return
        self._settled_at = self._clock()
        for (topic, number), offset in offsets.items():
            if number in self._works:  # or it has been taken from us in the meantime
                self._works[number].committed[self._halves[topic]] = offset


def _spans(message: Message, batch: Batch | None) -> tuple[str, Sequence[Span]]:
    """Read the spans of a message, where nobody has yet: all of one trace, whose id is its key."""
    if not message.value:
        raise UnreadableMessage("it is empty")
    batch = read_message(message.value) if batch is None else batch
    if not batch.spans:
        raise UnreadableMessage(f"no spans, {batch.rejected} without usable ids or times")
    trace_id, *others = traces_of(batch.spans)
    _check_key(message, trace_id)
    if others:
        raise UnreadableMessage("spans of several traces: turn on partition_traces_by_id")
    return trace_id, batch.spans


def _check_key(message: Message, trace_id: str) -> None:
    """Check that the key is the trace id: else a request's halves would be in different
    partitions."""
    if message.key != trace_id.encode():
        raise UnreadableMessage(f"its key is {message.key!r}, not the trace id {trace_id}")


def _other_records(
    marked: dict[int, list[tuple[str, Mark, int]]],
    told: dict[int, list[tuple[str, str, list[Death]]]],
    cut: dict[int, list[CutRequest]],
) -> Iterator[tuple[str, bytes]]:
    """Return trace id and bytes of the records that are sent beside observations."""
    for many in marked.values():
        yield from ((trace_id, write_mark(mark, at)) for trace_id, mark, at in many)
    for whole in told.values():
        yield from ((trace_id, write_told(name, died)) for trace_id, name, died in whole)
    for holes in cut.values():
        yield from ((each.trace_id, write_cut(each)) for each in holes)


def _flat(
    joined: dict[int, list[tuple[Observation, Halves]]],
) -> Iterator[tuple[Observation, Halves]]:
    for each in joined.values():
        yield from each
