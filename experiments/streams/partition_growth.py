"""More partitions for the topics: what is looked at before, and in which order they grow.

A key's partition depends on how many there are. So a request of which one half was written before
and the other one after is in two partitions, and with two workers; and a request that is read again
afterwards has its observation in another partition, where nobody knows that it was counted. Hence
nothing may be in flight: nobody reads, and all that was written has been finished and committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ldfi.errors import Conflict
from ldfi.experiments.streams.stream import Place, Topics


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """How topics stand. ``partitions``: of each that is there. ``members``: of the group of
    workers. ``ends``: the offset that the next message written will have. ``committed``: up to
    where the group has finished, where it has ever said so."""

    partitions: Mapping[str, int]
    members: int
    ends: Mapping[Place, int]
    committed: Mapping[Place, int]

    def unfinished(self) -> int:
        """Count the messages that no worker has finished."""
        return sum(max(0, end - self.committed.get(at, 0)) for at, end in self.ends.items())


@dataclass(frozen=True, slots=True)
class Growth:
    """A topic that gets more partitions."""

    topic: str
    before: int
    after: int


class TopicKeeper(Protocol):
    """Whoever may look at topics and change them."""

    def standing(self, topics: Topics) -> TopicsSeen:
        """Look how they stand. Raises StreamError."""

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions. Raises StreamError."""


def plan(topics: Topics, standing: TopicsSeen, partitions: int) -> list[Growth]:
    """Return what grows, in order: first what workers write to, last what they find requests in.
    Asked again after it broke off, the rest. Raises Conflict where it would not be safe."""
    keyed = (topics.observations, topics.metrics, topics.spans)
    missing = [name for name in keyed if name not in standing.partitions]
    if missing:
        raise Conflict(
            f"there is no topic {', '.join(missing)}: the service makes them when it starts, with "
            "as many partitions as LDFI_KAFKA_PARTITIONS says"
        )
    for name in keyed:
        if standing.partitions[name] > partitions:
            raise Conflict(
                f"{name} has {standing.partitions[name]} partitions: topics grow, and never shrink"
            )
    grown = [
        Growth(name, standing.partitions[name], partitions)
        for name in keyed
        if standing.partitions[name] < partitions
    ]
    if grown and standing.members:
        raise Conflict(
            f"{standing.members} ingest workers still read: stop them when they have finished "
            "(docs/streams.md)"
        )
    if grown and (left := standing.unfinished()):
        raise Conflict(
            f"{left} messages are not finished: stop who writes, and let the workers go on until "
            "ldfi_ingest_lag_messages and ldfi_ingest_requests_open are 0 (docs/streams.md)"
        )
    return grown


def grow(keeper: TopicKeeper, topics: Topics, planned: list[Growth], before: TopicsSeen) -> int:
    """Do what was planned; how many messages were written meanwhile, which should be none: their
    requests may be cut in two. Raises StreamError."""
    for each in planned:
        keeper.grow(each.topic, each.after)
    ends = keeper.standing(topics).ends
    return sum(max(0, end - before.ends.get(at, 0)) for at, end in ends.items())
