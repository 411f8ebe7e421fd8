"""Findings: what was seen to fail, written in variables.

``minimal_failing_sets`` is the literal answer: every inclusion-minimal set of variables whose
expansion contains a set that was seen to fail, implied ones included. ``findings`` is what a person
wants to read: whatever another, no larger finding already says with fewer point faults is left
out, and the members of a domain are written as the domain.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldfi.solver.bits import members
from ldfi.solver.branch import HittingSets
from ldfi.solver.hypotheses import Hypotheses


def minimal_failing_sets(now: Hypotheses) -> list[int]:
    """Find the minimal failing sets (masks of variables): every smaller subset is known to be
    safe."""
    found: set[int] = set()
    usable, tried = now.selectable, set()
    for run in now.equation.bad.values():
        variables = now.language.variables(run.fired)
        usable |= variables
        tried.add(variables)
    for failing in now.equation.failing:
        carriers = [
            now.language.carriers(1 << point) & usable
            for point in members(failing & ~now.equation.down)
        ]
        for each in HittingSets(carriers, _hits(carriers), now.max_size):
            if (each in tried or now.admissible(each)) and _confirmed(each, now):
                found.add(each)
    return sorted(found, key=lambda each: (each.bit_count(), each))


def exact_findings(now: Hypotheses, minimal: Iterable[int]) -> list[int]:
    """Keep, of the minimal failing sets, those that no other one makes superfluous."""
    sets = [(now.expand(each), each.bit_count(), each) for each in minimal]
    kept = []
    for expansion, size, variables in sets:
        if not any(
            (exact != expansion and exact & expansion == exact and other_size <= size)
            or (exact == expansion and (other_size, other) < (size, variables))
            for exact, other_size, other in sets
        ):
            kept.append(variables)
    return kept


def larger(now: Hypotheses, minimal: Iterable[int]) -> list[int]:
    """Find failing sets that contain none of these: larger than the bound, maybe not minimal."""
    down = now.equation.down
    within = [now.expand(each) & ~down for each in minimal]
    return [
        _written(failing & ~down, now)
        for failing in now.equation.failing
        if not any(failing & each == each for each in within)
    ]


def _confirmed(variables: int, now: Hypotheses) -> bool:
    return all(
        now.equation.is_safe(rest) and not now.equation.is_failing(rest)
        for rest in (now.expand(variables & ~(1 << each)) for each in members(variables))
    )


def _written(points: int, now: Hypotheses) -> int:
    """Write point faults as variables, whole domains by their names."""
    expansions = now.language.expansions
    whole = [each for each in now.language.domains if not expansions[each] & ~points]
    written = 0
    for domain in sorted(whole, key=lambda each: (-expansions[each].bit_count(), each)):
        if expansions[domain] & points:
            written |= 1 << domain
            points &= ~expansions[domain]
    return written | points


def _hits(sets: list[int]) -> dict[int, int]:
    hits: dict[int, int] = {}
    for position, each in enumerate(sets):
        for element in members(each):
            hits[element] = hits.get(element, 0) | 1 << position
    return hits
