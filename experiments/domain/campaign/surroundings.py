"""What every lesson of a class is seen against: its traffic, and what all lessons show together.

A lesson says what fired and what was relied on. What follows from that depends on more: which
points share a system, what stands behind what, which callers give up. All of that grows with
traffic and with later lessons, so it is gathered first, and lessons are learned against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.topology import Topology


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Equal ones let the same lessons mean the same."""

    supports: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """What the traffic relies on: faults, and what had failed by itself."""
    called: frozenset[str]
    """Every point that a request in which nothing failed may call."""
    points: frozenset[str]
    """Every point seen, in traffic or in experiments."""
    implications: frozenset[tuple[str, str]]
    """Pairs (delay, error) of points whose callers were seen to give up."""
    unlike: frozenset[str]
    """Points at which kinds that are assumed to be alike are not."""
    known_as: tuple[int, int]
    """Which topology, and how often it has changed."""
    topology: Topology = field(compare=False)
    traces: tuple[str, ...] = field(compare=False)
    """An example of each of the supports."""

    @property
    def given_up(self) -> frozenset[str]:
        """Points whose callers do not wait for ever."""
        return frozenset(delay.partition("@")[2] for delay, _ in self.implications)


def surroundings(traffic: Traffic, lessons: Sequence[Lesson], kinds: Kinds) -> Surroundings:
    """Gather what traffic shows by now, and these lessons."""
    frequent = tuple(traffic.frequent())
    faults = {fault for relied_on, _, _ in frequent for fault in relied_on}
    implications: set[tuple[str, str]] = set()
    for lesson in lessons:
        faults |= lesson.relied_on
        implications |= lesson.implications
    topology = traffic.topology
    return Surroundings(
        supports=tuple((relied_on, failed) for relied_on, failed, _ in frequent),
        called=traffic.usually_called(),
        points=frozenset(fault.partition("@")[2] for fault in faults),
        implications=frozenset(implications),
        unlike=kinds.unlike(lessons),
        known_as=(id(topology), topology.changes),
        topology=topology,
        traces=tuple(trace_id for _, _, trace_id in frequent),
    )
