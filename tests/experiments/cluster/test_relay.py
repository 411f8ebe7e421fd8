"""Edges behind processes that do not lead: what is armed reaches them, what they ask is granted or
refused, and what they used is known, as if there were one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.fit import allowance_requests
from ldfi.fit.edge import Edge
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.rules import Rule
from ldfi.fit.runtime import Runtime, activate
from tests.experiments.api.test_forward import says_where_it_is
from tests.experiments.members import until
from tests.fit.applications import KEYS
from tests.fit.edges import a_rule, eventually
from tests.kit.service import GIVEN, client_of, service

pytestmark = pytest.mark.servers

KEY = b"the same in all of them"
ASKED = {"method": "GET", "path": "/boot"}


class Service:
    """A leader, and two processes that relay."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.app = service(url, role="scheduler", member_key=KEY, halt_at=("127.0.0.1", 0))
        self.leader = stack.enter_context(client_of(self.app))
        until(lambda: self.leader.get("/readyz").json()["status"] == "ready")
        says_where_it_is(url, str(self.leader.base_url))
        relays = [service(url, role="api", member_key=KEY) for _ in range(2)]
        self.relays = [stack.enter_context(client_of(each)) for each in relays]

    @property
    def board(self) -> RulesBoard:
        board: RulesBoard = self.app.state.engine.board
        return board

    def at_the_board(self, work: Callable[[RulesBoard, float], Any]) -> None:
        """Have something done at the leader's board, in the leader's loop."""
        loop = self.app.state.halt_door._engines_loop
        loop.call_soon_threadsafe(lambda: work(self.board, time.time()))

    def arm(self, rule: Rule, members: int) -> None:
        def put(board: RulesBoard, now: float) -> None:
            board.renew(now + 60)
            board.put(rule, members, now)

        self.at_the_board(put)


@pytest.fixture
def served(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    # nobody is late on a machine that is busy
    monkeypatch.setattr(allowance_requests, "ASK_SECONDS", 5.0)
    activate(Runtime("front", KEYS))
    with ExitStack() as stack:
        stack.callback(activate, None)
        yield Service(postgresql_url, stack)


@contextmanager
def edges(*clients: httpx.Client) -> Iterator[list[Edge]]:
    polls = [RulesPoll(str(client.base_url), GIVEN["edge"]) for client in clients]
    for poll in polls:
        poll.start()
    try:
        eventually(lambda: all(poll.asks.answered for poll in polls), 10)
        yield [Edge(poll) for poll in polls]
    finally:
        for poll in polls:
            poll.stop()


def stamped(edge: Edge, device: str) -> bool:
    return "fit=" in edge.baggage_onward("", device, lambda: ASKED)


def knows(edge: Edge, *experiments: str) -> bool:
    assert edge._poll is not None
    return {rule.experiment for rule in edge._poll.lease().rules} == {*experiments}


def test_edges_of_several_relays_share_what_may_be_treated(served: Service) -> None:
    rule = a_rule("shared", 0.5, 0.3)
    with edges(*served.relays, *served.relays, served.leader) as those:
        eventually(lambda: served.board.edges(time.time()) >= len(those), 10)
        served.arm(rule, 7)
        eventually(lambda: all(knows(edge, "shared") for edge in those), 10)
        arms: dict[str, dict[str, Edge]] = {"treatment": {}, "control": {}}
        for number in range(60):
            device, edge = f"d{number}", those[number % len(those)]
            arm = rule.arm_of(device)
            if arm is not None and stamped(edge, device):
                arms[arm][device] = edge
        # All that was allowed, by edges none of which had a part of its own
        assert len(arms["treatment"]) == 7
        assert len(set(arms["treatment"].values())) > 1
        # And when that is used up, control ends as well
        last = max(int(device[1:]) for device in arms["treatment"])
        assert all(int(device[1:]) < last for device in arms["control"])
        # Whoever is enrolled stays so, at the same edge
        assert all(stamped(edge, device) for arm in arms.values() for device, edge in arm.items())
        eventually(lambda: served.board["shared"].used == 7, 10)
        eventually(lambda: served.board["shared"].enrolled == len(arms["control"]), 10)
        # When it is taken down, no edge follows it, and that is known before their leases end
        began = time.monotonic()
        served.at_the_board(lambda board, _: board.take_down("shared"))
        eventually(lambda: all(knows(edge) for edge in those), 5)
        assert not any(stamped(edge, d) for each in arms.values() for d, edge in each.items())
        eventually(lambda: served.board["shared"].out_of_force(time.time()), 8)
        assert time.monotonic() - began < served.board.seconds(time.time()) - 1
        assert served.board["shared"].spent == 7
        assert served.board["shared"].controls == len(arms["control"])


def test_what_is_halted_reaches_edges_behind_relays(served: Service) -> None:
    with edges(*served.relays) as those:
        eventually(lambda: served.board.edges(time.time()) >= len(those), 10)
        served.arm(a_rule("e"), 3)
        eventually(lambda: all(knows(edge, "e") for edge in those), 10)
        operator = {"Authorization": f"Bearer {GIVEN['operator']}"}
        first, second = those
        halted = served.relays[0].post("/api/v1/halt", json={"reason": "x"}, headers=operator)
        assert halted.is_success
        # Its own edges hear of it without a leader; the leader looks at the record every second
        eventually(lambda: knows(first), 1)
        eventually(lambda: knows(second), 5)


def test_an_edge_that_cannot_ask_is_served_by_a_relay_too(served: Service) -> None:
    """It polls, as edges did before there were streams."""
    relay, asked = served.relays[0], {"edge": "old", "wait": "0", "control": ""}
    token = {"Authorization": f"Bearer {GIVEN['edge']}"}

    def rules(**more: str) -> list[dict[str, Any]]:
        time.sleep(0.1)  # no edge asks more often
        answer = relay.get("/api/v1/edge/rules", params={**asked, **more}, headers=token)
        found: list[dict[str, Any]] = answer.json()["rules"]
        return found

    with edges(*served.relays):
        assert rules() == []
        eventually(lambda: served.board.edges(time.time()) >= 3, 10)
        served.arm(a_rule("e"), 3)
        eventually(lambda: [each["experiment"] for each in rules()] == ["e"], 10)
        assert [each["members"] for each in rules()] == [0]
        eventually(lambda: rules(wants="e")[0]["members"] > 0, 10)
