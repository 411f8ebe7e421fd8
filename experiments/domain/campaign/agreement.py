"""What a certificate may rest on (design, section 4, rule 11): results can be wrong.

A verdict is wrong with some probability, in both directions, and spans get lost. So what a result
says is *firm* when the same was tried again and it was the same: a set of faults survived twice,
or three times where it had hurt before or a point is missing; a failure met twice. Whatever was
wrong the first time, by chance, has to be wrong once more to do harm.

What several results of one set say is what they bear out together. Good ones: it relied on what any
of them relied on, and only what fired in two of them was survived. Harmful ones: it failed of what
fired in any of them. A span that was lost from one of them is made up for by the others.

Results of earlier rules bear nothing out: they have to be tried anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ldfi.experiments.domain.campaign.result import RULES, ExperimentResult, Hypothesis

TWICE = 2
"""So often the same is tried before anything rests on it."""


def survivals(results: Iterable[ExperimentResult]) -> dict[Hypothesis, list[ExperimentResult]]:
    """Return the good results, grouped by injected set."""
    found: dict[Hypothesis, list[ExperimentResult]] = {}
    for result in results:
        if result.succeeded:
            found.setdefault(result.injected, []).append(result)
    return found


def fired_twice(same: Sequence[ExperimentResult]) -> frozenset[str]:
    """Return the faults that fired in two of these results, or in the only one."""
    times = Counter(fault for each in same for fault in each.fired)
    return frozenset(fault for fault, count in times.items() if count >= min(TWICE, len(same)))


def agreed(result: ExperimentResult, same: Sequence[ExperimentResult]) -> ExperimentResult:
    """Return the result, reduced to what all results of the same set and verdict agree on.

    What good ones relied on is united where they are learned: they survived the same.
    """
    if not result.succeeded:
        fired = result.fired.union(*(each.fired for each in same))
    else:
        fired = fired_twice(same) or result.fired
    degraded = any(each.degraded for each in same)
    if (fired, degraded) == (result.fired, result.degraded):
        return result
    return replace(result, fired=fired, degraded=degraded)


def together(
    result: ExperimentResult, results: Iterable[ExperimentResult]
) -> list[ExperimentResult]:
    """List the results of the same set and the same verdict, where there is a verdict."""
    if result.succeeded is None:
        return []
    alike = (result.injected, result.succeeded)
    return [each for each in results if (each.injected, each.succeeded) == alike]


def borne_out(results: Sequence[ExperimentResult]) -> list[ExperimentResult]:
    """Return every result, reduced to what those of the same set and verdict agree on."""
    groups: dict[tuple[Hypothesis, bool | None], list[ExperimentResult]] = {}
    for each in results:
        groups.setdefault((each.injected, each.succeeded), []).append(each)
    return [
        each if each.succeeded is None else agreed(each, groups[each.injected, each.succeeded])
        for each in results
    ]


def witnesses(harm: ExperimentResult, results: Iterable[ExperimentResult]) -> int:
    """Return how many results show that the faults which fired in ``harm`` hurt, itself
    included."""
    return sum(each.succeeded is False and each.fired <= harm.fired for each in results)


def firm(
    results: Sequence[ExperimentResult], wanted: Callable[[Hypothesis], int], *, doubted: bool
) -> dict[int, ExperimentResult]:
    """Choose the results that a certificate may rest on, by their places, in their order.

    ``wanted``: how often a set has to be survived. What was survived and hurt as well, and is not
    decided yet, is not among them.
    """
    places = [n for n, each in enumerate(results) if each.rules == RULES or not each.succeeded]
    current = [results[place] for place in places]
    good = survivals(current)
    known = borne_out(current)
    harmful = [each for each in known if each.succeeded is False]
    undecided = {each.injected for each in harmful}
    chosen = {}
    for place, each in zip(places, known, strict=True):
        if each.succeeded:
            same = good[each.injected]
            enough = len(same) >= wanted(each.injected) and fired_twice(same)
            if enough and each.injected not in undecided:
                chosen[place] = each
        elif each.succeeded is None or not doubted or witnesses(each, harmful) >= TWICE:
            chosen[place] = each
    return chosen
