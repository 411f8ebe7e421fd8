"""Three-phase commit: a decision is announced before it is taken, so that nobody has to block.

Right while nothing is lost; one lost acknowledgement and one lost abort let nodes decide apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.solver.protocols.commit import AGENTS, Decisions
from tests.solver.protocols.model import Message, Send
from tests.solver.protocols.proofs import FALSE, TRUE, Proofs, both, either


class ThreePhaseCommit(Decisions):
    """Rounds: ask in 1, votes in 2, announce in 3, acknowledge in 4, commit in 6."""

    monotone = False

    def __init__(self) -> None:
        super().__init__()
        self.precommitted: dict[str, Proofs] = dict.fromkeys(AGENTS, FALSE)
        self.votes: dict[str, Proofs] = dict.fromkeys(AGENTS, FALSE)
        self.timers: dict[str, set[int]] = {node: set() for node in self.nodes}

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Take one round. Who has aborted forgets that it committed, until it hears of it again."""
        if self.commit[node] and self.held_back(self.abort[node]):
            self.commit[node] = FALSE
        self.begin(node, inbox)
        yield from self.coordinate(now, inbox) if node == "C" else self.follow(node, now, inbox)
        yield from self.relay(node)

    def coordinate(self, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Play C's part."""
        if now == 1:
            for agent in AGENTS:
                yield Send(agent, "CANCOMMIT")
        acks: dict[str, Proofs] = dict.fromkeys(AGENTS, FALSE)
        for message in inbox:
            if message.body == "VOTE":
                self.votes[message.sender] = either(self.votes[message.sender], message.proofs)
            elif message.body == "ACK":
                acks[message.sender] = message.proofs
        votes = both(*self.votes.values())
        voted = any(message.body == "VOTE" for message in inbox)
        if votes and voted and not self.held_back(self.abort["C"]):
            for agent in AGENTS:
                yield Send(agent, "PRECOMMIT", votes)
        acknowledged = both(*acks.values())
        if acknowledged and not self.held_back(self.abort["C"]):
            self.next_commit["C"] = acknowledged
        if now == 5 and not self.held_back(either(acknowledged, self.commit["C"])):
            self.next_abort["C"] = TRUE

    def follow(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Play an agent's part."""
        for message in inbox:
            if message.body == "CANCOMMIT":
                self.prepared[node] = either(self.prepared[node], message.proofs)
                self.timers[node].add(now + 3)
                yield Send("C", "VOTE", message.proofs)
        for message in inbox:
            if message.body == "PRECOMMIT":
                self.precommitted[node] = either(self.precommitted[node], message.proofs)
                self.held_back(message.proofs)
                self.timers[node] = {now + 3}
                yield Send("C", "ACK", message.proofs)
        if now in self.timers[node]:
            if self.held_back(self.precommitted[node]):
                if not self.held_back(self.abort[node]):
                    self.commit[node] = self.precommitted[node]
            elif not self.held_back(self.commit[node]):
                self.next_abort[node] = self.prepared[node]
