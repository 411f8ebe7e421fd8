"""What would hurt right now? Asked by people who are about to take something down.

From the evidence alone, without an experiment: with some points down, which further single failure
is known to hurt, which is proved to be survived, and of which does nobody know. As sound as the
evidence is: see ``docs/what-a-run-teaches.md`` for what that assumes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.domain.knowledge import Knowledge
from experiments.domain.patterns import matching
from fit.points import Point
from solver import Judgement


@dataclass(frozen=True, slots=True)
class WhatIf:
    """For one request class. ``already``: what is known of the outage by itself.

    The rest are systems and points, each by what one more failure there would do: ``hurts``,
    ``safe``, or nobody knows (``unknown``).
    """

    request_class: str
    down: tuple[str, ...]
    already: Judgement
    hurts: tuple[str, ...]
    safe: tuple[str, ...]
    unknown: tuple[str, ...]


def what_if(knowledge: Knowledge, patterns: Iterable[str]) -> WhatIf | None:
    """What a class has to fear when everything that the patterns name is down.

    Patterns name points, or the services and systems that points reach, with ``*``. None when the
    class never calls any of it.
    """
    down = frozenset(
        point for point in knowledge.points if _is_named(tuple(patterns), point, knowledge)
    )
    if not down:
        return None
    judged: dict[Judgement, list[str]] = {"failing": [], "safe": [], "open": []}
    for point in sorted(knowledge.points - down):
        judged[knowledge.judge(down | {point})].append(point)
    return WhatIf(
        request_class=knowledge.name,
        down=tuple(sorted(down)),
        already=knowledge.judge(down),
        hurts=tuple(judged["failing"]),
        safe=tuple(judged["safe"]),
        unknown=tuple(judged["open"]),
    )


def _is_named(patterns: tuple[str, ...], point: str, knowledge: Knowledge) -> bool:
    system = knowledge.traffic.topology.callees.get(point) or Point.parse(point).peer
    return matching(patterns, [point, *filter(None, [system])]) is not None
