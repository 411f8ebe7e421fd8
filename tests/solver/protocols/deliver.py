"""Reliable broadcast, five ways: a broadcasts one payload to b and c in round 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.solver.protocols.model import Goal, Message, Protocol, Send
from tests.solver.protocols.proofs import FALSE, TRUE, Proofs, both, either


class SimpleDeliver(Protocol):
    """a sends the payload once; whoever receives it stores it."""

    nodes = ("a", "b", "c")

    def __init__(self) -> None:
        super().__init__()
        self.has: dict[str, Proofs] = {"a": TRUE, "b": FALSE, "c": FALSE}

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Store, then whatever the variant sends."""
        for message in inbox:
            if message.body == "payload":
                self.has[node] = either(self.has[node], message.proofs)
        yield from self.sends(node, now, inbox)

    def sends(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Send what this variant sends."""
        if node == "a" and now == 1:
            yield from self.to_others(node, "payload", TRUE)

    def to_others(self, node: str, body: str, proofs: Proofs) -> Iterator[Send]:
        """Send the same to everybody else."""
        for other in self.nodes:
            if other != node:
                yield Send(other, body, proofs)

    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Promise for each correct receiver that has the payload: no correct node lacks it."""
        result = {}
        for node in ("b", "c"):
            pre = bool(self.has[node] and self.up[node])
            others = [self.has[each] for each in self.nodes if self.up[each] and each != node]
            result[node] = (pre, both(*others) if pre else FALSE)
        return result


class RetryDeliver(SimpleDeliver):
    """a sends again in every round."""

    def sends(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Send what this variant sends."""
        if node == "a":
            yield from self.to_others(node, "payload", TRUE)


class RedundantDeliver(SimpleDeliver):
    """Everybody who has it sends it to both others in every round."""

    def sends(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Send what this variant sends."""
        if self.has[node]:
            yield from self.to_others(node, "payload", self.has[node])


class AckDeliver(SimpleDeliver):
    """Everybody who has it sends it to whoever has not acknowledged it to him."""

    def __init__(self) -> None:
        super().__init__()
        self.acked: set[tuple[str, str]] = set()

    def sends(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Send what this variant sends."""
        for message in inbox:
            if message.body == "ack":
                self.acked.add((node, message.sender))
            else:
                yield Send(message.sender, "ack", message.proofs)
        if self.has[node]:
            for send in self.to_others(node, "payload", self.has[node]):
                if (node, send.receiver) not in self.acked:
                    yield send


class ClassicDeliver(SimpleDeliver):
    """Every receipt is relayed to both others at once, and stored one round later."""

    def __init__(self) -> None:
        super().__init__()
        self.has["a"] = FALSE
        self.storing: dict[str, Proofs] = dict.fromkeys(self.nodes, FALSE)

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Store what came a round ago, relay what comes now."""
        self.has[node] = either(self.has[node], self.storing[node])
        event = either(*(message.proofs for message in inbox))
        if node == "a" and now == 1:
            event = TRUE
        self.storing[node] = event
        if event:
            yield from self.to_others(node, "payload", event)
