"""The rules board: nobody treats more than was granted, and nothing is forgotten too early."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ldfi.experiments.control.rules_board import RulesBoard
from ldfi.fit.allowance import Allowances, Enrolled
from ldfi.fit.context import Arm
from ldfi.fit.faults import Fault
from ldfi.fit.rules import Lease, Rule, read_lease
from tests.experiments.simulated import BOOT

LEASE = 10.0
EVERY = frozenset(range(100))
SOME = st.just(EVERY) | st.frozensets(st.integers(0, 3))
"""Edges, by their places."""


def a_rule(name: str) -> Rule:
    return Rule(name, name, BOOT, 0.5, 0.5, (Fault("a", "error"),))


@dataclass
class Edge:
    """A process of the edge, with the parts of ``fit`` that decide. A new one has a new name."""

    name: str
    lease: Lease = field(default_factory=Lease)
    allowances: Allowances = field(default_factory=Allowances)
    treated: dict[str, set[int]] = field(default_factory=dict)
    control: dict[str, set[int]] = field(default_factory=dict)

    def poll(
        self, board: RulesBoard, now: float, *, answered: bool, asked: int | None = None
    ) -> None:
        """Report, and take the rules; ``answered`` False: the answer is lost on its way."""
        report = self.allowances.report()
        board.heard(self.name, self.lease.version, report, now, asked=asked)
        document = board.lease(self.name, now)
        if answered:
            self.allowances.settle(report)
            self.lease = read_lease(document, now)
            self.allowances.renew(self.lease.rules)

    def serve(self, device: int, now: float) -> None:
        """A request of a device that every rule has in one of its arms."""
        if now >= self.lease.ends:
            return
        for each in self.lease.rules:
            arm: Arm = "control" if device % 3 == 0 else "treatment"
            if self.allowances.admit(each.experiment, arm, device):
                devices = self.treated if arm == "treatment" else self.control
                devices.setdefault(each.experiment, set()).add(device)


class Fleet(RuleBasedStateMachine):
    """Edges come, restart and vanish; answers get lost; rules go up and come down."""

    def __init__(self) -> None:
        super().__init__()
        self.board = RulesBoard("b", LEASE)
        self.now = 1_000.0
        self.until = 0.0
        self.names = 0
        self.edges: list[Edge] = []
        self.gone: list[Edge] = []
        self.members: dict[str, int] = {}
        self.down: set[str] = set()

    @rule(more=st.integers(1, 3))
    def appear(self, more: int) -> None:
        for _ in range(more):
            self.names += 1
            self.edges.append(Edge(f"edge{self.names}"))

    @precondition(lambda self: self.edges)
    @rule(which=st.integers(0, 99), comes_back=st.booleans())
    def vanish(self, which: int, comes_back: bool) -> None:
        self.gone.append(self.edges.pop(which % len(self.edges)))
        if comes_back:
            self.appear(1)

    @initialize(edges=st.integers(1, 3))
    def begin(self, edges: int) -> None:
        self.appear(edges)
        self.renew(LEASE)
        self.poll(EVERY, answered=True)

    @rule(which=SOME, answered=st.booleans())
    def poll(self, which: frozenset[int], answered: bool) -> None:
        for number, edge in enumerate(self.edges):
            if number in which:
                edge.poll(self.board, self.now, answered=answered)

    @rule(members=st.integers(0, 12), allowed=st.none() | st.integers(0, 5))
    def put(self, members: int, allowed: int | None) -> None:
        name = f"e{len(self.members)}"
        self.members[name] = members
        self.board.put(a_rule(name), members, self.now, allowed)

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 99), total=st.integers(0, 20))
    def allow(self, which: int, total: int) -> None:
        self.board.allow(f"e{which % len(self.members)}", total, self.now)

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 99))
    def take_down(self, which: int) -> None:
        name = f"e{which % len(self.members)}"
        self.board.take_down(name)
        self.down.add(name)

    @rule()
    def clear(self) -> None:
        self.board.clear()
        self.down |= set(self.members)

    @rule(seconds=st.floats(0.0, LEASE))
    def renew(self, seconds: float) -> None:
        self.until = max(self.until, self.now + seconds)
        self.board.renew(self.until)

    @rule(devices=st.sets(st.integers(0, 40), max_size=12), which=SOME)
    def serve(self, devices: set[int], which: frozenset[int]) -> None:
        for number, edge in enumerate(self.edges):
            if number in which:
                for device in devices:
                    edge.serve(1_000 * number + device, self.now)

    @rule(seconds=st.sampled_from([0.0, 0.5, 4.0, LEASE]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def really_used(self, name: str) -> int:
        return sum(len(edge.treated.get(name, ())) for edge in (*self.edges, *self.gone))

    @invariant()
    def no_more_are_treated_than_were_reserved_and_all_of_them_are_spent(self) -> None:
        for name, members in self.members.items():
            used = self.really_used(name)
            assert self.board[name].used <= used <= self.board[name].spent <= members

    @invariant()
    def what_is_said_of_control_is_true(self) -> None:
        for name in self.members:
            said = self.board[name].controls
            everybody = (*self.edges, *self.gone)
            assert said is None or said == sum(len(e.control.get(name, ())) for e in everybody)

    @invariant()
    def no_lease_reaches_beyond_what_is_on_record(self) -> None:
        for edge in (*self.edges, *self.gone):
            assert not edge.lease.rules or edge.lease.ends <= max(self.until, self.now) + 1e-6

    @invariant()
    def what_is_out_of_force_is_followed_by_nobody(self) -> None:
        for name in self.members:
            if not self.board[name].out_of_force(self.now):
                continue
            assert name in self.down
            for edge in (*self.edges, *self.gone):
                assert self.now >= edge.lease.ends or all(
                    each.experiment != name or each.members == 0 for each in edge.lease.rules
                )

    @invariant()
    def what_is_down_is_handed_out_to_nobody(self) -> None:
        assert set(self.board.armed()) == set(self.members) - self.down


TestFleet = Fleet.TestCase
TestFleet.settings = settings(stateful_step_count=30)


def test_once_everybody_has_confirmed_what_is_spent_is_what_was_used() -> None:
    board, edges, now = RulesBoard("b", LEASE), [Edge("one"), Edge("two")], 1_000.0
    board.renew(now + LEASE)
    for edge in edges:
        edge.poll(board, now, answered=True)
    board.put(a_rule("e"), 7, now)
    for edge in edges:
        edge.poll(board, now, answered=True)
    for device in (1, 2, 3, 4):  # three of them treated
        edges[0].serve(device, now)
    assert board["e"].spent == 7
    early = board["e"].controls
    assert early is None

    board.take_down("e")
    for edge in edges:
        edge.poll(board, now, answered=True)
    assert not board["e"].out_of_force(now)  # it was handed out, but is it held?
    for edge in edges:
        edge.poll(board, now, answered=True)

    assert board["e"].out_of_force(now)
    assert (board["e"].used, board["e"].spent, board["e"].controls) == (3, 3, 1)


def test_what_is_too_little_for_all_goes_to_those_that_ask() -> None:
    board, edges, now = RulesBoard("b", LEASE), [Edge("one"), Edge("two")], 1_000.0

    def poll() -> None:
        for edge in edges:
            edge.poll(board, now, answered=True)

    board.renew(now + LEASE)
    poll()
    board.put(a_rule("e"), 7, now, allowed=1)
    poll()
    # Given that only the second edge has devices to treat
    edges[1].serve(1, now)
    poll()
    edges[1].serve(1, now)
    assert (edges[0].treated, edges[1].treated) == ({}, {"e": {1}})
    # When more are allowed, nobody gets any who does not ask
    poll()
    edges[1].serve(2, now)
    assert edges[1].treated == {"e": {1}}
    board.allow("e", 2, now)
    poll()
    edges[1].serve(2, now)
    assert edges[1].treated == {"e": {1, 2}}
    # And never more than are reserved
    board.allow("e", 99, now)
    poll()
    for device in range(100, 120):
        edges[0].serve(device, now)
        edges[1].serve(device, now)
    assert sum(len(edge.treated["e"]) for edge in edges) == 7
    poll()
    assert board["e"].exhausted


def test_an_edge_that_says_nothing_of_control_leaves_it_unknown() -> None:
    board, now = RulesBoard("b", LEASE), 1_000.0
    board.renew(now + LEASE)
    board.heard("one", "", {}, now)
    board.put(a_rule("e"), 7, now)
    board.take_down("e")
    board.heard("one", board.version, {"e": Enrolled(1)}, now, mute=True)
    assert (board["e"].out_of_force(now), board["e"].controls) == (True, None)


def test_an_edge_that_vanishes_is_waited_for_until_its_lease_has_run_out() -> None:
    board, edge, now = RulesBoard("b", LEASE), Edge("one"), 1_000.0
    board.renew(now + 4)
    edge.poll(board, now, answered=True)
    board.put(a_rule("e"), 5, now)
    edge.poll(board, now, answered=True)
    assert edge.lease.ends == now + 4
    board.take_down("e")

    assert not board["e"].out_of_force(now + 9.9)  # the lease before it was of ten seconds
    assert board["e"].out_of_force(now + 10)
    assert board["e"].spent == 5


def test_a_version_of_an_earlier_service_confirms_nothing() -> None:
    board, now = RulesBoard("new", LEASE), 1_000.0
    board.renew(now + LEASE)
    board.heard("one", "", {}, now)
    board.put(a_rule("e"), 5, now)
    board.lease("one", now)
    board.take_down("e")
    for version in ("old-99", "new-", "new-x", "99", "new-²"):
        board.heard("one", version, {}, now)
        assert not board["e"].out_of_force(now)
    board.heard("one", board.version, {}, now)
    assert board["e"].out_of_force(now)


@given(st.integers(0, 50), st.integers(1, 20))
def test_members_are_divided_evenly_and_all_of_them(members: int, count: int) -> None:
    board = RulesBoard("b", LEASE)
    names = [f"edge{number}" for number in range(count)]
    for name in names:
        board.heard(name, "", {}, 0.0)
    board.renew(LEASE)
    board.put(a_rule("e"), members, 0.0)

    grants = [board.lease(name, 0.0)["rules"][0]["members"] for name in names]
    assert sum(grants) == members
    assert max(grants) - min(grants) <= 1
    board.heard("late", "", {}, 0.0)
    assert board.lease("late", 0.0)["rules"][0]["members"] == 0


def test_whoever_waits_is_told_of_a_change_at_once_and_otherwise_after_a_while() -> None:
    async def waited(seconds: float, *, change: bool) -> float:
        board, started = RulesBoard("b", LEASE), time.monotonic()
        waiting = asyncio.create_task(board.changed_since(board.version, seconds))
        await asyncio.sleep(0.01)
        if change:
            board.put(a_rule("e"), 1, 0.0)
        await asyncio.wait_for(waiting, 30)
        return time.monotonic() - started

    asyncio.run(waited(60, change=True))
    assert asyncio.run(waited(0.3, change=False)) >= 0.25
    asyncio.run(asyncio.wait_for(RulesBoard("b", LEASE).changed_since("another", 60), 30))
