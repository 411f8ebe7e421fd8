"""A stream in memory: for one process, for tests of ours and of users.

It does what Kafka does where that matters: partitions by key, groups, offsets that outlive their
readers, rebalancing whenever somebody joins or leaves. A reader that is simply dropped has to be
expelled, as a broker expels who sends no heartbeat: :meth:`MemoryConsumer.die`.
"""

from __future__ import annotations

import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ldfi.errors import StreamError
from ldfi.experiments.streams.stream import Header, Listener, Message, Place

BATCH = 500
"""Messages that one poll hands over at most."""


@dataclass(eq=False)
class _Group:
    members: list[MemoryConsumer] = field(default_factory=list)
    committed: dict[Place, int] = field(default_factory=dict)


class MemoryStream:
    """Keeps everything until it goes itself. ``clock``: what the broker's clock says."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.down = False
        """While true, it is as if the broker could not be reached."""
        self._clock = clock
        self._logs: dict[str, list[list[Message]]] = {}
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)

    def ensure(self, topics: Mapping[str, int]) -> None:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        for topic, count in topics.items():
            log = self._logs.setdefault(topic, [[] for _ in range(count)])
            if len(log) != count:
                raise StreamError(f"topic {topic} has {len(log)} partitions, wanted {count}")

    def producer(self) -> MemoryProducer:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        return MemoryProducer(self)

    def group(self, name: str, topics: Sequence[str], listener: Listener) -> MemoryConsumer:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        group = self._groups[name]
        consumer = MemoryConsumer(self, group, topics, listener)
        group.members.append(consumer)
        self._rebalance(group)
        return consumer

    def reader(self, topic: str, starts: Mapping[int, int]) -> MemoryConsumer:
        """See :class:`ldfi.experiments.streams.stream.Stream`."""
        consumer = MemoryConsumer(self, None, [topic], None)
        places = [(topic, p) for p in range(len(self._log(topic)))]
        consumer.next = {place: starts.get(place[1], 0) for place in places}
        return consumer

    def messages(self, topic: str) -> list[Message]:
        """List everything in a topic, partition by partition."""
        return [message for log in self._log(topic) for message in log]

    def _log(self, topic: str) -> list[list[Message]]:
        if self.down:
            raise StreamError("the stream is down")
        try:
            return self._logs[topic]
        except KeyError:
            raise StreamError(f"there is no topic {topic!r}") from None

    def _append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> None:
        log = self._log(topic)
        number = zlib.crc32(key or b"") % len(log)
        at = len(log[number])
        log[number].append(
            Message(topic, number, at, key, value or b"", self._clock(), tuple(headers))
        )

    def _rebalance(self, group: _Group) -> None:
        """Assign all partitions again, by ranges."""
        group.members = [each for each in group.members if not each.dead]
        for each in group.members:
            each.must_revoke = True
        for each in group.members:
            each.dealt = [
                (topic, number)
                for topic in each.topics
                for number in range(len(self._logs[topic]))
                if number * len(group.members) // len(self._logs[topic])
                == group.members.index(each)
            ]


class MemoryProducer:
    """Writes at once."""

    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream
        self._failed = ""

    def send(
        self, topic: str, key: bytes | None, value: bytes, headers: Sequence[Header] = ()
    ) -> None:
        """See :class:`ldfi.experiments.streams.stream.Producer`."""
        try:
            self._stream._append(topic, key, value, headers)
        except StreamError as error:
            self._failed = str(error)

    def flush(self) -> None:
        """See :class:`ldfi.experiments.streams.stream.Producer`."""
        failed, self._failed = self._failed, ""
        if failed:
            raise StreamError(failed)

    def close(self) -> None:
        """See :class:`ldfi.experiments.streams.stream.Producer`."""


class MemoryConsumer:
    """Reads. In a group, partitions change hands within :meth:`poll`, as in Kafka: whoever is to
    get one waits until its last owner has let go of it."""

    def __init__(
        self,
        stream: MemoryStream,
        group: _Group | None,
        topics: Sequence[str],
        listener: Listener | None,
    ) -> None:
        self.topics = topics
        self.next: dict[Place, int] = {}
        self.dealt: list[Place] = []
        self.must_revoke = False
        self.dead = False
        self._stream = stream
        self._group = group
        self._listener = listener

    def poll(self, seconds: float) -> list[Message]:  # noqa: ARG002 - nothing to wait for
        """See :class:`ldfi.experiments.streams.stream.Consumer`. Never waits."""
        if self._stream.down:
            return []
        self._join()
        found: list[Message] = []
        for (topic, number), at in sorted(self.next.items()):
            new = self._stream._log(topic)[number][at : at + BATCH - len(found)]
            self.next[topic, number] = at + len(new)
            found += new
        return found

    def positions(self) -> dict[Place, int]:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        return dict(self.next)

    def ends(self) -> dict[Place, int]:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        return {place: len(self._stream._log(place[0])[place[1]]) for place in self.next}

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        if self._group is None or self.dead or not offsets.keys() <= self.next.keys():
            raise StreamError("these partitions are not ours")
        if self._stream.down:
            raise StreamError("the stream is down")
        self._group.committed.update(offsets)

    def close(self) -> None:
        """See :class:`ldfi.experiments.streams.stream.Consumer`."""
        if self._group is not None and not self.dead:
            self._revoke()
            self.die()

    def die(self) -> None:
        """Be gone without a word, and be expelled from the group."""
        self.dead, self.next = True, {}
        if self._group is not None:
            self._stream._rebalance(self._group)

    def _join(self) -> None:
        """Release our partitions, then take assigned ones as others release them."""
        if self._group is None or self._listener is None or self.dead:
            return
        if self.must_revoke:
            self._revoke()
        held = {place for each in self._group.members if each is not self for place in each.next}
        new = [place for place in self.dealt if place not in self.next]
        if new and not held & set(new):
            self.next |= {place: self._group.committed.get(place, 0) for place in new}
            self._listener.forget()

    def _revoke(self) -> None:
        self.must_revoke = False
        if self.next and self._listener is not None:
            self._listener.forget()
        self.next = {}
