"""The rules that the edges shall follow now, who has fetched them, and what they have used.

An edge receives its rules as a lease and says with every request for news which version it holds
and how many devices it has treated for which experiment. From that, this board knows when a rule
that was taken down is really out of force everywhere, and how many members were exposed at most.

Allowances: an experiment may treat no more devices than :meth:`RulesBoard.allow` said last. Who may
treat how many of them is in :mod:`ldfi.experiments.scheduler.armed_rule`: several edges *ask* for
each device as they need it. What an edge was told of and does not give back, because it vanished,
is taken to have been used. So the sum can never be more than was reserved.

Many edges that have nobody enrolled hold a stream of *offers* each: the rules, without a lease.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ldfi.experiments.scheduler.armed_rule import ArmedRule
from ldfi.experiments.scheduler.edges import Behind, Fleet
from ldfi.fit.protocol.allowance import Enrolled
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Rule

FRESH_SECONDS = 1.0
"""No lease is granted unless the engine has made a step within so long: whoever decides that
something is to stop may be stuck."""


class RulesBoard:
    """Holds the armed rules. Edges wait at :meth:`changed_since` and take them as a lease.

    Once the engine has said so to :meth:`tick`, it has to go on doing it, or leases are empty.

    ``lease``: seconds. No lease reaches beyond what was last said to :meth:`renew`, so that
    whoever keeps the record of it knows when everything has ended by itself. ``in_advance``: an
    edge that is alone is dealt all there is; a relay, which gets it bit by bit, has each ask.
    """

    def __init__(self, epoch: str, lease: float, *, in_advance: bool = True) -> None:
        self.fleet = Fleet(lease)
        self.closed = False
        """Whether nobody keeps it any more: whoever waits at it goes elsewhere."""
        self._epoch = epoch
        self._in_advance = in_advance
        self._lease = lease
        self._until = 0.0
        self._ticked: float | None = None
        self._armed_rules: dict[str, ArmedRule] = {}
        self._count = 0
        self._offered = "", ""
        self._changed = asyncio.Event()

    def edges(self, now: float) -> int:
        """Count the edges that have asked for rules lately."""
        return self.fleet.count(now)

    def armed(self) -> list[str]:
        """List the experiments whose rules are in force."""
        return [name for name, armed_rule in self._armed_rules.items() if armed_rule.down is None]

    def all(self) -> Mapping[str, ArmedRule]:
        """Return every rule that is not forgotten yet, by experiment id."""
        return self._armed_rules

    def __getitem__(self, experiment: str) -> ArmedRule:
        return self._armed_rules[experiment]

    def drew(self, experiment: str, arm: str, mark: int) -> bool:
        """Return whether edges draw the device of this mark for an arm of an experiment; of one
        that is not known any more they may have."""
        armed_rule = self._armed_rules.get(experiment)
        return armed_rule is None or armed_rule.rule.claim.arm_of(mark) == arm

    def put(self, rule: Rule, members: int, now: float, allowed: int | None = None) -> None:
        """Arm a rule for which ``members`` are reserved.

        ``allowed``: how many of them may be treated before :meth:`allow` says more; None for all.
        """
        edges = self.fleet.current_state(now)
        on_demand = not self._in_advance or (len(edges) > 1 and any(edges.values()))
        armed_rule = ArmedRule.of(rule, members, allowed, self.fleet, [] if on_demand else [*edges])
        armed_rule.on_demand = on_demand
        armed_rule.deal(now)
        self._armed_rules[rule.experiment] = armed_rule
        self._announce()

    def allow(self, experiment: str, total: int, now: float, *, members: int | None = None) -> None:
        """Allow so many devices in total; never fewer than before, nor more than are reserved.
        ``members``: how many are reserved from now on."""
        armed_rule = self._armed_rules[experiment]
        if members is not None:
            armed_rule.members, armed_rule.allowed = members, min(armed_rule.allowed, members)
        armed_rule.allowed = max(armed_rule.allowed, min(total, armed_rule.members))
        if armed_rule.down is None and armed_rule.deal(now):
            self._announce()

    def take_down(self, experiment: str) -> None:
        """Disarm a rule; nothing happens when it is not armed."""
        armed_rule = self._armed_rules.get(experiment)
        if armed_rule is not None and armed_rule.down is None:
            self._announce()
            armed_rule.down = self._count

    def clear(self) -> None:
        """Disarm everything."""
        for experiment in self.armed():
            self.take_down(experiment)

    def close(self) -> None:
        """Disarm everything, and release the edges that wait here."""
        self.clear()
        if not self.closed:
            self.closed = True
            self._announce()

    def forget(self, experiment: str) -> None:
        """Forget an experiment: it is over and accounted for."""
        self._armed_rules.pop(experiment, None)

    def renew(self, until: float) -> None:
        """Let rules be in force until then (Unix seconds): that is on record."""
        self._until = until

    def tick(self, now: float) -> None:
        """Note that the engine has just made a step."""
        self._ticked = now

    @property
    def version(self) -> str:
        """Changes with every change of the rules, and with every start of the service."""
        return f"{self._epoch}-{self._count}"

    def heard(
        self,
        name: str,
        version: str,
        report: Mapping[str, Enrolled],
        now: float,
        *,
        mute: bool = False,
        asked: int | None = None,
        late: int = 0,
        behind: Behind | None = None,
        token: str = "",
        by_address: bool = False,
    ) -> None:
        """Take an edge's poll: the ``version`` it holds, and its enrolled devices.

        ``mute``: it says nothing of control, as edges once did. ``asked``: all its asks up to that
        number are settled; None: it cannot ask. ``late``: how many of them came to nothing in time.
        ``token``: the name of the token that it calls with. ``by_address``: it tells devices apart
        by address.
        """
        edge = self.fleet.meet(name, now)
        edge.token, edge.by_address = token, by_address
        edge.mute, edge.asks = mute, asked is not None
        edge.holds = self._number(version if behind is None else behind.holds)
        edge.behind = 1 if behind is None else behind.edges
        edge.settled = max(edge.settled, asked or 0)
        self.fleet.note_late(edge, late)
        for experiment, armed_rule in self._armed_rules.items():
            armed_rule.settle(name, edge.settled)
            enrolled = report.get(experiment)
            if behind is not None and experiment in behind.kept:
                silent = experiment in behind.silent
                kept = behind.kept[experiment]
                due = armed_rule.hear(name, enrolled or Enrolled(0), kept, silent=silent)
            elif enrolled is not None:
                due = armed_rule.hear(name, enrolled)
            else:
                due = False
                armed_rule.drop(name)
            if due and armed_rule.down is None and armed_rule.deal(now):
                self._announce()

    def ask(
        self, name: str, experiment: str, arm: Arm, number: int, now: float, *, token: str = ""
    ) -> bool:
        """Let an edge enrol one more device in an arm, by its ask of that ``number``; False where
        there is no room, where it has not used what it holds, and where the ask comes too late."""
        edge = self.fleet.meet(name, now)
        edge.asks, edge.token = True, token
        armed_rule = self._armed_rules.get(experiment)
        if armed_rule is None or armed_rule.down is not None or number <= edge.settled:
            return False
        seconds = self.seconds(now)
        if seconds <= 0 or not armed_rule.ask(name, arm, number, now):
            return False
        armed_rule.taken = True
        edge.until = max(edge.until, now + seconds)
        return True

    def lease(self, name: str, now: float) -> dict[str, Any]:
        """Make the document that an edge receives."""
        seconds = self.seconds(now)
        edge = self.fleet.meet(name, now)
        edge.until = max(edge.until, now + seconds)
        return self._document(name, seconds, edge.asks)

    def offer(self, name: str) -> str:
        """Write the document for an edge that is to know the rules and not to act on them: one text
        for all that were dealt nothing."""
        mine = [
            armed_rule.parts.get(name)
            for armed_rule in self._armed_rules.values()
            if armed_rule.down is None
        ]
        if any(part is not None and part.dealt for part in mine):
            return json.dumps(self._document(name, 0.0, asks=True))
        version, text = self._offered
        if version != self.version:
            text = json.dumps(self._document("", 0.0, asks=True), separators=(",", ":"))
            self._offered = self.version, text
        return text

    @contextmanager
    def stream(self, name: str, now: float) -> Iterator[None]:
        """Have an edge count as there for as long as it holds a stream of offers."""
        edge = self.fleet.meet(name, now)
        edge.asks = True
        edge.streams += 1
        try:
            yield
        finally:
            edge.streams -= 1

    def seconds(self, now: float) -> float:
        """Tell for how long a lease that is granted now holds."""
        if not self.armed():
            return self._lease
        if self._ticked is not None and now - self._ticked > FRESH_SECONDS:
            return 0.0
        return max(0.0, min(self._lease, self._until - now))

    async def changed_since(self, version: str, wait: float) -> None:
        """Return when the version is another one than ``version``, or after ``wait`` seconds."""
        if version != self.version or self.closed:
            return
        try:
            async with asyncio.timeout(wait):
                await self._changed.wait()
        except TimeoutError:
            return

    def _document(self, name: str, seconds: float, asks: bool) -> dict[str, Any]:
        rules = []
        for armed_rule in self._armed_rules.values():
            if armed_rule.down is None:
                part = armed_rule.parts.get(name)
                armed_rule.taken = armed_rule.taken or asks or part is not None
                members = 0 if part is None else part.tell()
                rules.append({**armed_rule.rule.to_json(), "members": members})
        return {"version": self.version, "lease_seconds": seconds, "asks": True, "rules": rules}

    def _number(self, version: str) -> int:
        epoch, _, number = version.rpartition("-")
        return int(number) if epoch == self._epoch and number.isdecimal() else -1

    def _announce(self) -> None:
        self._count += 1
        self._changed.set()
        self._changed = asyncio.Event()
