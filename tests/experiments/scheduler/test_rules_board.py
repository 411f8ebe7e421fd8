"""The rules board: nobody treats more than was granted, and nothing is forgotten too early."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import select

from ldfi.cli.experiment_view import side_by_side
from ldfi.cli.terminal import console
from ldfi.experiments.api.experiment_view import ExperimentView
from ldfi.experiments.scheduler.armed_rule import FIRST_LOAN, UNPROVEN, Allotment
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.allowance import Allowances, Enrolled
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.rules import Lease, Rule, read_lease
from ldfi.testing.world import QUICK, World
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


@given(st.integers(0, 90), st.integers(1, 20))
def test_members_are_divided_evenly_as_far_as_edges_are_lent_any(members: int, count: int) -> None:
    board = RulesBoard("b", LEASE)
    names = [f"edge{number}" for number in range(count)]
    for name in names:
        board.heard(name, "", {}, 0.0)
    board.renew(LEASE)
    board.put(a_rule("e"), members, 0.0)

    grants = [board.lease(name, 0.0)["rules"][0]["members"] for name in names]
    assert sum(grants) == min(members, max(FIRST_LOAN, members // UNPROVEN), FIRST_LOAN * count)
    board.heard("late", "", {}, 0.0)
    assert board.lease("late", 0.0)["rules"][0]["members"] == 0


@given(
    st.integers(0, 300),
    st.lists(
        st.tuples(
            st.sampled_from(["appear", "fetch", "ask", "treat", "vanish", "later", "lie", "allow"]),
            st.integers(0, 5),
            st.integers(1, 60),
        ),
        max_size=60,
    ),
)
@example(40_000, [("appear", 0, 1), ("allow", 0, 1), ("vanish", 0, 1), ("later", 0, 1)])
@settings(deadline=None)
def test_no_edge_is_lent_more_than_shown(members: int, steps: list[tuple[str, int, int]]) -> None:
    """Edges are made up, vanish, come back late under their names, and say what is not true; the
    model counts each device that one may treat by what it has in hand."""
    board, now, asked = RulesBoard("b", LEASE), 1_000.0, 0
    may: dict[str, int] = {}
    board.renew(now + LEASE)
    board.heard("e0", "", {}, now, asked=0)
    board.put(a_rule("x"), members, now)
    for what, which, much in steps:
        name, armed_rule = f"e{which}", board["x"]
        if what == "later":
            now += LEASE + 1
            board.renew(now + LEASE)
        elif what == "allow":
            board.allow("x", members, now)
        elif what == "ask":
            for _ in range(much):
                asked += 1
                may[name] = may.get(name, 0) + board.ask(name, "x", "treatment", asked, now)
        elif what in {"treat", "lie"}:
            count = much * 1_000_000 if what == "lie" else min(much, may.get(name, 0))
            board.heard(name, board.version, {"x": Enrolled(count)}, now, asked=0)
        elif what in {"appear", "fetch"}:
            board.heard(name, "", {}, now, asked=0)
        if what == "fetch":
            dealt = board.lease(name, now)["rules"][0]["members"]
            part = armed_rule.parts.get(name)
            may[name] = max(may.get(name, 0), dealt + (part.granted if part else 0))
        assert sum(may.values()) <= armed_rule.spent <= armed_rule.given <= members
        lent = {n: (p.lent, p.heard.treatment) for n, p in armed_rule.parts.items()}
        assert all(loan <= max(FIRST_LOAN, shown) for loan, shown in lent.values())
        unproven = sum(loan for loan, shown in lent.values() if not shown)
        assert unproven <= max(FIRST_LOAN, members // UNPROVEN)


def test_an_edge_that_is_made_up_and_vanishes_costs_nothing_or_a_loan_and_is_named() -> None:
    board, real, now = RulesBoard("b", LEASE), Edge("real"), 1_000.0
    board.renew(now + 60)
    # Given invented edges that are there when a rule is armed, of which one takes its lease
    board.heard("invented", "", {}, now)
    board.put(a_rule("e"), 40_000, now)
    assert (board["e"].given, board["e"].spent) == (FIRST_LOAN, 0)
    # When it is gone and never fetched what was dealt to it, that is there for others
    now += LEASE + 1
    board.allow("e", 40_000, now)
    assert board["e"].given == 0
    board.heard("taker", "", {}, now, token="stolen")
    board["e"].in_advance.append("taker")
    board["e"].parts["taker"] = Allotment()
    board.allow("e", 40_000, now)
    board.lease("taker", now)
    # And a real one asks device by device, reports, and is lent more each time
    granted = 0
    for number in range(1, 2_000):
        real.poll(board, now, answered=True, asked=number - 1)
        if not board.ask("real", "e", "treatment", number, now, token="shop"):
            break
        real.allowances.admit("e", "treatment", number, granted=True)
        granted += 1
    assert granted == 1_999
    board.take_down("e")
    real.poll(board, now, answered=True, asked=2_000)
    real.poll(board, now, answered=True, asked=2_000)
    now += LEASE + 1
    assert board["e"].out_of_force(now)
    assert board["e"].spent == granted + FIRST_LOAN
    shown = [(each.edge, each.token, each.given, each.used) for each in board["e"].shares()]
    assert shown == [("real", "", granted, granted), ("taker", "stolen", FIRST_LOAN, 0)]


def test_an_experiment_on_record_says_which_edge_was_given_and_used_how_many() -> None:
    with World.in_memory() as world:
        world.finish(world.start(QUICK))
        with world.database.read() as session:
            rows = session.scalars(select(ExperimentRow).where(ExperimentRow.armed_at.is_not(None)))
            for row in rows:
                edges = row.comparison["edges"]
                assert {*map(tuple, edges)} == {
                    ("edge", "token", "behind", "given", "used", "by_address")
                }
                assert sum(each["used"] for each in edges) == row.comparison["treated"]
                table = side_by_side(ExperimentView.of(row).model_dump(mode="json"))
                screen = console()
                with screen.capture() as shown:
                    screen.print(table)
                assert all(each["edge"] in shown.get() for each in edges)


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
