"""What a certificate may rest on (design, section 4, rule 11): lessons can be wrong.

A verdict is wrong with some probability, in both directions, and spans get lost. So what a lesson
says is *firm* when the same was tried again and it was the same: a set of faults survived twice,
or three times where it had hurt before; a failure met twice. Whatever was wrong the first time, by
chance, has to be wrong once more to do harm.

What several good lessons of one set say is what all of them bear out: it relied on what any of them
relied on, and only what fired in all of them was survived. A span that was lost from one of them is
made up for by the others.

Lessons of earlier rules bear nothing out: they have to be tried anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ldfi.experiments.domain.campaign.lesson import RULES, Lesson

Hypothesis = frozenset[str]

TWICE = 2
"""So often the same is tried before anything rests on it."""


def survivals(lessons: Iterable[Lesson]) -> dict[Hypothesis, list[Lesson]]:
    """Group the good lessons by what was injected."""
    found: dict[Hypothesis, list[Lesson]] = {}
    for lesson in lessons:
        if lesson.succeeded:
            found.setdefault(lesson.injected, []).append(lesson)
    return found


def agreed(lesson: Lesson, same: Sequence[Lesson]) -> Lesson:
    """Leave of a good lesson what all lessons of the same set bear out.

    What they relied on is united where they are learned: they survived the same.
    """
    fired = frozenset.intersection(*(each.fired for each in same)) or lesson.fired
    degraded = any(each.degraded for each in same)
    if (fired, degraded) == (lesson.fired, lesson.degraded):
        return lesson
    return replace(lesson, fired=fired, degraded=degraded)


def borne_out(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Leave of every lesson what those of the same set bear out."""
    good = survivals(lessons)
    return [agreed(each, good[each.injected]) if each.succeeded else each for each in lessons]


def wanted(injected: Hypothesis, hurt: Collection[Hypothesis], *, doubted: bool) -> int:
    """Say how often a set has to be survived before anything rests on it.

    ``hurt``: what has ever hurt. ``doubted``: whether one survival of anything else is too few.
    """
    if not doubted:
        return 1
    return TWICE + (injected in hurt)


def witnesses(harm: Lesson, lessons: Iterable[Lesson]) -> int:
    """Count the lessons which say that what fired in a harmful one hurts: itself and others."""
    return sum(each.succeeded is False and each.fired <= harm.fired for each in lessons)


def firm(lessons: Sequence[Lesson], hurt: Collection[Hypothesis], *, doubted: bool) -> list[Lesson]:
    """Choose the lessons that a certificate may rest on, in their order.

    What was survived and hurt as well, and is not decided yet, is not among them.
    """
    good = survivals(each for each in lessons if each.rules == RULES)
    harmful = [each for each in lessons if each.succeeded is False]
    undecided = {each.injected for each in harmful}
    chosen = []
    for each in lessons:
        if each.succeeded:
            same = good.get(each.injected, [])
            enough = len(same) >= wanted(each.injected, hurt, doubted=doubted)
            fired = same and frozenset.intersection(*(one.fired for one in same))
            if enough and fired and each.rules == RULES and each.injected not in undecided:
                chosen.append(agreed(each, same))
        elif each.succeeded is False:
            if not doubted or witnesses(each, harmful) >= TWICE:
                chosen.append(each)
        else:
            chosen.append(each)
    return chosen
