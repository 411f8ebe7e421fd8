"""The edges that ask for rules: who is there, what each holds, and until when.

A *relay* is an edge to whoever gives it the rules. It stands for the edges behind it: it holds a
version when all of them do, and what they may act upon ends before its own lease does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_EDGES: Final = 20_000

MOST: Final = 1_000_000_000
"""The largest number that an edge may say: `/metrics` has to hold what they come to."""


class Behind(NamedTuple):
    """What a relay says of the edges behind it: how many there are, the version that all of them
    hold, for how many devices of each experiment it holds an allowance (and of each that any of
    them follows), and of which not all said how many they enrolled in control."""

    edges: int
    holds: str
    kept: Mapping[str, int]
    silent: Collection[str] = ()


@dataclass(slots=True)
class EdgeSeen:
    """``holds``: the number of the version that it said it holds; ``until``: the end of its lease.
    ``mute``: it says nothing of control, as edges once did. ``asks``: it can ask; all its asks up
    to ``settled`` are. ``late``: how many of its asks came to nothing in time. ``behind``: for how
    many edges it stands. ``streams``: how many streams of offers it has open. ``token``: the
    name of the token that it called with last. ``by_address``: it tells devices apart by address
    where they say nothing else."""

    seen: float
    holds: int = -1
    until: float = 0.0
    mute: bool = False
    asks: bool = False
    settled: int = 0
    late: int = 0
    behind: int = 1
    streams: int = 0
    token: str = ""
    by_address: bool = False


@dataclass(slots=True)
class Fleet:
    """The edges by name. ``lease``: seconds after which one that is not heard of is not there.
    ``met``: whether any was ever heard of."""

    lease: float
    met: bool = False
    late: int = 0
    """Asks that came to nothing in time, of all edges there ever were."""
    _edges: dict[str, EdgeSeen] = field(default_factory=dict)

    def __getitem__(self, name: str) -> EdgeSeen:
        return self._edges[name]

    def get(self, name: str) -> EdgeSeen | None:
        """Find an edge; None for one that was never heard of, or long ago."""
        return self._edges.get(name)

    def meet(self, name: str, now: float) -> EdgeSeen:
        """Find an edge that is there now, known or not."""
        edge = self._edges.get(name)
        if edge is None:
            self._drop_stale(now)
            self.met = True
            edge = self._edges[name] = EdgeSeen(now)
        edge.seen = now
        return edge

    def note_late(self, edge: EdgeSeen, late: int) -> None:
        """Take in how many asks of an edge have come to nothing, in all."""
        self.late += max(0, late - edge.late)
        edge.late = max(edge.late, late)

    def current_state(self, now: float) -> dict[str, bool]:
        """Name the edges that are there, each with whether it can ask."""
        return {n: e.asks for n, e in sorted(self._edges.items()) if self._is_here(e, now)}

    def count(self, now: float) -> int:
        """Count the edges that are there, those behind relays included."""
        return sum(edge.behind for edge in self._edges.values() if self._is_here(edge, now))

    def by_address(self, now: float) -> bool:
        """Return whether an edge that is there tells devices apart by address."""
        return any(e.by_address for e in self._edges.values() if self._is_here(e, now))

    def confirmed(self, name: str, version: int) -> bool:
        """Return whether an edge has said that it holds this version, or a later one."""
        edge = self._edges.get(name)
        return edge is not None and edge.holds >= version

    def lapsed(self, name: str, now: float) -> bool:
        """Return whether an edge can act on nothing that it was ever given."""
        edge = self._edges.get(name)
        return edge is None or now >= edge.until

    def is_here(self, name: str, now: float) -> bool:
        """Return whether an edge has been heard of within its lease."""
        edge = self._edges.get(name)
        return edge is not None and self._is_here(edge, now)

    def _is_here(self, edge: EdgeSeen, now: float) -> bool:
        return edge.streams > 0 or edge.seen >= now - self.lease

    def _drop_stale(self, now: float) -> None:
        if len(self._edges) >= MAX_EDGES:
            gone = [
                name
                for name, edge in self._edges.items()
                if not edge.streams and max(edge.until, edge.seen) < now - self.lease
            ]
            for name in gone:
                del self._edges[name]
