"""The rules that the edges shall follow now, who has fetched them, and what they have used.

An edge receives its rules as a lease and says with every request for news which version it holds
and how many devices it has treated for which experiment. From that, this board knows when a rule
that was taken down is really out of force everywhere, and how many members were exposed at most.

Allowances: an experiment may treat no more devices than :meth:`RulesBoard.allow` said last. They
are divided among the edges; where there are fewer than edges, those get them that ask, because they
had to turn a device away. What an edge was given is never taken back, and one that vanishes is
taken to have used it all. So the sum can never be more than was reserved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ldfi.fit.allowance import Enrolled
from ldfi.fit.rules import Rule

MAX_EDGES = 10_000

FRESH_SECONDS = 1.0
"""No lease is granted unless the engine has made a step within so long: whoever decides that
something is to stop may be stuck."""

IDLE_SECONDS = 5.0
"""After which what an edge was given and has not used is given to another one as well."""


@dataclass(slots=True)
class _Edge:
    """``holds`` is the number of the version it said it holds; ``until`` the end of its lease;
    ``mute``: it says nothing of control, as edges once did."""

    seen: float
    holds: int = -1
    until: float = 0.0
    mute: bool = False


@dataclass(slots=True)
class _Posted:
    """A rule, and for each edge its allowance; ``down`` is the version that no longer has it."""

    rule: Rule
    members: int
    grants: dict[str, int]
    allowed: int = 0
    given_at: dict[str, float] = field(default_factory=dict)
    heard: dict[str, Enrolled] = field(default_factory=dict)
    taken: bool = False
    down: int | None = None

    def used(self, edge: str) -> int:
        return self.heard[edge].treatment if edge in self.heard else 0

    def deal(self, now: float) -> bool:
        """Give out what may be and is not yet; False where nothing changes hands.

        Where there is little it goes to those that ask, a part at a time. What an edge does not use
        is not taken back, but given out once more after a while: it may have no such traffic.
        """
        given = sum(self.grants.values())
        idle = sum(
            max(0, grant - self.used(edge))
            for edge, grant in self.grants.items()
            if self.given_at.get(edge, now) < now - IDLE_SECONDS
        )
        left = min(self.allowed + idle, self.members) - given
        plenty = self.allowed >= self.members or len(self.grants) == 1
        wanting = [edge for edge, each in self.heard.items() if each.wants and edge in self.grants]
        shares = (
            _divided(left, [*self.grants])
            if plenty
            else dict.fromkeys(wanting, max(1, left // max(1, len(self.grants))))
        )
        dealt = False
        for edge, share in shares.items():
            more = min(share, left)
            if more > 0:
                left -= more
                dealt = True
                self.grants[edge] += more
                self.given_at[edge] = now
                if edge in self.heard:
                    self.heard[edge] = self.heard[edge]._replace(wants=False)
        return dealt


class RulesBoard:
    """Holds the armed rules. Edges wait at :meth:`changed_since` and take them as a lease.

    Once the engine has said so to :meth:`tick`, it has to go on doing it, or leases are empty.

    ``lease``: seconds. No lease reaches beyond what was last said to :meth:`renew`, so that
    whoever keeps the record of it knows when everything has ended by itself.
    """

    def __init__(self, epoch: str, lease: float) -> None:
        self._epoch = epoch
        self._lease = lease
        self._until = 0.0
        self._ticked: float | None = None
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

    def put(self, rule: Rule, members: int, now: float, allowed: int | None = None) -> None:
        """Arm a rule for which ``members`` are reserved.

        ``allowed``: how many of them may be treated before :meth:`allow` says more; None for all.
        """
        posted = _Posted(rule, members, dict.fromkeys(self.edges(now), 0))
        posted.allowed = members if allowed is None else min(allowed, members)
        posted.deal(now)
        self._posted[rule.experiment] = posted
        self._announce()

    def allow(self, experiment: str, total: int, now: float) -> None:
        """Let so many devices be treated in all; never fewer than before, nor more than are
        reserved."""
        posted = self._posted[experiment]
        posted.allowed = max(posted.allowed, min(total, posted.members))
        if posted.down is None and posted.deal(now):
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

    def tick(self, now: float) -> None:
        """Note that the engine has just made a step."""
        self._ticked = now

    def taken(self, experiment: str) -> bool:
        """Whether an edge has fetched this rule."""
        return self._posted[experiment].taken

    def used(self, experiment: str) -> int:
        """How many devices the edges say they have treated for it, so far."""
        return sum(each.treatment for each in self._posted[experiment].heard.values())

    def enrolled(self, experiment: str) -> int:
        """How many devices the edges say they have enrolled in control, so far."""
        return sum(each.control for each in self._posted[experiment].heard.values())

    def controls(self, experiment: str) -> int | None:
        """How many devices the edges have enrolled in control, when all have said so since the rule
        was taken down; None before, and where one of them never does."""
        posted = self._posted[experiment]
        down = posted.down
        if down is None or not all(self._told_all(name, down) for name in posted.grants):
            return None
        return self.enrolled(experiment)

    def exhausted(self, experiment: str) -> bool:
        """Whether all is used up that was reserved, or that could be given to anybody."""
        posted = self._posted[experiment]
        given = sum(posted.grants.values()) if posted.allowed >= posted.members else posted.members
        return self.used(experiment) >= given

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
            posted.used(name)
            if posted.down is not None and self._confirmed(name, posted.down)
            else grant
            for name, grant in posted.grants.items()
        )

    @property
    def version(self) -> str:
        """Changes with every change of the rules, and with every start of the service."""
        return f"{self._epoch}-{self._count}"

    def heard(
        self,
        edge: str,
        version: str,
        report: Mapping[str, Enrolled],
        now: float,
        *,
        mute: bool = False,
    ) -> None:
        """Hear an edge that asks for news: it holds ``version``, and so many devices are enrolled.

        ``mute``: it says nothing of control, as edges once did.
        """
        self._drop_stale(now)
        known = self._edges.setdefault(edge, _Edge(now))
        known.seen, known.mute = now, mute
        epoch, _, number = version.rpartition("-")
        known.holds = int(number) if epoch == self._epoch and number.isdecimal() else -1
        for experiment, enrolled in report.items():
            posted = self._posted.get(experiment)
            if posted is not None and (edge in posted.grants or enrolled.wants):
                posted.grants.setdefault(edge, 0)
                before = posted.heard.get(edge, Enrolled(0))
                posted.heard[edge] = Enrolled(
                    max(before.treatment, enrolled.treatment),
                    max(before.control, enrolled.control),
                    enrolled.wants,
                )
                if enrolled.wants and posted.down is None and posted.deal(now):
                    self._announce()

    def lease(self, edge: str, now: float) -> dict[str, Any]:
        """Make the document that an edge receives."""
        armed = [posted for posted in self._posted.values() if posted.down is None]
        seconds = max(0.0, min(self._lease, self._until - now)) if armed else self._lease
        if armed and self._ticked is not None and now - self._ticked > FRESH_SECONDS:
            seconds = 0.0
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

    def _told_all(self, edge: str, down: int) -> bool:
        return self._confirmed(edge, down) and not self._edges[edge].mute

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
    each, odd = divmod(members, len(edges)) if edges else (0, 0)
    return {name: each + (at < odd) for at, name in enumerate(edges)}
