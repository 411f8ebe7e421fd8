"""The rules that the edges shall follow now, who has fetched them, and what they have used.

An edge receives its rules as a lease and says with every request for news which version it holds
and how many devices it has treated for which experiment. From that, this board knows when a rule
that was taken down is really out of force everywhere, and how many members were exposed at most.

Allowances: each experiment's members are divided among the edges that were there when it was
armed. An edge that appears later may treat nobody for it, and one that vanishes is taken to have
used all it was given. So the sum can never be more than was reserved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ldfi.fit.rules import Rule

MAX_EDGES = 10_000


@dataclass(slots=True)
class _Edge:
    """``holds`` is the number of the version it said it holds; ``until`` the end of its lease."""

    seen: float
    holds: int = -1
    until: float = 0.0


@dataclass(slots=True)
class _Posted:
    """A rule, and for each edge its allowance; ``down`` is the version that no longer has it."""

    rule: Rule
    grants: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)
    taken: bool = False
    down: int | None = None


class RulesBoard:
    """Holds the armed rules. Edges wait at :meth:`changed_since` and take them as a lease.

    ``lease``: seconds. No lease reaches beyond what was last said to :meth:`renew`, so that
    whoever keeps the record of it knows when everything has ended by itself.
    """

    def __init__(self, epoch: str, lease: float) -> None:
        self._epoch = epoch
        self._lease = lease
        self._until = 0.0
        self._posted: dict[str, _Posted] = {}
        self._edges: dict[str, _Edge] = {}
        self._count = 0
        self._changed = asyncio.Event()

    def edges(self, now: float) -> list[str]:
        """List the edges that have asked for rules lately."""
        return sorted(n for n, edge in self._edges.items() if edge.seen >= now - self._lease)

    def armed(self) -> list[str]:
        """List the experiments whose rules are in force."""
        return [name for name, posted in self._posted.items() if posted.down is None]

    def put(self, rule: Rule, members: int, now: float) -> None:
        """Arm a rule; its members are divided among the edges there are."""
        self._posted[rule.experiment] = _Posted(rule, _divided(members, self.edges(now)))
        self._announce()

    def take_down(self, experiment: str) -> None:
        """Disarm a rule; nothing happens when it is not armed."""
        posted = self._posted.get(experiment)
        if posted is not None and posted.down is None:
            self._announce()
            posted.down = self._count

    def clear(self) -> None:
        """Disarm everything."""
        for experiment in self.armed():
            self.take_down(experiment)

    def forget(self, experiment: str) -> None:
        """Forget an experiment: it is over and accounted for."""
        self._posted.pop(experiment, None)

    def renew(self, until: float) -> None:
        """Let rules be in force until then (Unix seconds): that is on record."""
        self._until = until

    def taken(self, experiment: str) -> bool:
        """Whether an edge has fetched this rule."""
        return self._posted[experiment].taken

    def used(self, experiment: str) -> int:
        """How many devices the edges say they have treated for it, so far."""
        return sum(self._posted[experiment].used.values())

    def exhausted(self, experiment: str) -> bool:
        """Whether every edge has used up its allowance."""
        posted = self._posted[experiment]
        return all(posted.used.get(n, 0) >= grant for n, grant in posted.grants.items())

    def out_of_force(self, experiment: str, now: float) -> bool:
        """Whether a rule that was taken down is no longer followed anywhere."""
        posted = self._posted[experiment]
        return posted.down is not None and all(
            self._confirmed(name, posted.down) or self._lapsed(name, now) for name in posted.grants
        )

    def spent(self, experiment: str) -> int:
        """Count the devices it cost at most: what the edges said, and the whole allowance of those
        that never told."""
        posted = self._posted[experiment]
        return sum(
            posted.used.get(name, 0)
            if posted.down is not None and self._confirmed(name, posted.down)
            else grant
            for name, grant in posted.grants.items()
        )

    @property
    def version(self) -> str:
        """Changes with every change of the rules, and with every start of the service."""
        return f"{self._epoch}-{self._count}"

    def heard(self, edge: str, version: str, used: Mapping[str, int], now: float) -> None:
        """Hear an edge that asks for news: it holds ``version`` and has treated so many devices."""
        self._drop_stale(now)
        known = self._edges.setdefault(edge, _Edge(now))
        known.seen = now
        epoch, _, number = version.rpartition("-")
        known.holds = int(number) if epoch == self._epoch and number.isdecimal() else -1
        for experiment, count in used.items():
            posted = self._posted.get(experiment)
            if posted is not None and edge in posted.grants:
                posted.used[edge] = max(count, posted.used.get(edge, 0))

    def lease(self, edge: str, now: float) -> dict[str, Any]:
        """Make the document that an edge receives."""
        armed = [posted for posted in self._posted.values() if posted.down is None]
        seconds = max(0.0, min(self._lease, self._until - now)) if armed else self._lease
        known = self._edges.setdefault(edge, _Edge(now))
        known.until = max(known.until, now + seconds)
        for posted in armed:
            posted.taken = posted.taken or edge in posted.grants
        return {
            "version": self.version,
            "lease_seconds": seconds,
            "rules": [
                {**posted.rule.to_json(), "members": posted.grants.get(edge, 0)} for posted in armed
            ],
        }

    async def changed_since(self, version: str, wait: float) -> None:
        """Return when the version is another one than ``version``, or after ``wait`` seconds."""
        if version != self.version:
            return
        try:
            async with asyncio.timeout(wait):
                await self._changed.wait()
        except TimeoutError:
            return

    def _confirmed(self, edge: str, down: int) -> bool:
        known = self._edges.get(edge)
        return known is not None and known.holds >= down

    def _lapsed(self, edge: str, now: float) -> bool:
        known = self._edges.get(edge)
        return known is None or now >= known.until

    def _drop_stale(self, now: float) -> None:
        if len(self._edges) >= MAX_EDGES:
            gone = [n for n, edge in self._edges.items() if edge.until < now - self._lease]
            for name in gone:
                del self._edges[name]

    def _announce(self) -> None:
        self._count += 1
        self._changed.set()
        self._changed = asyncio.Event()


def _divided(members: int, edges: list[str]) -> dict[str, int]:
    each, left = divmod(members, len(edges)) if edges else (0, 0)
    return {name: each + (at < left) for at, name in enumerate(edges)}
