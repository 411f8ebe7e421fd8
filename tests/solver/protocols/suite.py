"""Driving the explorer over a protocol, and the exhaustive oracle.

Every goal of a protocol is an outcome of its own with an explorer of its own; they share the
executions. A run in which a goal's precondition fails is good for nothing: nobody lacks what nobody
was promised. No superset of such faults is tried, and that is an assumption: it is sound only where
more faults never bring the precondition back. Of the small protocols of the catalogue the
exhaustive oracle finds the same up to two faults, and of the rest the answers are the known ones;
of others nobody has shown it. A certificate lists these sets among its exclusions, so that it can
be seen. What prevents less is tried first, for it is likelier to leave the precondition standing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from ldfi.solver import Certificate, Explorer
from ldfi.solver.bits import members
from tests.solver.protocols.model import Faults, Goal, Setting
from tests.solver.protocols.proofs import Proofs


@dataclass
class Result:
    """What an exploration found, and in how many executions (the failure-free one included)."""

    counterexamples: frozenset[Faults] = frozenset()
    executions: int = 1
    to_first: int | None = None
    certificates: list[Certificate] = field(default_factory=list)


def explore(
    setting: Setting, *, max_size: int | None, seed: int = 0, first_only: bool = False
) -> Result:
    """Find all minimal counterexamples within ``max_size`` faults."""
    result = Result()
    runs: dict[Faults, Mapping[Goal, tuple[bool, Proofs]]] = {}
    runs[frozenset()] = setting.run(frozenset())
    explorers = {goal: _explorer(setting, max_size, seed) for goal in sorted(setting.expected)}
    for goal, explorer in explorers.items():
        _teach(explorer, setting, frozenset(), runs[frozenset()][goal])
    while True:
        proposals = [
            (frozenset(map(str, proposal)), goal)
            for goal, explorer in explorers.items()
            if (proposal := explorer.propose()) is not None
        ]
        if not proposals:
            break
        faults, _ = min(proposals, key=lambda each: (len(each[0]), sorted(each[0])))
        result.executions += 1
        goals = runs[faults] = setting.run(faults)
        for goal, explorer in explorers.items():
            _teach(explorer, setting, faults, goals[goal])
        if result.to_first is None and any(pre and not post for pre, post in goals.values()):
            result.to_first = result.executions
            if first_only:
                return result
    found = {
        frozenset(map(str, each))
        for explorer in explorers.values()
        for each in explorer.statement().minimal_failing_sets()
    }
    result.counterexamples = minimal(found)
    result.certificates = [explorer.certificate() for explorer in explorers.values()]
    return result


def _explorer(setting: Setting, max_size: int | None, seed: int) -> Explorer:
    return Explorer(
        max_size=max_size,
        strategy="likeliest",
        seed=seed,
        likelihoods={
            fault: 1 / (1 + len(prevented)) for fault, prevented in setting.domains.items()
        },
        domains=setting.domains,
        exclusions=setting.exclusions,
        deterministic=True,
        monotone=setting.protocol.monotone,
        time_limit=60,
    )


def _teach(
    explorer: Explorer, setting: Setting, faults: Faults, outcome: tuple[bool, Proofs]
) -> None:
    pre, post = outcome
    for proof in post:
        support = [setting.events[number] for number in members(proof)]
        explorer.observe(support, failed=faults)
    if faults and not post:
        if pre:
            explorer.record(injected=faults, succeeded=False)
        else:
            explorer.exclude(faults)


def minimal(sets: set[Faults]) -> frozenset[Faults]:
    """Keep the inclusion-minimal ones."""
    return frozenset(each for each in sets if not any(other < each for other in sets))


def exhaustive(setting: Setting, max_size: int) -> tuple[frozenset[Faults], int]:
    """Find all minimal counterexamples by trying everything, and count the executions."""
    found: list[Faults] = []
    executions = 1
    faults = [*setting.omissions, *setting.crash_faults]
    for size in range(1, max_size + 1):
        for each in combinations(faults, size):
            tried = frozenset(each)
            crashed = [fault for fault in each if fault[0] == "C"]
            if len(crashed) > setting.crashes or len({f[2] for f in crashed}) < len(crashed):
                continue
            if any(known <= tried for known in found):
                continue
            executions += 1
            if setting.violates(tried):
                found.append(tried)
    return frozenset(found), executions
