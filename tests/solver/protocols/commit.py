"""Two-phase commit, with a timeout, and with collaborative termination.

A coordinator C and agents a, b, d decide one transaction to which every agent can agree. One rule
is mended: C commits only while it is still running. As Molly ships it, C commits two rounds after
it has aborted, and every crash of an agent shows up as a disagreement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from tests.solver.protocols.model import Goal, Message, Protocol, Send
from tests.solver.protocols.proofs import FALSE, TRUE, Proofs, both, either

AGENTS = ("a", "b", "d")


class Decisions(Protocol):
    """Nodes that commit or abort, tell their peers in every round, and should agree."""

    nodes = ("C", *AGENTS)
    peers: Mapping[str, tuple[str, ...]] = {
        "C": AGENTS,
        "a": ("b", "d"),
        "b": ("a", "d"),
        "d": ("a", "b"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.prepared: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)
        self.commit: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)
        self.abort: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)
        self.next_commit: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)
        self.next_abort: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)

    def decision(self, node: str) -> Proofs:
        """Collect proofs that the node has decided."""
        return either(self.commit[node], self.abort[node])

    def begin(self, node: str, inbox: list[Message]) -> None:
        """Take over what was decided for this round, and what others decided."""
        self.abort[node] = either(self.abort[node], self.next_abort[node])
        self.commit[node] = either(self.commit[node], self.next_commit[node])
        self.next_abort[node] = self.next_commit[node] = FALSE
        for message in inbox:
            if message.body == "COMMIT":
                self.commit[node] = either(self.commit[node], message.proofs)
            elif message.body == "ABORT":
                self.abort[node] = either(self.abort[node], message.proofs)

    def relay(self, node: str) -> Iterator[Send]:
        """Tell the peers what was decided."""
        for body, decided in (("COMMIT", self.commit[node]), ("ABORT", self.abort[node])):
            if decided:
                for peer in self.peers[node]:
                    yield Send(peer, body, decided)

    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Promise termination: two nodes decide if one is prepared; and agreement: no two
        decisions differ."""
        two = [both(self.decision(x), self.decision(y)) for x, y in combinations(self.nodes, 2)]
        decided = any(self.decision(node) for node in self.nodes)
        split = any(self.commit.values()) and any(self.abort.values())
        return {
            "termination": (any(self.prepared.values()), either(*two)),
            "agreement": (decided, FALSE if split else self.relied),
        }


class TwoPhaseCommit(Decisions):
    """C asks until all have voted, then commits; nobody ever gives up."""

    def __init__(self) -> None:
        super().__init__()
        self.votes: dict[str, Proofs] = dict.fromkeys(AGENTS, FALSE)

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Take one round."""
        self.begin(node, inbox)
        if node == "C":
            for message in inbox:
                if message.body == "VOTE":
                    self.votes[message.sender] = either(self.votes[message.sender], message.proofs)
            if not self.decision("C"):
                for agent in AGENTS:
                    yield Send(agent, "PREPARE")
                self.next_commit["C"] = both(*self.votes.values())
            self.time_out(now)
        else:
            for message in inbox:
                if message.body == "PREPARE":
                    self.prepared[node] = either(self.prepared[node], message.proofs)
                    yield Send("C", "VOTE", message.proofs)
        yield from self.terminate(node, now, inbox)
        yield from self.relay(node)

    def time_out(self, now: int) -> None:
        """Do what C does when its patience ends."""

    def terminate(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Do what a node does about not knowing the outcome."""
        yield from ()


class TwoPhaseCommitTimeout(TwoPhaseCommit):
    """C aborts if a vote is missing in round 4."""

    def time_out(self, now: int) -> None:
        """Do what C does when its patience ends."""
        if now == 4 and not self.held_back(both(*self.votes.values())):
            self.next_abort["C"] = TRUE


class TwoPhaseCommitOptimist(TwoPhaseCommit):
    """Termination is asked for only while C does not crash."""

    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Promise as ever, but nothing if C crashes."""
        goals = dict(super().goals())
        pre, post = goals["termination"]
        goals["termination"] = (pre and bool(self.up["C"]), post)
        return goals


class TwoPhaseCommitTimeoutOptimist(TwoPhaseCommitOptimist, TwoPhaseCommitTimeout):
    """Both."""


class CollaborativeTermination(TwoPhaseCommitTimeout):
    """An agent that does not hear of the outcome asks the others."""

    peers: Mapping[str, tuple[str, ...]] = {
        "C": AGENTS,
        "a": ("b", "d", "C"),
        "b": ("a", "d", "C"),
        "d": ("a", "b", "C"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.timers: dict[tuple[str, int], Proofs] = {}

    def terminate(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Ask when a timer fires; answer who asks."""
        for message in inbox:
            if message.body == "PREPARE":
                self.timers[node, now + 3] = message.proofs
            elif (
                message.body == "REQUEST"
                and not self.decision(node)
                and not self.held_back(self.prepared[node])
            ):
                self.abort[node] = message.proofs
        if (node, now) in self.timers and not self.decision(node):
            for peer in self.peers[node]:
                yield Send(peer, "REQUEST", self.timers[node, now])
