"""The intake: observations into what the scheduler knows, each request exactly once.

A worker that dies is followed by another one that writes some observations again, and we may die
ourselves. Three things keep the counts right.

**What comes twice is recognised by its trace id.** An observation says where its messages stand in
the stream and from where a next worker would read. Once that has gone beyond it nobody can write it
again, so its id is forgotten: the ids remembered are those of requests that were in the hands of
workers, and the newest :data:`FLOOR` of each partition, for what cannot be known so exactly (a
device that reports twice, a worker that slept while others went on).

**Every class document says up to which offset it counts.** Documents are kept one by one, whenever
there is a reason, and need not agree: after a restart a class leaves out what it has counted.

**The position is written last.** It is noted first, then every class that has counted anything is
kept, then the position, with the last of them in one transaction. Requests that have no class yet
hold it back, and so do the ids remembered: reading begins where they can be rebuilt from the stream
itself, whatever had been counted.

So a request is counted once: unless its entry had not been given a class for :data:`HELD` requests
(then it may be forgotten in a crash), or the stream itself forgets, or somebody moves its offsets
by hand.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable

from ldfi.errors import StreamError, UnreadableMessage
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import classes, stream_positions
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.stream_positions import Position
from ldfi.experiments.streams.dead_letters import DeadLetters
from ldfi.experiments.streams.stream import Message, Producer, Stream, Topics
from ldfi.experiments.streams.wire import (
    Halves,
    ObservationReader,
    read_cut,
    read_event,
    read_hole,
    read_mark,
    read_report,
    read_told,
)

_log = logging.getLogger("ldfi")

KEEP_SECONDS = 5.0
"""How often is begun to put on record how far we are."""

LOOK_SECONDS = 0.5
"""How often is asked how far we are behind."""

KEPT_AT_ONCE = 5
"""Classes put on record in one step: all at once would hold up everything else."""

FLOOR = 20_000
HELD = 50_000


class _Known:
    """Of one partition: the requests that may come once more, the oldest first."""

    def __init__(self, floor: int) -> None:
        self._floor = floor
        self._ids: OrderedDict[str, tuple[int, Halves]] = OrderedDict()
        self._from = (0, 0)

    def see(self, trace_id: str, offset: int, halves: Halves) -> bool:
        """Note a request; whether it is new."""
        new = trace_id not in self._ids
        self._ids[trace_id] = (offset, halves)
        self._ids.move_to_end(trace_id)
        spans, metrics = self._from
        self._from = (max(spans, halves.spans_from), max(metrics, halves.metrics_from))
        self._forget()
        return new

    def oldest(self, otherwise: int) -> int:
        """Return the offset from which everything has to be read again to know what is known
        here."""
        return next(iter(self._ids.values()))[0] if self._ids else otherwise

    def _forget(self) -> None:
        spans, metrics = self._from
        while len(self._ids) > self._floor:
            _, halves = next(iter(self._ids.values()))
            if halves.spans >= spans or halves.metrics >= metrics:
                break
            self._ids.popitem(last=False)


class Intake:
    """Reads observations and gives them to the engine; in the process of the scheduler."""

    def __init__(
        self, stream: Stream, topics: Topics, db: Database, engine: Engine, floor: int = FLOOR
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self.lag = 0
        """Observations written and not yet taken in, when the broker last said so."""
        self._topic = topics.observations
        self._stream = stream
        self._dead_letters = DeadLetters(topics.dead_letters)
        self._producer: Producer | None = None
        self._db = db
        self._engine = engine
        self._floor = floor
        self._reader = ObservationReader()
        self._known: dict[int, _Known] = {}
        self._next: dict[int, int] = {}
        self._next_keep = self._next_look = 0.0
        self._noted: dict[int, Position] | None = None
        self._unkept: deque[str] = deque()
        with db.read() as session:
            self._kept = stream_positions.load(session, self._topic)
        self._counted = {name: dict(k.counted) for name, k in engine.catalogue.classes.items()}
        starts = {number: at.read_from for number, at in self._kept.items()}
        self._consumer = stream.reader(self._topic, starts)

    def read(self, seconds: float) -> list[Message]:
        """Read the next observations. May be called in a thread of its own. Raises StreamError."""
        self._send_dead_letters()
        messages = self._consumer.poll(seconds)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            try:
                self._look()
            except StreamError:
                if not messages:
                    raise  # else they would be lost: we have read past them
        return messages

    def take(self, messages: Iterable[Message], now: float) -> None:
        """Count what was read, and note the position. ``now``: Unix seconds."""
        for message in messages:
            self._next[message.partition] = message.offset + 1
            try:
                self._take(message, now)
            except UnreadableMessage as error:
                self._bury(message, "observation_unreadable", str(error))
            except Exception as error:  # noqa: BLE001 - one request must not hold up the others
                self._bury(message, "observation_refused", repr(error))
        if self._noted is None and now >= self._next_keep:
            self._next_keep = now + KEEP_SECONDS
            self._note()
        if self._noted is not None:
            self._keep(now, KEPT_AT_ONCE)

    def keep(self, now: float) -> None:
        """Put on record how far we are, now and as a whole, unless there are changes of classes
        that are not on record themselves."""
        self._note()
        if self._noted is not None:
            self._keep(now, len(self._unkept))

    def close(self) -> None:
        """Stop reading."""
        self._send_dead_letters()
        try:
            self._consumer.close()
        finally:
            if self._producer is not None:
                self._producer.close()

    def _send_dead_letters(self) -> None:
        """Write unreadable messages as dead letters, unless the brokers are away: then later."""
        if not self._dead_letters:
            return
        try:
            if self._producer is None:
                self._producer = self._stream.producer()
            sent = self._dead_letters.send(self._producer)
            self._producer.flush()
        except StreamError as error:
            _log.warning("dead letters: %s; they are written later", error)
        else:
            self._dead_letters.acknowledged(sent)

    def _bury(self, message: Message, why: str, reason: str) -> None:
        kept = self._kept.get(message.partition)
        if kept is not None and message.offset < kept.next_offset:
            return  # in an earlier life already
        self.dropped[why] += 1
        self._dead_letters.bury(message, reason)
        _log.warning("%s/%d/%d: %s", self._topic, message.partition, message.offset, reason[:500])

    def _look(self) -> None:
        at = self._consumer.positions()
        self.lag = sum(end - at.get(place, end) for place, end in self._consumer.ends().items())

    def _take(self, message: Message, now: float) -> None:
        number, offset = message.partition, message.offset
        if self._take_other(message, now):
            return
        observation, halves = self._reader.read(message.value, message.headers)
        known = self._known.setdefault(number, _Known(self._floor))
        new = known.see(observation.lineage.trace_id, offset, halves)
        kept = self._kept.get(number)
        if kept is not None and offset < kept.next_offset:
            return  # counted in an earlier life: read once more only to know it
        if new:
            self._engine.receive_observation(observation, now, (number, offset))
        else:
            self.dropped["observation_duplicate"] += 1

    def _take_other(self, message: Message, now: float) -> bool:
        """Take a message of the observations' topic that is another record; False for observations.

        Records of experiments that are over are ignored.
        """
        value, trace_id = message.value, (message.key or b"").decode("ascii", "replace")
        scheduler = self._engine.scheduler
        if (cut := read_cut(value, trace_id)) is not None:
            scheduler.lose(*cut)
        elif (marked := read_mark(value)) is not None:
            scheduler.mark(trace_id, *marked, now)
        elif (told := read_told(value)) is not None:
            scheduler.settle(told[0], trace_id, told[1])
        elif (event := read_event(value)) is not None:
            self._engine.receive_event(event)
        elif (hole := read_hole(value)) is not None:
            self._engine.receive_hole(*hole)
        elif (report := read_report(value)) is not None:
            self._engine.receive_report(report, now)
        else:
            return False
        return True

    def _note(self) -> None:
        """Note the position, and what has to be on record before it is committed."""
        catalogue = self._engine.catalogue
        if catalogue.unsettled:
            return  # the scheduler keeps those first
        uncounted = catalogue.uncounted()
        self._noted = {}
        for number, end in self._next.items():
            begin = max(min(uncounted.get(number, end), end), end - HELD)
            kept = self._kept.get(number)
            begin = max(begin, kept.next_offset if kept else 0)
            known = self._known.get(number)
            oldest = known.oldest(begin) if known else begin
            self._noted[number] = Position(begin, min(begin, oldest))
        self._unkept = deque(
            name
            for name, known in catalogue.classes.items()
            if known.counted != self._counted.get(name)
        )

    def _keep(self, now: float, most: int) -> None:
        """Put some classes on record, and with the last of them the position that was noted."""
        catalogue = self._engine.catalogue
        if catalogue.unsettled or self._noted is None:
            return
        names = [self._unkept.popleft() for _ in range(min(most, len(self._unkept)))]
        known = {name: catalogue.classes[name] for name in names if name in catalogue.classes}
        done = not self._unkept
        try:
            with self._db.change(now) as change:
                for name, each in known.items():
                    classes.save(change, name, each.version, each.to_json())
                if done:
                    stream_positions.save(change, self._topic, self._noted)
        except Exception:
            self._noted = None  # begin again: none of it is on record
            raise
        self._counted |= {name: dict(each.counted) for name, each in known.items()}
        if done:
            self._noted = None
