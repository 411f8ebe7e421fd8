"""Relays between edges and the leader's board: whatever is lost, late or dies, nobody treats more
than was granted, and nothing that is still followed is taken to be over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ldfi.experiments.api.edge import Reported, hear
from ldfi.experiments.cluster import relay as relaying
from ldfi.experiments.cluster.relay import EdgeRelay
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.fit.protocol.allowance import Numbers
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Lease
from tests.experiments.scheduler.test_rules_board import LEASE, Edge, a_rule


@dataclass
class Line:
    """The way from a relay to the leader. ``lost``: what becomes of the next call: the question is
    lost, or its answer."""

    leader: RulesBoard
    clock: SimpleNamespace
    lost: str = ""
    asks: int = 0

    def call(self, what: str, params: dict[str, Any] | None, json: dict[str, Any] | None) -> Any:
        lost, self.lost = self.lost, ""
        if lost == "question":
            raise httpx.ConnectError("lost")
        now = self.clock.now()
        if what == "rules":
            assert params is not None
            hear(self.leader, Reported(**params), now)
            answer: dict[str, Any] = self.leader.lease(params["edge"], now)
        else:
            assert json is not None
            self.asks += 1
            asked = json["edge"], json["experiment"], json["arm"], json["ask"]
            answer = {"granted": self.leader.ask(*asked, now)}
        if lost == "answer":
            raise httpx.ReadTimeout("lost")
        return SimpleNamespace(json=lambda: answer)


@dataclass
class AskingEdge(Edge):
    """One that asks before it treats. It keeps its counts when it has to go to another relay."""

    numbers: Numbers = field(default_factory=Numbers)

    def report_to(self, board: RulesBoard, now: float, *, answered: bool) -> None:
        self.poll(board, now, answered=answered, asked=self.numbers.settled)

    def request(self, tier: Tier, at: int, device: int, *, answered: bool) -> None:
        """A request of a device that every rule has in one of its arms."""
        now = tier.now
        for each in self.lease.rules:
            arm: Arm = "control" if device % 3 == 0 else "treatment"
            known = self.allowances.knows(each.experiment, arm, device)
            granted = False
            if not known and self.allowances.closed(each.experiment):
                number = self.numbers.begin()
                granted = tier.asked(at, self.name, each.experiment, arm, number) and answered
                self.numbers.end(number)
                board = tier.board(at)
                if not granted or board.version != self.lease.version:
                    continue
                ends = max(self.lease.ends, now + board.seconds(now))
                self.lease = Lease(self.lease.rules, ends, self.lease.version)
            elif now >= self.lease.ends:
                continue
            if self.allowances.admit(each.experiment, arm, device, granted=granted):
                devices = self.treated if arm == "treatment" else self.control
                devices.setdefault(each.experiment, set()).add(device)


class Tier(RuleBasedStateMachine):
    """Edges at relays, and at the leader itself; anything is lost, relays die."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 1_000.0
        self.clock = SimpleNamespace(now=lambda: self.now)
        relaying.clock, self._clock = self.clock, relaying.clock  # type: ignore[assignment,attr-defined]
        self.leader = RulesBoard("leader", LEASE)
        self.line = Line(self.leader, self.clock)
        self.relays = [self.a_relay(), self.a_relay()]
        self.edges = [AskingEdge(f"edge{number}") for number in range(4)]
        self.at = {edge.name: number % 3 for number, edge in enumerate(self.edges)}
        self.members: dict[str, int] = {}
        self.down: set[str] = set()

    def teardown(self) -> None:
        self.loop.close()
        relaying.clock = self._clock  # type: ignore[attr-defined]

    def a_relay(self) -> EdgeRelay:
        async def leader() -> str:
            return "leader"

        line = self.line

        class Wired(EdgeRelay):
            async def _call(self, method: str, what: str, *_: Any, **more: Any) -> httpx.Response:
                answer: httpx.Response = line.call(what, more.get("params"), more.get("json"))
                return answer

        return Wired(leader, LEASE)

    def board(self, at: int) -> RulesBoard:
        return self.leader if at == 2 else self.relays[at].board

    def asked(self, at: int, name: str, experiment: str, arm: Arm, number: int) -> bool:
        if at == 2:
            return self.leader.ask(name, experiment, arm, number, self.now)

        async def ask() -> bool:
            relay = self.relays[at]
            granted = await relay.ask(name, experiment, arm, number, self.now)
            await asyncio.gather(*relay._stocking.values())
            return granted

        return self.loop.run_until_complete(ask())

    @initialize()
    def begin(self) -> None:
        self.leader.renew(self.now + LEASE)
        for relay in (0, 1):
            self.subscribe(relay, "")
        for edge in self.edges:
            edge.report_to(self.board(self.at[edge.name]), self.now, answered=True)

    @rule(relay=st.integers(0, 1), lost=st.sampled_from(["", "", "", "question", "answer"]))
    def subscribe(self, relay: int, lost: str) -> None:
        self.line.lost = lost
        with suppress(httpx.HTTPError):
            self.loop.run_until_complete(self.relays[relay]._subscribe())

    @rule()
    def all_is_well(self) -> None:
        """For a moment nothing is lost."""
        for relay in (0, 1):
            self.subscribe(relay, "")
        for edge in self.edges:
            edge.report_to(self.board(self.at[edge.name]), self.now, answered=True)

    @precondition(lambda self: self.down < {*self.members})
    @rule(which=st.integers(0, 3), devices=st.sets(st.integers(0, 40), min_size=1, max_size=3))
    def serve_well(self, which: int, devices: set[int]) -> None:
        """What is armed is known to all, and one of them has requests."""
        self.leader.renew(self.now + LEASE)
        self.all_is_well()
        self.serve(which, devices, answered=True, lost="")

    @rule()
    def relays_hear(self) -> None:
        """Relays hear what is new, and say so, sooner than their edges do."""
        for relay in (0, 1, 0, 1):
            self.subscribe(relay, "")

    @rule(which=st.integers(0, 3), answered=st.booleans())
    def poll(self, which: int, answered: bool) -> None:
        edge = self.edges[which]
        edge.report_to(self.board(self.at[edge.name]), self.now, answered=answered)

    @rule(
        which=st.integers(0, 3),
        devices=st.sets(st.integers(0, 40), max_size=8),
        answered=st.sampled_from([True, True, False]),
        lost=st.sampled_from(["", "", "", "question", "answer"]),
    )
    def serve(self, which: int, devices: set[int], answered: bool, lost: str) -> None:
        self.line.lost = lost
        edge = self.edges[which]
        for device in devices:
            edge.request(self, self.at[edge.name], 1_000 * which + device, answered=answered)
        self.line.lost = ""

    @rule(which=st.integers(0, 3), to=st.integers(0, 2))
    def move(self, which: int, to: int) -> None:
        """A load balancer sends an edge elsewhere."""
        self.at[self.edges[which].name] = to

    @rule(relay=st.integers(0, 1))
    def die(self, relay: int) -> None:
        self.relays[relay] = self.a_relay()

    @rule(relay=st.integers(0, 1))
    def halt(self, relay: int) -> None:
        self.relays[relay].halt()

    @rule(members=st.integers(0, 12), allowed=st.none() | st.integers(0, 5))
    def put(self, members: int, allowed: int | None) -> None:
        name = f"e{len(self.members)}"
        self.members[name] = members
        self.leader.put(a_rule(name), members, self.now, allowed)

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 99), total=st.integers(0, 20))
    def allow(self, which: int, total: int) -> None:
        self.leader.allow(f"e{which % len(self.members)}", total, self.now)

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 99))
    def take_down(self, which: int) -> None:
        name = f"e{which % len(self.members)}"
        self.leader.take_down(name)
        self.down.add(name)

    @rule(seconds=st.sampled_from([0.5, 4.0, LEASE]))
    def renew(self, seconds: float) -> None:
        self.leader.renew(self.now + seconds)

    @rule(seconds=st.sampled_from([0.0, 0.5, 4.0, 6.0, LEASE]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def really(self, name: str) -> int:
        return sum(len(edge.treated.get(name, ())) for edge in self.edges)

    @invariant()
    def no_more_are_treated_than_were_reserved_and_all_of_them_are_spent(self) -> None:
        for name, members in self.members.items():
            armed_rule = self.leader[name]
            assert armed_rule.used <= members
            assert self.really(name) <= armed_rule.spent <= members

    @invariant()
    def what_is_said_of_control_is_true(self) -> None:
        for name in self.members:
            said = self.leader[name].controls
            assert said is None or said >= sum(len(e.control.get(name, ())) for e in self.edges)

    @invariant()
    def what_is_out_of_force_is_followed_by_nobody(self) -> None:
        for name in self.members:
            if self.leader[name].out_of_force(self.now):
                assert name in self.down
                for edge in self.edges:
                    follows = any(
                        each.experiment == name
                        and (each.members != 0 or edge.treated.get(name) or edge.control.get(name))
                        for each in edge.lease.rules
                    )
                    assert self.now >= edge.lease.ends or not follows


TestTier = Tier.TestCase
TestTier.settings = settings(stateful_step_count=40)


@pytest.fixture
def tier() -> Iterator[Tier]:
    tier = Tier()
    tier.begin()
    tier.put(5, None)
    tier.all_is_well()
    yield tier
    tier.teardown()


def test_a_relay_holds_a_version_when_all_its_edges_do(tier: Tier) -> None:
    tier.serve(0, {1, 2}, answered=True, lost="")  # at the first relay
    tier.take_down(0)
    for _ in range(3):
        tier.subscribe(0, "")
    assert tier.edges[0].lease.rules, "its edge has not heard of it yet"
    assert not tier.leader["e0"].out_of_force(tier.now)
    tier.poll(0, answered=True)
    assert not tier.leader["e0"].out_of_force(tier.now), "it was handed out, but is it held?"
    tier.poll(0, answered=True)
    for _ in range(2):
        tier.subscribe(0, "")
    assert tier.leader["e0"].out_of_force(tier.now)
    assert tier.leader["e0"].spent == tier.really("e0") == 2


def test_an_edge_that_goes_on_at_another_relay_is_waited_for_there(tier: Tier) -> None:
    tier.serve(0, {1, 2}, answered=True, lost="")
    tier.move(0, 1)
    tier.poll(0, answered=True)  # from now on its lease is of the second relay
    tier.pass_time(LEASE - 1)
    tier.leader.renew(tier.now + LEASE)
    tier.subscribe(1, "")
    tier.poll(0, answered=True)
    tier.pass_time(1)  # the first relay is not heard of any more: what it granted has ended
    tier.take_down(0)
    for _ in range(3):
        tier.subscribe(1, "")
    assert tier.now < tier.edges[0].lease.ends
    assert tier.edges[0].allowances.knows("e0", "treatment", 1)
    assert not tier.leader["e0"].out_of_force(tier.now)
    tier.poll(0, answered=True)
    tier.poll(0, answered=True)
    for _ in range(2):
        tier.subscribe(1, "")
    assert tier.leader["e0"].out_of_force(tier.now)
    assert tier.leader["e0"].spent >= tier.really("e0") == 2


def test_what_edges_of_a_relay_do_not_use_comes_back(tier: Tier) -> None:
    tier.serve(0, {1}, answered=False, lost="")  # granted, and its answer was too late
    assert tier.really("e0") == 0
    tier.poll(0, answered=True)
    for device in range(1, 20):
        tier.serve(1, {device}, answered=True, lost="")  # at the other relay
    assert tier.really("e0") == 3  # the first one has another in hand
    tier.pass_time(6)  # the first relay gives back what no edge there has asked for
    tier.leader.renew(tier.now + LEASE)
    tier.subscribe(0, "")
    tier.subscribe(1, "")
    tier.poll(1, answered=True)
    for device in range(20, 30):
        tier.serve(1, {device}, answered=True, lost="")
    assert tier.really("e0") == 5


def test_the_next_device_is_in_hand_and_control_costs_the_leader_nothing(tier: Tier) -> None:
    for device in range(0, 60, 3):
        tier.serve(0, {device}, answered=True, lost="")
    assert len(tier.edges[0].control["e0"]) == 20
    assert tier.line.asks == 1
    tier.serve(0, {1}, answered=True, lost="")
    assert tier.line.asks == 2  # for the one after it
    tier.serve(0, {2}, answered=True, lost="question")  # of the one after that
    assert tier.really("e0") == 2


def test_both_arms_end_with_what_a_relay_has_in_hand(tier: Tier) -> None:
    for device in (1, 2, 4, 5, 3, 7, 6, 8):  # multiples of three are control
        tier.serve(0, {device}, answered=True, lost="")
    assert tier.edges[0].treated["e0"] == {1, 2, 4, 5, 7}
    assert tier.edges[0].control["e0"] == {3}
