"""One armed experiment on the rules board: which edge may treat how many devices of it, and has.

The sum of what edges may treat is never more than was reserved. An edge that is *alone* is dealt
it in advance. Several ask, device by device, as they need it; what they asked for and did not use
comes back when they say so. Edges of a version that cannot ask are dealt something in advance, and
more when they had to turn a device away; what was sent to them is never taken back, and what they
do not use is given out once more after a while.

What an edge holds and has not said to have used is *lent*: :data:`FIRST_LOAN` at first, later as
much as it has treated. All edges that have treated nobody yet share one small pool, whatever they
call themselves. So one that was made up costs a loan, not the experiment's members; what was dealt
to it and never fetched comes back when it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final

from ldfi.experiments.domain.judging.edge_shares import EdgeShare
from ldfi.experiments.scheduler.edges import EdgeSeen, Fleet
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Rule

IDLE_SECONDS: Final = 5.0
"""After which what an edge was given and has not used is given to another one as well."""

FIRST_LOAN: Final = 16
"""Devices that an edge may hold before it has treated any."""

UNPROVEN: Final = 4
"""One part in so many of the members may be held by edges that have treated nobody, or
:data:`FIRST_LOAN` where that is more."""

MAX_OPEN: Final = 4_096
"""Asks of one edge that are not settled; an edge settles its own once a second."""

MAX_SHOWN: Final = 40
"""Edges that an experiment's record names: those that hold or have used most."""


@dataclass(slots=True)
class Allotment:
    """One edge's part. ``dealt``: how many devices it may treat without asking; ``sent``: how many
    of them it was told of. ``granted``: how many it was given on demand since, ``open``: those of
    its asks that were granted and that it has not settled yet, by number. ``kept``: what a relay
    holds for the edges behind it, ``silent``: one of those never said how many it enrolled in
    control."""

    dealt: int = 0
    sent: int = 0
    granted: int = 0
    open: dict[int, Arm] = field(default_factory=dict)
    kept: int = 0
    silent: bool = False
    given_at: float | None = None
    heard: Enrolled = field(default_factory=lambda: Enrolled(0))

    @property
    def total(self) -> int:
        """Return how many devices it may have treated, or may still treat."""
        return self._with_asks(self.dealt)

    @property
    def held(self) -> int:
        """The same without what it was dealt and never told of."""
        return self._with_asks(self.sent)

    def _with_asks(self, dealt: int) -> int:
        pending = sum(arm == "treatment" for arm in self.open.values())
        return max(dealt, self.kept, self.heard.treatment) + pending

    @property
    def lent(self) -> int:
        """Return how many of them it has not said to have treated."""
        return self.total - self.heard.treatment

    @property
    def credit(self) -> int:
        """Return how many more it may be lent, by what it has treated so far."""
        return max(FIRST_LOAN, self.heard.treatment) - self.lent

    @property
    def empty(self) -> bool:
        """Return whether no device is enrolled at the edge, and none will be without asking."""
        return not self.total and not self.open and not self.heard.control

    def hear(self, enrolled: Enrolled, kept: int, *, silent: bool) -> None:
        """Take an edge's report. It cannot have used more than it was ever given here."""
        most = self.dealt + self.granted
        treated = max(self.heard.treatment, min(enrolled.treatment, most))
        control = max(self.heard.control, enrolled.control)
        self.heard = Enrolled(treated, control, enrolled.wants)
        self.kept = min(kept, most)
        self.silent = self.silent or silent

    def give(self, more: int, now: float) -> None:
        """Deal it more."""
        self.dealt += more
        self.given_at = now
        self.heard = self.heard._replace(wants=False)

    def tell(self) -> int:
        """Return how many devices it may treat without asking, which it knows from now on."""
        self.sent = self.dealt
        return self.dealt


