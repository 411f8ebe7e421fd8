"""App Boot: seeded call trees with planted failures, simulated exactly.

The shape is that of the request Netflix explored in "Automating Failure Testing Research at
Internet Scale" (SoCC 2016): about a hundred failure points, most of them optional. A call makes its
steps in order. A step has alternatives (a call, its fallback, the fallback's fallback) and is
required or optional; a required step that fails fails its caller at once. What can hurt the root is
planted: calls without an alternative, and pairs of a call and its fallback.

The lineage is a call graph's: every call that succeeded below calls that all succeeded counts as
needed, whether it was or not. Blame follows the errors from the root to their end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_DEPTH = 6


@dataclass(slots=True, eq=False)
class Call:
    """An injection point, and the steps its callee makes."""

    name: str
    depth: int
    planted: bool
    """Whether its failure, alone or with its alternative, fails the root."""
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Step:
    """Alternatives tried in order until one succeeds."""

    alternatives: list[Call]
    required: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulated request. ``support`` of a good one, ``blame`` of a bad one."""

    succeeded: bool
    support: frozenset[str]
    blame: frozenset[str]
    fired: frozenset[str]


@dataclass(slots=True)
class AppBoot:
    """A tree of calls with all its minimal failing sets."""

    root: Call
    points: list[str]
    minimal_failing_sets: frozenset[frozenset[str]]

    def run(self, faults: frozenset[str]) -> Outcome:
        """Run one request under these faults."""
        fired: set[str] = set()
        done, support, blame = _call(self.root, faults, fired)
        return Outcome(done, frozenset(support) if done else frozenset(), blame, frozenset(fired))

    def natural(self, requests: int, rng: random.Random, rate: float) -> Iterator[Outcome]:
        """Run requests in which every call fails by itself at this rate; the good ones teach."""
        for _ in range(requests):
            yield self.run(frozenset(point for point in self.points if rng.random() < rate))


def app_boot(seed: int, *, size: tuple[int, int] = (80, 150), planted: int = 5) -> AppBoot:
    """Draw a tree of ``size`` points with ``planted`` minimal failing sets, one or two of them
    pairs."""
    rng = random.Random(seed)
    count = rng.randint(*size)
    pairs = rng.randint(1, 2)
    points: list[str] = []

    def call(parent: Call, planted: bool) -> Call:
        name = f"service{len(points) % 37:02d}/op{len(points):03d}"
        points.append(name)
        return Call(name, parent.depth + 1, planted)

    root = Call("root", 0, planted=True)
    truth: list[frozenset[str]] = []
    spine = [root]
    calls, alternates = [root], list[Call]()
    for number in range(planted):
        parent = rng.choice([each for each in spine if each.depth < MAX_DEPTH])
        alternatives = [call(parent, True) for _ in range(2 if number < pairs else 1)]
        parent.steps.append(Step(alternatives, required=True))
        truth.append(frozenset(each.name for each in alternatives))
        calls.append(alternatives[0])
        alternates += alternatives[1:]
        if len(alternatives) == 1:
            spine += alternatives
    while len(points) < count:
        among = [each for each in calls if each.depth < MAX_DEPTH]
        if rng.random() < 0.1:
            among = [each for each in alternates if each.depth < MAX_DEPTH] or among
        parent = rng.choice(among)
        width = min(rng.choices((1, 2, 3), (70, 22, 8))[0], count - len(points))
        alternatives = [call(parent, False) for _ in range(width)]
        required = not parent.planted and rng.random() < 0.4
        parent.steps.insert(rng.randint(0, len(parent.steps)), Step(alternatives, required))
        (alternates if parent in alternates else calls).append(alternatives[0])
        alternates += alternatives[1:]
    return AppBoot(root, points, frozenset(truth))


def _call(
    call: Call, faults: frozenset[str], fired: set[str]
) -> tuple[bool, set[str], frozenset[str]]:
    """Make a call: whether it succeeded, with the support below it, or what is to blame."""
    if call.name in faults:
        fired.add(call.name)
        return False, set(), frozenset({call.name})
    support = {call.name} if call.depth else set()
    for step in call.steps:
        blamed: frozenset[str] = frozenset()
        for alternative in step.alternatives:
            done, below, blame = _call(alternative, faults, fired)
            if done:
                support |= below
                break
            blamed |= blame
        else:
            if step.required:
                return False, set(), blamed
    return True, support, frozenset()
