"""Leader election by bullies, and single-decree Paxos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.solver.protocols.model import Goal, Message, Protocol, Send
from tests.solver.protocols.proofs import FALSE, TRUE, Proofs, both, either


class Bully(Protocol):
    """a and b start a ballot for themselves; who has not heard of a higher one passes it on."""

    nodes = ("a", "b", "c")
    majority = 1

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, dict[tuple[str, str], Proofs]] = {node: {} for node in self.nodes}
        self.present: dict[str, dict[str, Proofs]] = {node: {} for node in self.nodes}

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Log the ballots of this round, pass on those that nothing higher holds back."""
        log, present = self.log[node], dict[str, Proofs]()
        for message in inbox:
            key = message.sender, message.body
            log[key] = either(log.get(key, FALSE), message.proofs)
            present[message.body] = either(present.get(message.body, FALSE), message.proofs)
        self.present[node] = present
        ballots = {node: TRUE} if now == 1 and node in {"a", "b"} else present
        for candidate, proofs in ballots.items():
            higher = either(*(log[key] for key in log if key[1] > candidate))
            if not self.held_back(higher):
                for receiver in self.nodes:
                    yield Send(receiver, candidate, proofs)

    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Promise a leader if there is a ballot, and not two; a stopped node receives none."""
        leaders: dict[str, Proofs] = {}
        running = [node for node in self.nodes if self.up[node]]
        for node in running:
            for candidate, present in self.present[node].items():
                senders = [p for (_, named), p in self.log[node].items() if named == candidate]
                if len(senders) > self.majority:
                    pairs = [both(x, y) for x in senders for y in senders if x is not y]
                    why = both(present, either(*pairs))
                    leaders[candidate] = either(leaders.get(candidate, FALSE), why)
        pre = any(self.present[node] for node in running)
        one = either(*leaders.values()) if len(leaders) == 1 else FALSE
        return {"one leader": (pre, both(one, self.relied))}


class PaxosSynod(Protocol):
    """a proposes with ballot 4, b with ballot 5; three nodes accept."""

    nodes = ("a", "b", "c")
    proposals: Mapping[str, tuple[int, str]] = {"a": (4, "peter"), "b": (5, "foobar")}

    def __init__(self) -> None:
        super().__init__()
        self.highest: dict[str, dict[int, Proofs]] = {node: {} for node in self.nodes}
        self.accepted: dict[str, dict[tuple[int, str], Proofs]] = {n: {} for n in self.nodes}
        self.answers: dict[str, dict[tuple[int, str], tuple[int, str, Proofs]]] = {
            node: {} for node in self.nodes
        }
        self.ballot = {node: ballot for node, (ballot, _) in self.proposals.items()}
        self.timers: dict[str, set[int]] = {node: set() for node in self.nodes}

    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Take one round: acceptor first, then proposer."""
        for message in inbox:
            kind, number, value = message.body.split(" ", 2)
            ballot = int(number)
            if kind == "PREPARE":
                seen = self.highest[node]
                seen[ballot] = either(seen.get(ballot, FALSE), message.proofs)
            elif kind == "ACCEPT":
                known = self.accepted[node]
                known[ballot, value] = either(known.get((ballot, value), FALSE), message.proofs)
        for message in inbox:
            kind, number, value = message.body.split(" ", 2)
            if kind == "PREPARE":
                yield from self.answer(node, int(number), message)
            elif kind == "PROMISE":
                before, _, old = value.partition(" ")
                self.answers[node][int(number), message.sender] = int(before), old, message.proofs
        if node in self.proposals:
            yield from self.propose(node, now)

    def answer(self, node: str, ballot: int, message: Message) -> Iterator[Send]:
        """Promise, unless something higher was heard of."""
        higher = either(*(p for known, p in self.highest[node].items() if known > ballot))
        if self.held_back(higher):
            return
        accepted = max(self.accepted[node], default=(1, "anything"))
        proofs = both(message.proofs, self.accepted[node].get(accepted, TRUE))
        yield Send(message.sender, f"PROMISE {ballot} {accepted[0]} {accepted[1]}", proofs)

    def propose(self, node: str, now: int) -> Iterator[Send]:
        """Ask with a ballot; ask again with the next one if nothing was accepted in time."""
        value = self.proposals[node][1]
        if now == 1 or (now in self.timers[node] and not self.held_back(self.any_accepted(node))):
            if now > 1:
                self.ballot[node] += 3
            self.timers[node] = {now + 2}
            for receiver in self.nodes:
                yield Send(receiver, f"PREPARE {self.ballot[node]} {value}")
        ballots = {ballot for ballot, _ in self.answers[node]}
        for ballot in sorted(ballots):
            answers = [a for (b, _), a in self.answers[node].items() if b == ballot]
            if len(answers) > 1:
                before, old, _ = max(answers, key=lambda answer: answer[:2])
                chosen = value if before == 1 else old
                why = both(*(proofs for _, _, proofs in answers))
                for receiver in self.nodes:
                    yield Send(receiver, f"ACCEPT {ballot} {chosen}", why)

    def any_accepted(self, node: str) -> Proofs:
        """Collect proofs that the node has accepted something."""
        return either(*self.accepted[node].values())

    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Correct nodes that accepted agree (on a value that the failure-free run decides)."""
        values: dict[str, bool] = {}
        for node in self.nodes:
            for _, value in self.accepted[node]:
                if self.up[node]:
                    values[value] = True
        return {
            value: (value in values, FALSE if len(values) > 1 else self.relied)
            for _, value in self.proposals.values()
        }