@dataclass(slots=True)
class ArmedRule:
    """A rule on the board. ``members``: how many devices may be treated in all; ``allowed``: how
    many of them so far; ``taken``: whether an edge has fetched it; ``down``: the version that no
    longer has it.

    ``in_advance``: the edges that are dealt their parts without asking.
    """

    rule: Rule
    members: int
    allowed: int
    fleet: Fleet
    in_advance: list[str]
    parts: dict[str, Allotment]
    on_demand: bool = False
    taken: bool = False
    down: int | None = None

    @classmethod
    def of(
        cls, rule: Rule, members: int, allowed: int | None, fleet: Fleet, in_advance: list[str]
    ) -> ArmedRule:
        """Make it, with nothing given to anybody yet."""
        most = members if allowed is None else min(allowed, members)
        parts = {name: Allotment() for name in in_advance}
        return cls(rule, members, most, fleet, in_advance, parts)

    @property
    def given(self) -> int:
        """Return how many devices edges may have treated, or may still treat."""
        return sum(part.total for part in self.parts.values())

    @property
    def used(self) -> int:
        """Return how many devices the edges say they have treated."""
        return sum(part.heard.treatment for part in self.parts.values())

    @property
    def enrolled(self) -> int:
        """Return how many devices the edges say they have enrolled in control."""
        return sum(part.heard.control for part in self.parts.values())

    @property
    def controls(self) -> int | None:
        """Return how many devices the edges have enrolled in control, when all have said so since
        the rule was taken down; None before, and where one of them never does."""
        down, fleet = self.down, self.fleet
        if down is None:
            return None
        told = (
            fleet.confirmed(name, down) and not fleet[name].mute and not part.silent
            for name, part in self.parts.items()
        )
        return self.enrolled if all(told) else None

    def out_of_force(self, now: float) -> bool:
        """Return whether a rule that was taken down is no longer followed anywhere."""
        down, fleet = self.down, self.fleet
        return down is not None and all(
            fleet.confirmed(name, down) or fleet.lapsed(name, now) for name in self.parts
        )

    @property
    def spent(self) -> int:
        """Return the most devices it can have cost: those reported, and the whole allowance of
        edges that never reported."""
        down = self.down
        return sum(
            part.heard.treatment
            if down is not None and self.fleet.confirmed(name, down)
            else part.held
            for name, part in self.parts.items()
        )

    @property
    def exhausted(self) -> bool:
        """Return whether all that was reserved is used, or no edge is there to use it."""
        nobody = not self.parts and self.allowed >= self.members and not self.on_demand
        return nobody or self.used >= self.members

    def shares(self) -> tuple[EdgeShare, ...]:
        """List who may have treated devices, those that hold or have treated most first."""
        held = {name: part.held for name, part in self.parts.items()}
        most = nlargest(MAX_SHOWN, filter(held.get, held), key=lambda name: held[name])
        seen = {name: self.fleet.get(name) or EdgeSeen(0.0) for name in most}
        return tuple(
            EdgeShare(
                name,
                edge.token,
                edge.behind,
                held[name],
                self.parts[name].heard.treatment,
                edge.by_address,
            )
            for name, edge in seen.items()
        )

    def room(self, now: float) -> int:
        """Return how many more may be given out now."""
        idle = sum(
            max(0, part.total - part.heard.treatment)
            for part in self.parts.values()
            if part.given_at is not None and part.given_at < now - IDLE_SECONDS
        )
        return min(self.allowed + idle, self.members) - self.given

    def deal(self, now: float) -> bool:
        """Deal out in advance what may be dealt; return False if nothing changes.

        Where there is little it goes to those that had to turn a device away, a part at a time.
        """
        self._take_back(now)
        left = self.room(now)
        if left <= 0:
            return False
        dealt = False
        for edge, share in self._shares(left, now):
            more = min(share, left, self._credit(self.parts[edge]))
            if more > 0:
                left -= more
                dealt = True
                self.parts[edge].give(more, now)
        return dealt

    def _shares(self, left: int, now: float) -> Iterable[tuple[str, int]]:
        if self.in_advance and (self.allowed >= self.members or len(self.in_advance) == 1):
            due = [name for name in self.in_advance if self._is_due(name, now)]
            return _divided(left, due)
        each = max(1, left // max(1, len(self.parts)))
        return [(name, each) for name, part in self.parts.items() if part.heard.wants]

    def _is_due(self, name: str, now: float) -> bool:
        """Return whether an edge has used half of what it was dealt: every deal is news to all
        edges."""
        part = self.parts[name]
        return self.fleet.is_here(name, now) and part.credit >= part.lent

    def _credit(self, part: Allotment) -> int:
        """Return how many more devices an edge may be lent now."""
        if part.heard.treatment:
            return part.credit
        pool = max(FIRST_LOAN, self.members // UNPROVEN)
        unproven = sum(each.lent for each in self.parts.values() if not each.heard.treatment)
        return min(part.credit, pool - unproven)

    def _take_back(self, now: float) -> None:
        """Take back what was dealt to edges that left without ever hearing of it."""
        for name, part in self.parts.items():
            if part.dealt > part.sent and not self.fleet.is_here(name, now):
                part.dealt = part.sent

    def ask(self, edge: str, arm: Arm, number: int, now: float) -> bool:
        """Let an edge enrol one more device, if there is room. Where there is none for a device
        that would be treated, there is none for control: the arms end at the same moment."""
        self.on_demand = True
        part = self.parts.get(edge, Allotment())
        if self.room(now) <= 0 or self._credit(part) <= 0:
            return False
        if number in part.open or len(part.open) >= MAX_OPEN:
            return False
        part.open[number] = arm
        part.granted += arm == "treatment"
        part.given_at = now
        self.parts[edge] = part
        return True

    def hear(self, edge: str, enrolled: Enrolled, kept: int = 0, *, silent: bool = False) -> bool:
        """Take in what an edge says; whether more may have to be dealt now.

        Whoever says something of it may follow it, though it was another process that gave the
        edge its part: it has to say, too, that it has dropped the rule.
        """
        if edge not in self.parts:
            self.parts[edge] = Allotment()
            if self.in_advance and enrolled.wants:
                self.in_advance.append(edge)
        self.parts[edge].hear(enrolled, kept, silent=silent)
        return enrolled.wants or edge in self.in_advance

    def settle(self, edge: str, number: int) -> None:
        """Take back what an edge was granted by its asks up to ``number`` and did not use."""
        part = self.parts.get(edge)
        if part is not None:
            part.open = {each: arm for each, arm in part.open.items() if each > number}

    def drop(self, edge: str) -> None:
        """Note that nobody is enrolled at an edge; ignored if somebody was or may be."""
        part = self.parts.get(edge)
        if part is not None and part.empty and edge not in self.in_advance:
            del self.parts[edge]


def _divided(members: int, edges: list[str]) -> list[tuple[str, int]]:
    each, odd = divmod(members, len(edges)) if edges else (0, 0)
    return [(name, each + (at < odd)) for at, name in enumerate(edges)]
