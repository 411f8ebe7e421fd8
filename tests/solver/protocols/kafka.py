"""Kafka 0.8 replication: a write that was acknowledged should survive its leader.

Replicas a (leader), b, c; a client C; Zookeeper Z, one abstract node that never stops telling who
is a member. If both joins are lost, the leader is alone in the set it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.solver.protocols.model import Goal, Message, Protocol, Send
from tests.solver.protocols.proofs import FALSE, TRUE, Proofs, both, either

REPLICAS = ("a", "b", "c")


class Kafka(Protocol):
    """One write, from registration to acknowledgement in round 7."""

    nodes = (*REPLICAS, "C", "Z")

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, dict[str, Proofs]] = {node: {} for node in self.nodes}
        self.members["Z"]["a"] = TRUE
        self.clients: dict[str, Proofs] = {}
        self.leader: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)
        self.write: dict[str, Proofs] = dict.fromkeys(REPLICAS, FALSE)
        self.writers: dict[str, dict[str, Proofs]] = {node: {} for node in REPLICAS}
        self.confirmed: dict[str, dict[str, Proofs]] = {node: {} for node in REPLICAS}
        self.acknowledged: Proofs = FALSE

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Take one round."""
        for message in inbox:
            self.receive(node, message)
        if node == "Z":
            yield from self.announce(now)
        elif node == "C":
            if now == 1:
                yield Send("Z", "REGISTER")
            if now in {2, 3, 4} and self.leader["C"]:
                yield Send("a", "WRITE", self.leader["C"])
        else:
            if now == 1:
                yield Send("Z", "JOIN")
            yield from self.replicate(node)

    def receive(self, node: str, message: Message) -> None:
        """Learn from a message."""
        kind, _, about = message.body.partition(" ")
        if kind == "JOIN":
            _learn(self.members["Z"], message.sender, message.proofs)
        elif kind == "REGISTER":
            _learn(self.clients, message.sender, message.proofs)
        elif kind == "MEMBER":
            _learn(self.members[node], about, message.proofs)
        elif kind == "LEADER":
            self.leader[node] = either(self.leader[node], message.proofs)
        elif kind == "WRITE":
            self.write[node] = either(self.write[node], message.proofs)
            _learn(self.writers[node], message.sender, message.proofs)
        elif kind == "INTERNAL-ACK":
            _learn(self.confirmed[node], message.sender, message.proofs)
        elif kind == "ACK":
            self.acknowledged = either(self.acknowledged, message.proofs)

    def announce(self, now: int) -> Iterator[Send]:
        """Tell members and clients who is a member, and who leads; Z does."""
        if now < 2:
            return
        for receiver, known in (*self.members["Z"].items(), *self.clients.items()):
            for member, joined in self.members["Z"].items():
                yield Send(receiver, f"MEMBER {member}", both(known, joined))
            yield Send(receiver, "LEADER", known)

    def replicate(self, node: str) -> Iterator[Send]:
        """Pass the write on, or confirm it, as a replica that has it."""
        written = self.write[node]
        if not written:
            return
        if node == "a" and self.leader["a"]:
            others = {m: known for m, known in self.members["a"].items() if m != "a"}
            missing = [member for member in others if member not in self.confirmed["a"]]
            for member in missing:
                yield Send(member, "WRITE", both(written, others[member]))
            if not missing:
                yield Send("C", "ACK", both(written, *self.confirmed["a"].values()))
        else:
            for writer, proofs in self.writers[node].items():
                if writer in REPLICAS:
                    yield Send(writer, "INTERNAL-ACK", proofs)

    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Promise that what was acknowledged is on a replica that never crashed."""
        kept = [both(self.write[node], self.up[node]) for node in REPLICAS]
        return {"durability": (bool(self.acknowledged), either(*kept))}


def _learn(known: dict[str, Proofs], name: str, proofs: Proofs) -> None:
    known[name] = either(known.get(name, FALSE), proofs)
