"""What a stream is to us: topics of keyed messages, in partitions, read by offset.

Two things stand behind it: :mod:`ldfi.experiments.streams.memory` and
:mod:`ldfi.experiments.streams.kafka`. Messages of one key are in one partition, in the order in
which they were written. Whoever reads says how far it has come; what a group has committed is where
its next reader begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Place = tuple[str, int]
"""A topic and one of its partitions."""

Header = tuple[str, bytes]


class Message(NamedTuple):
    """One message. ``time``: when the broker wrote it, Unix seconds by its clock."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    time: float
    headers: Sequence[Header] = ()


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of our topics. All begin with the same ``prefix``, so that sites can share."""

    prefix: str = "ldfi"

    @property
    def spans(self) -> str:
        """OTLP requests (protobuf), as the Collector's Kafka exporter writes them; or JSON."""
        return f"{self.prefix}.spans"

    @property
    def metrics(self) -> str:
        """Device metrics (JSON)."""
        return f"{self.prefix}.device-metrics"

    @property
    def observations(self) -> str:
        """Requests of which both halves are known."""
        return f"{self.prefix}.observations"

    @property
    def events(self) -> str:
        """Return the topic of the audit, as it is written."""
        return f"{self.prefix}.events"

    @property
    def dead_letters(self) -> str:
        """Return the topic of unreadable messages; the reason is a header."""
        return f"{self.prefix}.dead-letters"

    def of_namespace(self, name: str) -> Topics:
        """Return those of a namespace; these here are the default one's, which has no name."""
        return Topics(f"{self.prefix}.{name}") if name else self

    def group(self, name: str) -> str:
        """Name a group of readers."""
        return f"{self.prefix}.{name}"

    def retention(self, *, traffic: float, events: float, dead_letters: float) -> dict[str, float]:
        """Return for how many seconds each topic keeps messages. Spans, metrics and observations
        go together: each is of use only with the others."""
        keyed = dict.fromkeys((self.spans, self.metrics, self.observations), traffic)
        return {**keyed, self.events: events, self.dead_letters: dead_letters}

    def partitions(self, count: int) -> dict[str, int]:
        """Return how many partitions each topic has. The halves of a request must meet in one
        worker, so spans and metrics have the same number; observations too, which keeps them in
        order."""
        keyed = dict.fromkeys((self.spans, self.metrics, self.observations), count)
        return {**keyed, self.events: 1, self.dead_letters: 1}


class Producer(Protocol):
    """Writes messages. Not acknowledged before :meth:`flush` has returned."""

    def send(
        self, topic: str, key: bytes | None, value: bytes, headers: Sequence[Header] = ()
    ) -> None:
        """Write a message, some time soon. Raises StreamError when that cannot even begin, and
        MessageTooLarge when it never will."""

    def flush(self) -> None:
        """Wait until everything sent is acknowledged. Raises StreamError when something is not:
        it may be there all the same."""

    def close(self) -> None:
        """Give up the connection. What was not flushed may be lost."""


class Listener(Protocol):
    """Is told from within :meth:`Consumer.poll` that partitions change hands."""

    def forget(self) -> None:
        """Forget the state of all partitions; reading goes on from what is committed. The stream
        must not be used in here."""


class Consumer(Protocol):
    """Reads messages."""

    def poll(self, seconds: float) -> list[Message]:
        """Return the next messages, oldest first in each partition; none after so many seconds."""

    def positions(self) -> dict[Place, int]:
        """Return for each partition that is ours the offset of the message that comes next."""

    def ends(self) -> dict[Place, int]:
        """Return for each partition that is ours the offset that the next message written will
        have.

        Asks the broker. Raises StreamError when it does not answer.
        """

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Let the group's next reader begin here. Raises StreamError when that did not succeed,
        also because we are expelled from the group."""

    def close(self) -> None:
        """Leave. Commits nothing."""


class Stream(Protocol):
    """Where messages are kept."""

    def ensure(self, topics: Mapping[str, int]) -> None:
        """Create missing topics with so many partitions. Raises StreamError, also if a topic has
        another number of partitions."""

    def producer(self) -> Producer:
        """Open a producer. Raises StreamError."""

    def group(self, name: str, topics: Sequence[str], listener: Listener) -> Consumer:
        """Open a reader among others of this group. Partitions of the same number of all these
        topics are always one reader's. A group begins with the oldest message. Raises
        StreamError."""

    def reader(self, topic: str, starts: Mapping[int, int]) -> Consumer:
        """Open a reader of all partitions by itself, from these offsets on or from the oldest
        message there is. Raises StreamError."""
