"""The execution model: rounds, lost messages, frozen nodes.

A message sent in round t arrives in round t + 1 or never. ``O(x,y,t)``: all that x sends to y in
round t is lost; only for t < EFF. ``C(x,t)``: x stops in round t, its last state stays; at most
``crashes`` nodes do. What a run shows is judged in round EOT. To the explorer a fault is a domain:
it hits the events it prevents, and one event of its own, so that no fault implies another one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from tests.solver.protocols.proofs import FALSE, TRUE, Proofs, both

Goal: TypeAlias = str
Faults: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Message:
    """What arrived, from whom, and why."""

    sender: str
    body: str
    proofs: Proofs


@dataclass(frozen=True, slots=True)
class Send:
    """What a node sends in a round, and why."""

    receiver: str
    body: str
    proofs: Proofs = TRUE


class Protocol(ABC):
    """One execution's state. A subclass is a protocol; every execution makes a new object.

    ``relied``: proofs of facts that kept something from happening: a rule was held back by what
    had arrived, so losing it may change the outcome.
    """

    nodes: tuple[str, ...]
    monotone = True
    """Whether no fault keeps a violation away that others would cause."""

    def __init__(self) -> None:
        self.relied: Proofs = TRUE
        self.up: dict[str, Proofs] = dict.fromkeys(self.nodes, TRUE)
        """Per node whether it never crashes in this run."""

    @abstractmethod
    def step(self, node: str, now: int, inbox: list[Message]) -> Iterator[Send]:
        """Take one node's round."""

    @abstractmethod
    def goals(self) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Return for each goal whether its precondition holds, and the proofs of its postcondition.

        The precondition is taken for granted in the proofs: where it does not hold, all is well.
        """

    def held_back(self, fact: Proofs) -> bool:
        """Return whether a rule guarded by "not ``fact``" is held back; remembers what held it."""
        if fact:
            self.relied = both(self.relied, fact)
        return bool(fact)


@dataclass(frozen=True)
class Setting:
    """A protocol with its bounds. ``eot``: rounds; ``eff``: first round without losses."""

    protocol: type[Protocol]
    eot: int
    eff: int
    crashes: int

    @cached_property
    def first_sends(self) -> dict[str, int]:
        """Per node the first round in which it sends something when nothing fails."""
        first: dict[str, int] = {}
        for sender, _, now in _Execution(self, frozenset()).sent:
            first.setdefault(sender, now)
        return first

    @cached_property
    def omissions(self) -> list[str]:
        """All losses within the bounds, on channels that any run with one fault less uses."""
        nodes = self.protocol.nodes
        return [
            f"O({x},{y},{t})" for t in range(1, self.eff) for x in nodes for y in nodes if x != y
        ]

    @cached_property
    def crash_faults(self) -> list[str]:
        """All crashes within the bounds."""
        if not self.crashes:
            return []
        return [
            f"C({x},{t})" for x, first in self.first_sends.items() for t in range(first, self.eot)
        ]

    @cached_property
    def events(self) -> list[str]:
        """Names of the events: ``x>y@t`` for a message that arrives, ``up(x)``."""
        nodes = self.protocol.nodes
        sends = [
            f"{x}>{y}@{t}" for t in range(1, self.eot + 1) for x in nodes for y in nodes if x != y
        ]
        return [*sends, *(f"up({x})" for x in nodes)]

    @cached_property
    def event_bits(self) -> dict[str, int]:
        """Per event its bit."""
        return {event: 1 << number for number, event in enumerate(self.events)}

    @cached_property
    def domains(self) -> dict[str, frozenset[str]]:
        """Per fault the events it prevents, and the fault's own event."""
        result = {}
        for fault in self.omissions:
            x, y, t = parse(fault)
            result[fault] = frozenset({f"!{fault}", f"{x}>{y}@{t}"})
        for fault in self.crash_faults:
            x, _, t = parse(fault)
            prevented = {
                f"{x}>{y}@{later}"
                for later in range(t, self.eot + 1)
                for y in self.protocol.nodes
                if y != x
            }
            result[fault] = frozenset({f"!{fault}", f"up({x})", *prevented})
        return result

    @cached_property
    def exclusions(self) -> list[frozenset[str]]:
        """Events are no faults by themselves; a node crashes once; not too many crash."""
        own = [f"!{fault}" for fault in self.domains]
        alone = [frozenset({event}) for event in (*self.events, *own)]
        groups: dict[str, list[str]] = {}
        for fault in self.crash_faults:
            groups.setdefault(parse(fault)[0], []).append(fault)
        twice = [frozenset(pair) for group in groups.values() for pair in combinations(group, 2)]
        many = [
            frozenset(each)
            for each in combinations(self.crash_faults, self.crashes + 1)
            if len({parse(fault)[0] for fault in each}) > self.crashes
        ]
        return [*alone, *twice, *many]

    def run(self, faults: Faults, *, explain: bool = True) -> Mapping[Goal, tuple[bool, Proofs]]:
        """Run one execution: per goal whether its precondition holds, and proofs if it is
        reached."""
        return _Execution(self, faults, explain=explain).state.goals()

    @cached_property
    def expected(self) -> frozenset[Goal]:
        """The goals that the run without faults reaches."""
        return frozenset(
            goal for goal, (pre, post) in self.run(frozenset()).items() if pre and post
        )

    def violates(self, faults: Faults) -> bool:
        """Return whether an execution misses a goal although its precondition holds."""
        goals = self.run(faults, explain=False)
        return any(pre and not post for goal, (pre, post) in goals.items() if goal in self.expected)


def parse(fault: str) -> tuple[str, str, int]:
    """Parse sender, receiver (empty for a crash), round."""
    parts = fault[2:-1].split(",")
    return parts[0], parts[1] if len(parts) == 3 else "", int(parts[-1])


class _Execution:
    """Runs a protocol for EOT rounds under some faults."""

    def __init__(self, setting: Setting, faults: Faults, *, explain: bool = True) -> None:
        self.sent: list[tuple[str, str, int]] = []
        state = self.state = setting.protocol()
        lost = {parse(fault) for fault in faults if fault[0] == "O"}
        stops = {parse(fault)[0]: parse(fault)[2] for fault in faults if fault[0] == "C"}
        bits = setting.event_bits
        for node in state.nodes:
            if node in stops:
                state.up[node] = FALSE
            elif explain:
                state.up[node] = (bits[f"up({node})"],)
        inboxes: dict[str, list[Message]] = {node: [] for node in state.nodes}
        for now in range(1, setting.eot + 1):
            following: dict[str, list[Message]] = {node: [] for node in state.nodes}
            for node in state.nodes:
                if stops.get(node, now + 1) <= now:
                    continue
                for send in list(state.step(node, now, inboxes[node])):
                    own = send.receiver == node
                    if not own:
                        self.sent.append((node, send.receiver, now))
                        if (node, send.receiver, now) in lost:
                            continue
                    proofs = send.proofs
                    if explain and not own:
                        proofs = both(proofs, (bits[f"{node}>{send.receiver}@{now}"],))
                    following[send.receiver].append(Message(node, send.body, proofs))
            inboxes = following
